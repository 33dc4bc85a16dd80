// The vocabularies of the tokenizer bench, from the files that `attnbook.weights.vocabularies` writes: how they cut a
// text and, step by step, a word.
import { LETTERS, bytePair, idsOfBytes, readable, remembered, splitWords } from "./bytepair.js";
import { pieces, wordsOf } from "./wordpiece.js";

const UNKNOWN = "[UNK]";

export function openVocabulary({ metadata, parameters }) {
  if (!parameters.has("merges")) return openWordPiece(parameters.get("tokens").data, JSON.parse(metadata.lowercase));
  return openBytePair(parameters.get("merges").data, JSON.parse(metadata.special));
}

// `data`: the ids of two pieces for each merge.
function openBytePair(data, special) {
  const tokens = [...LETTERS], known = new Set(tokens), merges = [];
  for (let n = 0; n < data.length; n += 2) {
    const a = tokens[data[n]], b = tokens[data[n + 1]];
    merges.push(`${a} ${b}`);
    if (known.has(a + b)) continue;
    known.add(a + b);
    tokens.push(a + b);
  }
  const words = bytePair(merges, special), { cut, encode, named, rankOf, pieces: ask } = words;

  // The state before and after each merge, word by word: the pieces of all words, each with the rank of the pair that
  // it forms with the next piece; and the place of the merge that comes `next`, and of the one just `made`.
  function steps(text) {
    const parts = splitWords(text), frames = [];
    const rows = parts.map((word) => idsOfBytes(word).map((id, at) => ({ id, at })));
    const frame = (word, next, made) => frames.push({ word, next, made, rows: rows.map((row) => row.map(
      ({ id }, n) => ({ name: named(id), rank: n + 1 < row.length ? rankOf(id, row[n + 1].id) : undefined }))) });
    parts.forEach((part, w) => {
      const told = [], row = rows[w];
      let made = -1;
      cut(part, told);
      for (const { rank, at } of told) {
        const n = row.findIndex((each) => each.at === at);
        frame(w, n, made);
        const id = words.makes[rank];
        row.splice(n, 2, { id, at });
        made = n;
      }
      if (made >= 0) frame(w, -1, made);
    });
    if (!frames.length) frame(0, -1, -1);
    return frames;
  }
  return { kind: "pairs", size: words.tokens.length, encode, named, steps, fresh: () => ask.fresh };
}

// `data`: all tokens, one per line.
function openWordPiece(data, lowercase) {
  const tokens = new TextDecoder("utf-8", { ignoreBOM: true }).decode(data).split("\n");
  const ids = new Map(tokens.map((name, id) => [name, id])), unknown = [ids.get(UNKNOWN)];
  const ask = remembered((word) => pieces(word, ids) ?? unknown);
  const encode = (text) => wordsOf(text, lowercase).flatMap(ask);

  // For each search for a piece: the word, the pieces found before, the pieces tried, the longest first, whether one
  // was found, and what is left.
  function steps(text) {
    return wordsOf(text, lowercase).flatMap((word, w) => {
      const letters = Array.from(word), told = [], before = [];
      pieces(word, ids, told);
      return told.map(({ start, end }) => {
        const mark = start ? "##" : "", spell = (to) => mark + letters.slice(start, to).join("");
        const lengths = Array.from({ length: letters.length - Math.max(end - 1, start) }, (_, n) => letters.length - n);
        const tries = lengths.filter((to) => to > start).map(spell), found = end > start;
        const frame = { word: w, before: [...before], tries, found, rest: letters.slice(found ? end : start).join("") };
        if (found) before.push(spell(end));
        return frame;
      });
    });
  }
  return { kind: "longest", size: tokens.length, encode, named: (id) => tokens[id], steps, fresh: () => ask.fresh };
}
export { readable };
