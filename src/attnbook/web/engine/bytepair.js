// Byte-level BPE as in GPT-2: splits a text into words and words into bytes, then repeatedly merges the adjacent pair
// that was learnt first in training (Sennrich et al. 2016; Radford et al. 2019).
import { Heap } from "./heap.js";

// A contraction such as 's; letters, digits or other signs, with at most one space before them; or spaces.
const SPLIT = new RegExp("'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\p{White_Space}\\p{L}\\p{N}]+"
  + "|\\p{White_Space}+(?!\\P{White_Space})|\\p{White_Space}+", "gu");
// The same, but each digit is a word of its own.
const DIGITS = new RegExp("'(?:[sdmt]|ll|ve|re)| ?\\p{L}+|\\p{N}| ?[^\\p{White_Space}\\p{L}\\p{N}]+"
  + "|\\p{White_Space}+(?![^\\p{White_Space}\\p{N}])|\\p{White_Space}+", "gu");
export const splitWords = (text) => text.match(SPLIT) ?? [];

// The bytes in the order of their ids: the printable ones, then the others, written as the letters from 256 on.
const prints = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
const EVERY = Array.from({ length: 256 }, (_, byte) => byte), HIDDEN = EVERY.filter((byte) => !prints(byte));
const BYTES = [...EVERY.filter(prints), ...HIDDEN];
const letter = (byte) => String.fromCharCode(prints(byte) ? byte : 256 + HIDDEN.indexOf(byte));
export const LETTERS = BYTES.map(letter); // by id
export const FIRST = EVERY.map((byte) => BYTES.indexOf(byte)); // the id of each byte
const CODES = new Map(LETTERS.map((name, id) => [name, BYTES[id]]));
const encoder = new TextEncoder();
export const idsOfBytes = (text) => Array.from(encoder.encode(text), (byte) => FIRST[byte]);

// What each token adds to the text, given the bytes of all tokens: a character appears with the last of its bytes.
const newReader = () => new TextDecoder("utf-8", { ignoreBOM: true });
function decoded(some) {
  const reader = newReader();
  return some.map((bytes, n) => reader.decode(bytes, { stream: n + 1 < some.length }));
}
// The text of a token written in those letters; if its bytes are not valid UTF-8, it shows them as hex escapes.
const bytesOf = (token) => Uint8Array.from(token, (name) => CODES.get(name));
const whole = newReader();
export function readable(token) {
  const bytes = bytesOf(token), text = whole.decode(bytes);
  if (!text.includes("\uFFFD")) return text;
  return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

// Caches what `cut` makes of each word; `fresh` counts the words that had to be cut.
export function remembered(cut, most = 50_000) {
  const known = new Map();
  function ask(word) {
    if (known.has(word)) return known.get(word);
    if (known.size >= most) known.clear();
    const found = cut(word);
    ask.fresh += 1;
    known.set(word, found);
    return found;
  }
  return Object.assign(ask, { fresh: 0 });
}

const PLACES = 2 ** 22; // more bytes than any word has

// `merges`: pairs "a b" in those letters, in the order they were learnt. `order`: all tokens by id; a byte missing from
// it is dropped from every text. Without an order, the bytes come first, then the merged tokens, then the special ones.
// `digits`: whether each digit is a word of its own.
export function bytePair(merges, special, { order, digits = false } = {}) {
  const pairs = merges.map((pair) => pair.split(" ")), made = pairs.map(([a, b]) => a + b);
  const tokens = order ?? [...new Set([...LETTERS, ...made, ...special])]; // two pairs can make the same token
  const ids = new Map(tokens.map((name, id) => [name, id])), size = tokens.length;
  const ranks = new Map(pairs.map(([a, b], rank) => [ids.get(a) * size + ids.get(b), rank]));
  const first = EVERY.map((byte) => ids.get(letter(byte))), split = digits ? DIGITS : SPLIT;
  const makes = made.map((name) => ids.get(name)), rankOf = (a, b) => ranks.get(a * size + b);
  const isSpecial = new Set(special);

  // The ids of a word's pieces. `told` receives each merge: its rank, the place of the piece that grows and of the one
  // that goes.
  function cut(word, told) {
    const row = Array.from(encoder.encode(word), (byte) => first[byte]).filter((id) => id !== undefined);
    const n = row.length, heap = new Heap();
    const after = row.map((_, i) => i + 1), before = row.map((_, i) => i - 1);
    const look = (i) => {
      const rank = i >= 0 && after[i] < n ? rankOf(row[i], row[after[i]]) : undefined;
      if (rank !== undefined) heap.push(rank * PLACES + i);
    };
    row.forEach((_, i) => look(i));
    while (heap.size) {
      const best = heap.pop(), i = best % PLACES, rank = (best - i) / PLACES, j = after[i];
      if (j >= n || rankOf(row[i], row[j]) !== rank) continue; // one of the two has been merged since
      row[i] = makes[rank];
      row[j] = -1;
      after[i] = after[j];
      if (after[i] < n) before[after[i]] = i;
      told?.push({ rank, at: i, gone: j });
      look(before[i]);
      look(i);
    }
    return row.filter((id) => id >= 0);
  }
  const pieces = remembered(cut), marks = [...special].sort((a, b) => b.length - a.length); // the longest wins
  const ordinary = (text) => (text.match(split) ?? []).flatMap(pieces);
  // `special`: whether special tokens written in the text are read as such rather than as ordinary text.
  function encode(text, { special: read = false } = {}) {
    if (!read || !marks.length) return ordinary(text);
    const escaped = marks.map((mark) => mark.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const parts = text.split(new RegExp(`(${escaped.join("|")})`, "u"));
    return parts.flatMap((part, n) => (n % 2 ? [ids.get(part)] : ordinary(part)));
  }

  // A special token adds no text.
  const written = (some) => decoded(some.map((id) => bytesOf(isSpecial.has(tokens[id]) ? "" : tokens[id])));
  const decode = (some) => written(some).join("");
  const named = (id) => (isSpecial.has(tokens[id]) ? tokens[id] : readable(tokens[id]));
  return { tokens, get names() { return tokens.map((_, id) => named(id)); }, named, encode, written, decode,
    cut, pieces, rankOf, makes };
}
