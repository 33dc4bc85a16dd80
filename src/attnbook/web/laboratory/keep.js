// Stores the reader's runs in the browser, in a link or in a file. No DOM. What is read from there may be anything.
import { choices, settled } from "./settings.js";
import { OUTCOMES } from "./verdict.js";

const MOST = 200_000; // most characters of a link, since some browsers cut long ones
const RUNS = 200, SEEDS = 20, TESTS = 1000; // most that are read from outside
const rounded = (x) => (Number.isFinite(x) ? Number(x.toPrecision(4)) : null); // JSON has no NaN

// A run without what only the page itself can use, and with rounded numbers.
export const bare = ({ id, number, settings, sizes, seeds, bet, beside, result, until }) => ({
  id, number, settings, sizes, bet: bet ?? null, beside: beside ?? null, result: result ?? null, until: until ?? null,
  seeds: seeds.map(({ seed, done, tests }) => ({
    seed, done, tests: tests.map(({ step, loss, exact, tokens }) => [step, ...[loss, exact, tokens].map(rounded)]),
  })),
});

// A run from any value, or null if the value is not a run.
export function cleaned(given) {
  const whole = (x) => (Number.isInteger(x) && x >= 0 ? x : null);
  const { settings, sizes, seeds } = given ?? {};
  if (settings === null || typeof settings !== "object") return null;
  if (!Array.isArray(seeds) || !seeds.length || seeds.length > SEEDS) return null;
  if (choices.some(({ name, values }) => name in settings && !values.includes(settings[name]))) return null;
  const read = seeds.map(cleanSeed);
  if (read.includes(null)) return null;
  const text = settings.task === "text" && whole(settings.text) !== null ? { text: settings.text } : {};
  const sized = ["size", "body", "length", "operations"].every((name) => whole(sizes?.[name]) > 0);
  const known = (word, words) => (words.includes(word) ? word : null);
  const id = String(given.id ?? "").slice(0, 40);
  return {
    id, number: whole(given.number), settings: { ...settled(settings), ...text },
    sizes: sized ? { size: sizes.size, body: sizes.body, length: sizes.length, operations: sizes.operations } : null,
    seeds: read, bet: known(given.bet, OUTCOMES), result: known(given.result, [...OUTCOMES, "open"]),
    beside: whole(given.beside), until: whole(given.until), kept: true,
  };
}
function cleanSeed(given) {
  const { seed, done, tests } = given ?? {};
  if (![seed, done].every(Number.isInteger) || !Array.isArray(tests) || tests.length > TESTS) return null;
  const fine = (x, least) => typeof x === "number" && Number.isFinite(x) && x >= least;
  const share = (x) => fine(x, 0) && x <= 1;
  const good = tests.every((test, n) => Array.isArray(test) && fine(test[0], n ? tests[n - 1][0] + 1 : 0)
    && (test[1] === null || fine(test[1], 0)) && (test[2] === null || share(test[2])) && share(test[3]));
  if (!good) return null;
  const read = ([step, loss, exact, tokens]) => ({ step, loss: loss ?? NaN, exact, tokens });
  return { seed, done, losses: [], tests: tests.map(read) };
}

// Two runs are the same if they have the same settings, in whatever order, and the same tests.
const content = (run) => JSON.stringify([settled(run.settings), run.settings.text ?? null, bare(run).seeds]);
export const same = (one, other) => content(one) === content(other);

// Converts runs to the text of a file, and back; `parse` throws an error that says in a sentence what is wrong.
export const written = (runs) => JSON.stringify({ laboratory: 1, runs: runs.map(bare) });
export function parse(text) {
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    throw new Error("This is no file of the laboratory: it holds no JSON.");
  }
  if (given?.laboratory !== 1 || !Array.isArray(given.runs)) {
    throw new Error("This file holds no runs of the laboratory.");
  }
  if (given.runs.length > RUNS) throw new Error(`This file holds more than ${RUNS} runs.`);
  const runs = given.runs.map(cleaned);
  if (runs.includes(null)) throw new Error("A run in this file cannot be read, so that none was taken.");
  return runs;
}

// Converts runs to base64 for a link (null if too long), and back.
export function packed(runs) {
  const bytes = new TextEncoder().encode(written(runs));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  const text = btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return text.length > MOST ? null : text;
}
export function unpacked(text) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    throw new Error("The runs of this link cannot be read: a part of it is missing.");
  }
  return parse(new TextDecoder().decode(bytes));
}

// The runs that a browser stores under a name, and the last number given, so that none is given twice. If the browser
// stores nothing, `put` and `remove` return false.
export class Shelf {
  constructor(name, storage) {
    this.key = `attnbook.laboratory.${name}`;
    this.storage = storage;
  }
  read() {
    try {
      const { last, runs } = JSON.parse(this.storage.getItem(this.key)) ?? {};
      const all = (Array.isArray(runs) ? runs : []).map((given) => ({ given, run: cleaned(given) }));
      const fit = ({ run }) => run?.number && run.id, found = all.filter(fit).map(({ run }) => run);
      // Runs from another version of the page, unreadable here, stay stored.
      const rest = all.filter((each) => !fit(each)).map(({ given }) => given);
      const most = Math.max(0, Number.isInteger(last) ? last : 0, ...found.map(({ number }) => number));
      return { last: most, runs: found, rest };
    } catch {
      return { last: 0, runs: [], rest: [] };
    }
  }
  write({ last, runs, rest }) {
    try {
      this.storage.setItem(this.key, JSON.stringify({ last, runs: [...rest, ...runs.map(bare)] }));
      return true;
    } catch {
      return false;
    }
  }
  // Reads first, since another page may have stored runs meanwhile, which stay.
  put(run) {
    const { last, runs, rest } = this.read(), others = runs.filter(({ id }) => id !== run.id);
    return this.write({ last: Math.max(last, run.number), runs: [...others, run], rest });
  }
  remove(ids) {
    const { last, runs, rest } = this.read();
    return this.write({ last, runs: runs.filter(({ id }) => !ids.includes(id)), rest });
  }
}
