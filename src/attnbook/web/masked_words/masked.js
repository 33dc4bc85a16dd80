// What MaskedWords computes from an answer of the engine; no DOM.
import { grouped, largest, softmax } from "../shared/math.js";

// Which words stay hidden when the text is edited: those before and after the changed words and, if the number of
// words is the same, those among them.
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

// For each hidden piece: its place, the hidden token, a name ("men"; "men (2)" for a second "men"), the probability of
// every token at temperature t, and the hidden token's own probability and rank. Python stores the same without p.
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

// Whether a token may be piece n of a word: special tokens may not, and only pieces after the first begin with "##".
export const fits = (token, n) => !/^\[.+\]$/.test(token) && token.startsWith("##") === n > 0;

// The likeliest words made of one token from each list. The pieces are predicted independently, so the probability of a
// word is the product of theirs. `best[n]` holds the likeliest tokens that fit piece n.
export function joined(best, top) {
  const longer = (words, next) => words
    .flatMap((word) => next.map(({ token, p }) => ({ token: word.token + token.replace("##", ""), p: word.p * p })))
    .sort((one, other) => other.p - one.p).slice(0, top);
  return best.reduce(longer, [{ token: "", p: 1 }]);
}

// What the page shows for each hidden word: the place of its only piece, or the places of its pieces combined.
// `of(place, n)` returns the likeliest tokens of a place as piece n of a word.
export function wholeWords(places, words, top, of) {
  const at = new Map(places.map((each) => [each.place, each])), times = new Map();
  return words.filter((word) => word.places.length && at.has(word.places[0])).map((word) => {
    const mine = word.places.map((place) => at.get(place));
    if (mine.length === 1) return mine[0];
    const nth = (times.get(word.text) ?? 0) + 1, own = mine.reduce((product, each) => product * each.own, 1);
    times.set(word.text, nth);
    return {
      place: mine[0].place, hidden: word.text, name: nth > 1 ? `${word.text} (${nth})` : word.text, own,
      pieces: mine.map(({ hidden }) => hidden), best: joined(mine.map(of), top),
    };
  });
}

// The weights of each head between a hidden place and every token, [token head], heads counted through all layers:
// what the place attends to or, with `into`, what attends to it.
export function looks({ data, shape: [layers, heads, n] }, place, into) {
  const weight = (token, head) => data[(head * n + (into ? token : place)) * n + (into ? place : token)];
  const each = (size, make) => Array.from({ length: size }, (_, m) => make(m));
  return each(n, (token) => each(layers * heads, (head) => weight(token, head)));
}

// Which of those heads are chosen: all, a layer's, the same in every layer, or one; -1 means all. And their mean.
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
