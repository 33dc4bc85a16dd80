// The worker of the tokenizer bench.
import { Merging } from "./merging.js";
import { read } from "./safetensors.js";
import { serve } from "./serve.js";
import { openVocabulary, readable } from "./vocabularies.js";

const SHOWN = { pairs: 8, pieces: 400, learnt: 60, tokens: 240, words: 120, letters: 40 };
let vocabularies = [], merging, known;

// The text after `merges` merges: its first pieces, the most frequent pairs, and the last merges.
function learn({ text, apart, merges }) {
  const same = known?.text === text && known.apart === apart;
  if (!same || merging.learnt.length > merges) merging = new Merging(text, apart);
  known = { text, apart };
  while (merging.learnt.length < merges && merging.step());
  const { tokens, learnt, pieces, bytes, least } = merging, name = (id) => readable(tokens[id]);
  const said = ({ a, b, made, count }) =>
    ({ a: name(a), b: name(b), made: made && name(made), ids: [a, b, made], count });
  const shown = merging.begin(SHOWN.pieces).map((word) => word.map((id) => ({ id, name: name(id) })));
  return { done: learnt.length, learnt: learnt.slice(-SHOWN.learnt).map(said), pieces, bytes, size: tokens.length,
    shown, pairs: merging.common(SHOWN.pairs).map(said), least };
}

// The words that the reader can press, separated by white space, each with the space before it.
function wordsOn(text) {
  const found = [], each = /\S+/gu;
  for (let at; found.length < SHOWN.words && (at = each.exec(text));) {
    const before = text[at.index - 1] === " " ? " " : "";
    found.push({ word: at[0], before });
  }
  return found;
}

// How each vocabulary cuts the text and, step by step, one of its words, or the first letters of a long one.
function cut({ text, word }) {
  const words = wordsOn(text), on = words[Math.min(word, words.length - 1)], letters = Array.from(on?.word ?? "");
  const shown = (on?.before ?? "") + letters.slice(0, SHOWN.letters).join("");
  const lanes = vocabularies.map(({ kind, size, encode, named, steps, fresh }) => {
    const before = fresh(), ids = encode(text);
    return { kind, size, count: ids.length, tokens: ids.slice(0, SHOWN.tokens).map(named), steps: steps(shown),
      fresh: fresh() - before };
  });
  const cutShort = letters.length > SHOWN.letters ? letters.length : 0;
  return { words: words.map((each) => each.word.slice(0, SHOWN.letters)), lanes, cutShort,
    bytes: new TextEncoder().encode(text).length };
}

serve({
  load(files) {
    vocabularies = files.map((buffer) => openVocabulary(read(buffer)));
    return vocabularies.map(({ size }) => size);
  },
  learn,
  cut,
});
