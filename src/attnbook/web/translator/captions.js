// What the walk through a word says at each stage. No DOM.
import { largest, softmax } from "../shared/math.js";

const SCORES = { additive: "v · tanh(W₁ h + W₂ s)", dot: "h · s" };
export const several = (kind) => !(kind in SCORES);
export const stagesOf = (kind) => ["query", "scores", "weights", "mean", ...(several(kind) ? ["joined"] : []), "next"];

const quoted = (word) => (word === "</s>" ? "the end" : `“${word}”`);
export const round = (x) => x.toFixed(2).replace("-", "−");

// Where the query comes from, what it is compared with, and how the context yields the next word: in a Transformer,
// and with GRUs.
function inTransformer({ steps, block, looked }, at, head) {
  const last = block + 1 === looked.cross.length, chance = round(Math.max(...softmax(steps[at].logits)));
  const asks = at ? `${quoted(steps[at - 1].word)} is written, and self-attention has mixed it with what stands before`
    : "Nothing is written yet: the decoder has read the start token alone";
  return {
    query: `${asks}. In block ${block + 1}, ${head} of cross-attention makes its query of that state s: `
      + "q = W_Q norm(s).",
    key: "the key k of each English word, made of the encoder’s last state at that word",
    joined: "The block adds it to s.",
    next: `The feed-forward network${last ? "" : " and the next block"} and a last norm follow. The vector is compared `
      + "with the embedding of every word, which gives each a chance: "
      + `${quoted(steps[at].word)} has ${chance} and is written.`,
  };
}
function withGru({ kind, steps }, at, head) {
  const asks = at ? `${quoted(steps[at - 1].word)} is written. The decoder’s state now asks what comes next`
    : "Nothing is written yet. The state in which the encoder ended asks what comes first";
  const chance = round(Math.max(...softmax(steps[at].logits)));
  return {
    query: several(kind) ? `${asks}. ${head} makes its query of it: q = W_Q s.` : `${asks}: it is the query s.`,
    key: `the ${several(kind) ? "key k" : "state h"} of each English word`,
    joined: "",
    next: `The GRU reads the context and ${at ? "the word before" : "the start token"}. Its new state gives every `
      + `word a chance: ${quoted(steps[at].word)} has ${chance} and is written.`,
  };
}

// The captions for head l at the word `at`, by stage.
export function captions(told, at, l) {
  const { kind, steps, words, looked } = told, { heads } = steps[at], { scores, weights } = heads[l];
  const [best] = largest(weights, 1), top = `“${words[best]}”`;
  const head = heads.length > 1 ? `Head ${l + 1}` : "The head";
  const own = looked ? inTransformer(told, at, head.toLowerCase()) : withGru(told, at, head);
  const most = weights[best] > 0.85 ? `almost what ${top} has` : `a mixture, most of it of ${top}`;
  return {
    query: own.query,
    scores: `The query meets ${own.key}: score = ${SCORES[kind] ?? "q · k / √d"}. The highest has “${
      words[largest(scores, 1)[0]]}”, ${round(Math.max(...scores))}.`,
    weights: `Softmax turns the scores into weights, which are positive and add up to 1. ${top} gets ${
      round(weights[best])}.`,
    mean: `Each ${several(kind) ? "value" : "state"} counts by its weight. The sum is ${
      several(kind) ? "what the head found" : "the context c"}, here ${most}.`,
    joined: `What ${heads.length > 1 ? `the ${heads.length} heads` : "the head"} found ${
      heads.length > 1 ? "stands side by side and " : ""}goes through W_O: the context c. ${own.joined}`.trim(),
    next: own.next,
  };
}
