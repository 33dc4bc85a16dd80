// What MaskedWords makes of an answer of the engine; no DOM.
import { grouped, largest, softmax } from "../shared/math.js";

// Which words are hidden when a text was edited: those before and after the words that changed, and as many words
// in between, if their number is the same.
export function stillHidden(masks, before, after) {
  const least = Math.min(before.length, after.length), shift = after.length - before.length;
  let first = 0, last = 0;
  while (first < least && before[first] === after[first]) first++;
  while (last < least - first && before.at(-1 - last) === after.at(-1 - last)) last++;
  return masks.flatMap((n) => {
    if (n >= before.length - last) return [n + shift];
    return n < first || shift === 0 ? [n] : [];
  });
}

// Of each hidden piece: its place, the token that stood there, a name ("men"; "men (2)" for another "men"), the
// probability of every token at temperature t, the hidden one's own and its rank. Python stores the same, but for p.
export function distributions({ row, places, logits }, ids, t) {
  const size = logits.shape[1];
  return places.map((place, n) => {
    const p = softmax(logits.data.subarray(n * size, (n + 1) * size), t), hidden = row[place], own = p[ids.get(hidden)];
    const nth = places.slice(0, n + 1).filter((other) => row[other] === hidden).length;
    const rank = 1 + p.reduce((higher, x) => higher + (x > own), 0);
    return { place, hidden, name: nth > 1 ? `${hidden} (${nth})` : hidden, p, own, rank };
  });
}
export const likeliest = (p, tokens, top) => largest(p, top).map((id) => ({ token: tokens[id], p: p[id] }));

// The weights of each head between a hidden place and every token, [token head], the heads of all layers in a row:
// what the place looks at, or what looks at the place.
export function looks({ data, shape: [layers, heads, n] }, place, into) {
  const weight = (token, head) => data[(head * n + (into ? token : place)) * n + (into ? place : token)];
  const each = (size, make) => Array.from({ length: size }, (_, m) => make(m));
  return each(n, (token) => each(layers * heads, (head) => weight(token, head)));
}

// Which of those heads are chosen: all, a layer's, one of every layer, or one; -1 stands for all. And their mean.
export function chosen([layers, heads], layer, head) {
  return Array.from({ length: layers * heads }, (_, n) =>
    (layer < 0 || Math.floor(n / heads) === layer) && (head < 0 || n % heads === head));
}
export function mean(weights, on) {
  const some = weights.filter((_, n) => on[n]);
  return some.reduce((sum, weight) => sum + weight, 0) / some.length;
}

// 1st, 2nd, 3rd, 4th; 11th, 12th, 13th.
export function ordinal(n) {
  const teen = n % 100 > 10 && n % 100 < 14;
  return grouped(n) + ((!teen && { 1: "st", 2: "nd", 3: "rd" }[n % 10]) || "th");
}
