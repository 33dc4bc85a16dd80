// A translator of number words loaded from its file: one GRU reads, another writes the likeliest word at each step, and
// everything that an attention computes is returned. Or a Transformer does both.
import { openTransformer } from "./encoder_decoder.js";
import { dot } from "./products.js";
import { affine, gru, gruCell } from "./recurrent.js";
import { row } from "./tensors.js";
import { inside } from "./transformer.js";

const LONGEST = 32; // words written at most, including the end
const join = (parts) => Float32Array.from(parts.flatMap((part) => [...part]));

function softmax(scores) {
  const most = Math.max(...scores), powers = scores.map((z) => Math.exp(z - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}
// sum_j weight_j value_j
function mean(weights, values) {
  return values[0].map((_, c) => values.reduce((sum, value, j) => sum + weights[j] * value[c], 0));
}
// What one head computes: each key's score and weight, and the weighted mean of the values.
function found(query, keys, values, scores) {
  const weights = softmax(scores);
  return { query, keys, values, scores, weights, mean: mean(weights, values) };
}

// Ways to attend to the encoder's states: each makes, once per sentence, a function from the decoder's state to
// { heads, context }.
const LOOKS = {
  dot: (p, states) => (s) => {
    const head = found(s, states, states, states.map((h) => dot(s, 0, h, 0, s.length)));
    return { heads: [head], context: head.mean };
  },
  additive(p, states) {
    const part = inside(p, "attention.score"), v = part("v.weight").data;
    const prepared = states.map((h) => affine(part("w1.weight"), null, h));
    return (s) => {
      const asked = affine(part("w2.weight"), null, s);
      const score = (key) => v.reduce((sum, x, c) => sum + x * Math.tanh(key[c] + asked[c]), 0);
      const head = found(s, states, states, prepared.map(score));
      return { heads: [head], context: head.mean };
    };
  },
  heads(p, states, count) {
    const part = inside(p, "heads"), map = (name, x) => affine(part(`${name}.weight`), part(`${name}.bias`), x);
    const size = part("out.weight").shape[1] / count, cut = (x, l) => x.subarray(l * size, (l + 1) * size);
    const keys = states.map((h) => map("k", h)), values = states.map((h) => map("v", h));
    return (s) => {
      const q = map("q", s);
      const heads = Array.from({ length: count }, (_, l) => {
        const query = cut(q, l), mine = keys.map((key) => cut(key, l));
        const scores = mine.map((key) => dot(query, 0, key, 0, size) / Math.sqrt(size));
        return found(query, mine, values.map((value) => cut(value, l)), scores);
      });
      return { heads, context: map("out", join(heads.map((head) => head.mean))) };
    };
  },
};
const WAYS = { dot: LOOKS.dot, additive: LOOKS.additive, one_head: LOOKS.heads, four_heads: LOOKS.heads };

// The file's metadata describe the model, each entry as JSON: `translator`, `n_heads`, the tokens of `source` and
// `target`, and a Transformer's `config`.
export function openTranslator({ metadata, parameters }) {
  const p = (name) => parameters.get(name);
  const [kind, heads, source, target] = ["translator", "n_heads", "source", "target"]
    .map((name) => JSON.parse(metadata[name]));
  if (metadata.config) {
    const translate = openTransformer(p, JSON.parse(metadata.config), { source, target });
    return { kind, target, translate: (words, longest = LONGEST) => translate(words, longest) };
  }
  const [reader, writer] = [inside(p, "encoder"), inside(p, "decoder")];
  const ids = new Map(source.map((word, id) => [word, id]));
  const [start, end] = ["<s>", "</s>"].map((token) => target.indexOf(token));

  // One state per word, and the decoder's initial state.
  function read(words) {
    const sequence = words.map((word) => row(reader("embedding.weight"), ids.get(word)));
    const rnn = inside(reader, "rnn"), ahead = gru(rnn, "_l0", sequence);
    if (!rnn("weight_hh_l0_reverse")) return { states: ahead, last: ahead.at(-1) };
    const back = gru(rnn, "_l0_reverse", sequence, { backward: true });
    return { states: ahead.map((h, j) => join([h, back[j]])), last: join([ahead.at(-1), back[0]]) };
  }

  // Translates English words into German, with </s> if the translation ended; for each word, the logits of all words,
  // the decoder's states before and after, and what the attention computed.
  function translate(words, longest = LONGEST) {
    const { states, last } = read(words), look = WAYS[kind]?.(writer, states, heads), steps = [];
    for (let s = last, token = start; steps.length < longest && (token !== end || !steps.length);) {
      const seen = look?.(s), y = row(writer("embedding.weight"), token);
      const after = gruCell(inside(writer, "cells.0"), "", seen ? join([y, seen.context]) : y, s);
      const logits = affine(writer("out.weight"), writer("out.bias"), after);
      token = logits.indexOf(Math.max(...logits));
      steps.push({ word: target[token], logits, before: s, after, ...seen });
      s = after;
    }
    return { words, states, steps, written: steps.map(({ word }) => word).filter((word) => word !== "</s>") };
  }
  return { kind, target, translate };
}
