// Writes numbers in English and German words, as `attnbook.text.number_words` does, and reads what the reader types.
const ENGLISH = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
  + "sixteen seventeen eighteen nineteen").split(" ");
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const SCALES = ["", "thousand", "million", "billion"];
const GERMAN = ("null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
  + "sechzehn siebzehn achtzehn neunzehn").split(" ");
const GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(" ");
const GERMAN_SCALES = [[], ["tausend", "tausend"], ["Million", "Millionen"], ["Milliarde", "Milliarden"]];
const BEYOND = /^(tr|quadr|quint|sext|sept|oct|non|dec)illion$/;
export const MOST_DIGITS = 12;

// The nonzero groups of three digits, the highest first: [group, scale].
function groups(number) {
  const all = SCALES.map((_, scale) => [Math.floor(number / 1000 ** scale) % 1000, scale]);
  return all.reverse().filter(([group]) => group);
}

function englishGroup(n) {
  const hundreds = Math.floor(n / 100), rest = n % 100, low = rest % 10;
  const small = rest < 20 ? [ENGLISH[rest]] : [TENS[Math.floor(rest / 10) - 2], ...(low ? [ENGLISH[low]] : [])];
  if (!hundreds) return small;
  return [ENGLISH[hundreds], "hundred", ...(rest ? ["and", ...small] : [])];
}
export function english(number) {
  if (!number) return ["zero"];
  return groups(number).flatMap(([group, scale], n) => [
    ...(n && !scale && group < 100 ? ["and"] : []), ...englishGroup(group), ...(scale ? [SCALES[scale]] : []),
  ]);
}

const bound = (unit) => (unit === 1 ? "ein" : GERMAN[unit]);
function germanGroup(n) {
  const hundreds = Math.floor(n / 100), rest = n % 100, low = rest % 10, head = [];
  if (hundreds) head.push(bound(hundreds), "hundert");
  if (rest < 20) return rest ? [...head, GERMAN[rest]] : head;
  return [...head, ...(low ? [bound(low), "und"] : []), GERMAN_TENS[Math.floor(rest / 10) - 2]];
}
export function german(number) {
  if (!number) return ["null"];
  return groups(number).flatMap(([group, scale]) => {
    const words = germanGroup(group);
    if (!scale) return words;
    if (words.at(-1) === "eins") words.splice(-1, 1, scale === 1 ? "ein" : "eine");
    return [...words, GERMAN_SCALES[scale][Number(group > 1)]];
  });
}
// Joins German parts as they are written: in one word, except for Million and Milliarde.
export const spelled = (parts) => parts.map((part) => (part.startsWith("Milli") ? ` ${part} ` : part)).join("").trim();

// Germans do not agree on the words if a group above the last ends in 01 (101, 201, ...), so the book leaves such
// numbers out.
export const unsettled = (number) => groups(number).some(([group, scale]) => scale && group > 1 && group % 100 === 1);

// ---- reads what the reader types: returns { number }, or { problem } with a sentence
const WHAT = "Write a whole number, in digits or in English words.";
const problem = (text) => ({ problem: `${text} ${WHAT}` });
const long = (count) =>
  ({ problem: `${count} digits are too many: the words that the models know end with ${MOST_DIGITS} digits.` });
const shorten = (text) => (text.length > 40 ? `${Array.from(text).slice(0, 39).join("")}…` : text);

function fromDigits(text) {
  const grouped = /^\d{1,3}(?:(?:[,.'’ ]\d{3}){2,}|[,'’ ]\d{3})$/.test(text);
  const plain = grouped ? text.replace(/\D/g, "") : text;
  const power = plain.match(/^10\^(\d{1,4})$/);
  if (power) return Number(power[1]) >= MOST_DIGITS ? long(Number(power[1]) + 1) : { number: 10 ** power[1] };
  if (/^[\d.,' ]*\d[.,]\d*$|^[.,]\d+$/.test(plain)) return problem("Whole numbers only, without a fraction.");
  if (!/^\d+$/.test(plain)) return problem(`“${shorten(text)}” is no number that can be read here.`);
  const digits = plain.replace(/^0+(?=\d)/, "");
  return digits.length > MOST_DIGITS ? long(digits.length) : { number: Number(digits) };
}

function fromWords(text) {
  const words = text.split(/[\s,-]+/).filter((word) => word && word !== "and").map((w) => (w === "a" ? "one" : w));
  let number = 0, group = 0;
  for (const word of words) {
    const unit = ENGLISH.indexOf(word), ten = TENS.indexOf(word), scale = SCALES.indexOf(word);
    if (unit >= 0) group += unit;
    else if (ten >= 0) group += 10 * (ten + 2);
    else if (word === "hundred") group *= 100;
    else if (scale > 0) [number, group] = [number + group * 1000 ** scale, 0];
    else if (BEYOND.test(word)) return { problem: `“${word}” is no word of the models: theirs end with billions.` };
    else return problem(`“${shorten(word)}” is no English number word.`);
  }
  number += group;
  const wanted = number < 10 ** MOST_DIGITS ? english(number).filter((word) => word !== "and") : [];
  if (!words.length || wanted.join() !== words.join())
    return problem(`“${shorten(text)}” is no number in English.`);
  return { number };
}

export function readNumber(typed) {
  const text = typed.normalize("NFKC").toLowerCase().replace(/\s+/g, " ").trim();
  if (!text) return { problem: WHAT };
  if (/^[-−–+]|^minus\b/.test(text)) return problem("No signs, and nothing below zero.");
  return /\d/.test(text) ? fromDigits(text) : fromWords(text);
}

// The number with one more digit at the end: one that it does not have yet, as long as there is any.
export function longer(number) {
  const digits = String(number), next = [..."3729468515"].find((digit) => !digits.includes(digit));
  return number ? Number(digits + (next ?? "372"[digits.length % 3])) : 3;
}
// Another number with this many digits and undisputed words; `chance` returns random numbers from 0 to 1.
export function another(digits, chance = Math.random) {
  const low = digits > 1 ? 10 ** (digits - 1) : 0;
  for (;;) {
    const number = low + Math.floor(chance() * (10 ** digits - low));
    if (!unsettled(number)) return number;
  }
}
