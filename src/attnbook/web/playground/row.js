// What Playground computes from the engine's answers; no DOM.
import { uniform } from "../engine/random.js";
import { fall, leave, ranked } from "../engine/sampling.js";

export const SHOWN = 10; // bars
const K = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 75, 100, 200, 500, 0]; // top-k on a slider; 0: all
export const kAt = (step) => K[step];
export const stepOf = (k) => { // of k or the next larger one
  const step = K.findIndex((each) => each >= k);
  return k === 0 || step < 0 ? K.length - 1 : step;
};
export const LAST_STEP = K.length - 1;

// The old row, with what an answer says about the places after the first `same`: for each its logits of the next token,
// its weights [layer head key], the first token that it sees (`start`), and lengths [layer part].
export function merged(row, { from, same, logits, weights, lengths, ...said }) {
  const { data, shape: [layers, heads, n, m] } = weights, size = logits.shape[1], parts = lengths.shape[2];
  const every = layers * heads, places = row.places.slice(0, same);
  for (let i = same - from; i < n; i++) {
    const keys = from + i + 1 - said.start;
    const own = new Float32Array(every * keys), long = new Float32Array(layers * parts);
    for (let h = 0; h < every; h++) own.set(data.subarray((h * n + i) * m, (h * n + i) * m + keys), h * keys);
    for (let l = 0; l < layers; l++) {
      long.set(lengths.data.subarray((l * n + i) * parts, (l * n + i + 1) * parts), l * parts);
    }
    const scores = logits.data.slice(i * size, (i + 1) * size);
    places.push({ logits: scores, weights: own, lengths: long, start: said.start });
  }
  return { ...said, places };
}

// What could come at a place: the likeliest tokens with their probability p at the temperature; how many each filter
// leaves, and their mass; and the place's random number with the token that it falls on. Python stores the same.
export function outlook({ places }, names, at, filters, seed) {
  const place = places[at - 1], order = (place.order ??= ranked(place.logits));
  const falling = (place.falling ??= Float64Array.from(order, (id) => place.logits[id]));
  const left = leave(falling, filters), { widths, sum, stages, count, mass } = left, number = uniform(seed, at);
  const { rank, ...span } = fall(left, number);
  const token = (n) => ({ which: order[n], name: names[order[n]], p: widths[n] / sum });
  const best = Array.from({ length: Math.min(SHOWN, order.length) }, (_, n) => token(n));
  return { at, size: order.length, best, stages, count, mass, number, drawn: { rank, ...token(rank), ...span } };
}

// For each token but the first: its probability, its surprisal -log2 p in bits, and the model's own guess with its
// probability; at temperature 1 and without filters.
export function surprises({ ids, places }) {
  return ids.slice(1).map((id, n) => {
    const place = places[n];
    if (place.guess === undefined) {
      const best = place.logits.reduce((most, z, other) => (z > place.logits[most] ? other : most), 0);
      const sum = place.logits.reduce((total, z) => total + Math.exp(z - place.logits[best]), 0);
      Object.assign(place, { guess: best, chance: 1 / sum, log: place.logits[best] + Math.log(sum) });
    }
    const log = place.logits[id] - place.log;
    return { id, p: Math.exp(log), bits: -log / Math.LN2, guess: place.guess, chance: place.chance };
  });
}

// The text and the written tokens of a row up to a place, continued with another token there.
export function branch({ ids, pieces, prompt }, text, at, id) {
  if (at >= prompt) return { text, written: [...ids.slice(prompt, at), id] };
  return { text: pieces.slice(0, at).join(""), written: [id] };
}

// The weights of a head at a place, from the first token of its window on; and the map of a head's weights at the last
// `most` places up to it, row by row.
export function looked(row, at, head) {
  const { weights, start } = row.places[at], keys = at + 1 - start;
  return weights.subarray(head * keys, (head + 1) * keys);
}
export function headMap(row, at, head, most) {
  const size = Math.min(at + 1 - row.places[at].start, most), first = at + 1 - size;
  const map = new Float32Array(size * size);
  for (let i = 0; i < size; i++) {
    map.set(looked(row, first + i, head).subarray(first - row.places[first + i].start), i * size);
  }
  return { size, map };
}
