// How the next token is drawn: temperature, then top-k, top-p and min-p, each of which cuts the tail that the one
// before has left, in the order of `transformers`; then a number from 0 to 1 falls on the rest.
import { generator } from "./random.js";

// The tokens in the order of their scores, which are finite, the likeliest first; of equal ones the first is first.
// Numbers are sorted fast,
// ids by a function are not: how far a score lies below the highest is sorted, with its id in the last 20 of 52 bits.
const IDS = 2 ** 20 - 1;
export function ranked(logits) {
  const highest = logits.reduce((a, b) => Math.max(a, b)), below = Float64Array.from(logits, (z) => highest - z);
  const words = new Uint32Array(below.buffer);
  below.forEach((_, id) => (words[2 * id] = (words[2 * id] & ~IDS) | id));
  below.sort();
  return Uint32Array.from(below, (_, n) => words[2 * n] & IDS);
}

// How many of the likeliest tokens each filter leaves, and the probability p that they have together.
// Top-k: the k likeliest, and what is as likely as the last of them; 0 is off. Top-p: the fewest that have p of what is
// left together, and what is as likely as their last. Min-p: those that have at least m times the probability of the
// likeliest.
export function cuts(p, order, { topK, topP, minP }) {
  const stages = {};
  let count = order.length, mass = 1;
  const leave = (name, n) => {
    count = n;
    mass = 0;
    for (let i = 0; i < n; i++) mass += p[order[i]];
    stages[name] = { count, mass };
  };
  const alike = (n) => { // 0 is what was too small to tell
    while (n < count && p[order[n]] > 0 && p[order[n]] === p[order[n - 1]]) n++;
    return n;
  };
  leave("topK", alike(topK > 0 ? Math.min(topK, count) : count));
  let n = topP < 1 ? 1 : count;
  for (let sum = p[order[0]]; n < count && sum < topP * mass; n++) sum += p[order[n]];
  leave("topP", alike(n));
  let m = 1;
  while (m < count && p[order[m]] >= minP * p[order[0]]) m++;
  leave("minP", m);
  return { stages, count, mass };
}

// The token that a number from 0 to 1 falls on where the tokens that are left lie side by side, the likeliest first,
// each as wide as its share of their mass: its rank, and where it lies.
export function fall(p, order, { count, mass }, number) {
  let to = 0;
  for (let rank = 0; rank < count; rank++) {
    const from = to;
    to += p[order[rank]] / mass;
    if (number < to || rank === count - 1) return { rank, from, to: Math.min(to, 1) };
  }
}

// The n-th number of a seed, from 0 up to 1.
export function random(seed, n) {
  const { uniform } = generator(seed);
  for (let skipped = 0; skipped < n; skipped++) uniform();
  return uniform();
}
