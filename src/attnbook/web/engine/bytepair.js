// Byte-level BPE: a text to words, words to bytes, and of neighbours the pair that was merged first in training, again
// and again, as GPT-2 does it (Sennrich et al. 2016; Radford et al. 2019).

// A shortened word, letters, digits or other signs, each with one space before it, or spaces.
const SPLIT = new RegExp("'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+"
  + "|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+", "gu");
// The same, but each digit stands alone.
const DIGITS = new RegExp("'(?:[sdmt]|ll|ve|re)| ?\\p{L}+|\\p{N}| ?[^\\p{White_Space}\\p{L}\\p{N}]+"
  + "|\\p{White_Space}+(?![^\\p{White_Space}\\p{N}])|\\p{White_Space}+", "gu");

// The bytes in the order of their ids: those that print, then the others, which are written as the letters from 256 on.
const prints = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
const EVERY = Array.from({ length: 256 }, (_, byte) => byte), HIDDEN = EVERY.filter((byte) => !prints(byte));
const BYTES = [...EVERY.filter(prints), ...HIDDEN];
const letter = (byte) => String.fromCharCode(prints(byte) ? byte : 256 + HIDDEN.indexOf(byte));

// `merges`: pairs "a b" in those letters, the first learnt first. `order`: all tokens by their ids, which may lack a
// byte: it is dropped from every text; without an order the bytes come first, then what merges make, then special
// tokens. `digits`: whether each digit is a word of its own.
export function bytePair(merges, special, { order, digits = false } = {}) {
  const letters = EVERY.map(letter), codes = new Map(letters.map((name, byte) => [name, byte]));
  const made = merges.map((pair) => pair.replace(" ", ""));
  const tokens = order ?? [...new Set([...BYTES.map(letter), ...made, ...special])]; // two pairs can make the same
  const ids = new Map(tokens.map((name, id) => [name, id])), ranks = new Map(merges.map((pair, rank) => [pair, rank]));
  const known = new Map(), encoder = new TextEncoder(), split = digits ? DIGITS : SPLIT;

  function pieces(word) {
    const parts = Array.from(encoder.encode(word), (byte) => letters[byte]).filter((name) => ids.has(name));
    for (;;) {
      let best = Infinity, at;
      for (let n = 0; n + 1 < parts.length; n++) {
        const rank = ranks.get(`${parts[n]} ${parts[n + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, n];
      }
      if (best === Infinity) return parts.map((part) => ids.get(part));
      parts.splice(at, 2, made[best]);
    }
  }
  function encode(text) {
    return (text.match(split) ?? []).flatMap((word) => {
      if (!known.has(word)) known.set(word, pieces(word));
      return known.get(word);
    });
  }

  // What each token adds to the text: a character comes with the last of its bytes, a special token adds nothing.
  const bytes = (id) => Uint8Array.from(special.includes(tokens[id]) ? "" : tokens[id], (name) => codes.get(name));
  function written(some) {
    const reader = new TextDecoder("utf-8", { ignoreBOM: true });
    return some.map((id, n) => reader.decode(bytes(id), { stream: n + 1 < some.length }));
  }
  const decode = (some) => written(some).join("");

  // A token alone: bytes that are no text by their numbers, a special one by its name.
  const named = (id) => (special.includes(tokens[id]) ? tokens[id] : decode([id]).includes("\uFFFD")
    ? Array.from(bytes(id), (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("") : decode([id]));
  return { tokens, names: tokens.map((_, id) => named(id)), encode, written, decode };
}
