// The tree of DecodingBench: what is stored for each place, turned into a distribution in falling order, and what the
// filters and a draw make of it; no DOM.
import { uniform } from "../engine/random.js";
import { fall, leave } from "../engine/sampling.js";
import { SHOWN } from "../playground/row.js";

const keyOf = (path) => path.join();

// Reads what Python packed: the ids; for each place its parent and the token that leads from it, its likeliest tokens,
// their log-probabilities, the highest and the lowest of all others, and how many of these lie in each bin between.
export function unpack(view, sizes) {
  const { nodes: n, keep, bins } = sizes, wide = sizes.vocab < 2 ** 16 ? 2 : 4;
  let at = 0;
  const take = (count, bytes, read) => {
    const list = Array.from({ length: count }, (_, i) => view[read](at + bytes * i, true));
    at += count * bytes;
    return list;
  };
  const ids = take(sizes.ids, 4, "getUint32"), parents = take(2 * n, 2, "getUint16");
  const tops = take(keep * n, 2, "getUint16"), logp = take(keep * n, 4, "getFloat32");
  const ends = take(2 * n, 4, "getFloat32"), counts = take(bins * n, wide, wide === 2 ? "getUint16" : "getUint32");
  const paths = [], places = new Map();
  for (let i = 0; i < n; i++) {
    const path = i ? [...paths[parents[2 * i]], ids[parents[2 * i + 1]]] : [];
    paths.push(path);
    places.set(keyOf(path), {
      path, exact: false, ids: tops.slice(keep * i, keep * (i + 1)).map((which) => ids[which]),
      top: logp.slice(keep * i, keep * (i + 1)), ends: ends.slice(2 * i, 2 * i + 2),
      counts: counts.slice(bins * i, bins * (i + 1)),
    });
  }
  return { ids, places, get: (path) => places.get(keyOf(path)) };
}

// The log-probabilities of all tokens in falling order. Those in the histogram are spread over their bins, more densely
// towards a fuller neighbour, and shifted so that together they have the probability that the likeliest leave.
export function scores(place, { vocab, keep, bins, bend }) {
  if (place.scores) return place.scores;
  const { top, ends: [high, low], counts } = place, all = new Float64Array(vocab);
  all.set(top);
  const edge = (k) => high - (high - low) * (k / bins) ** bend, width = (k) => edge(k) - edge(k + 1);
  const density = (k) => (k < 0 || k >= bins ? 0 : counts[k] / (width(k) || 1));
  let at = keep, sum = 0;
  for (let k = 0; k < bins; k++) {
    const own = density(k), before = (k ? density(k - 1) : own) + own, after = density(k + 1) + own;
    const lean = own ? (after - before) / (after + before) : 0;
    for (let i = 0; i < counts[k]; i++) {
      const u = (i + 0.5) / counts[k];
      const x = Math.abs(lean) < 1e-6 ? u : (Math.sqrt((1 - lean) ** 2 + 4 * lean * u) - 1 + lean) / (2 * lean);
      all[at] = edge(k) - width(k) * x;
      sum += Math.exp(all[at++]);
    }
  }
  const rest = Math.max(1e-12, top.reduce((left, z) => left - Math.exp(z), 1)), shift = Math.log(rest / sum);
  for (let i = keep; i < vocab; i++) all[i] = Math.min(all[i] + shift, top[keep - 1]);
  return (place.scores = all);
}

// A place from a model's answer, which is sorted and comes with its entropy.
export const exactly = (path, { order, logp, bits }) =>
  ({ path, exact: true, ids: order, scores: logp, model: { sum: Math.exp(-logp[0]), bits } });

// The entropy in bits of the first n tokens, whose widths exp((z - z[0]) / t) add up to `whole`.
function spread(widths, whole, z, n, t) {
  let mean = 0;
  for (let i = 0; i < n; i++) mean += widths[i] && widths[i] * (z[0] - z[i]);
  return t > 0 ? Math.max(0, (Math.log(whole) + mean / whole / t) / Math.LN2) : 0;
}
// The unfiltered distribution: the sum of its widths, and its entropy. The widths of 40 places would take 30 MB, so
// they are not kept.
function summed(z) {
  const { widths, sum } = leave(z, { temperature: 1, topK: 0, topP: 1, minP: 0 });
  return { sum, bits: spread(widths, sum, z, z.length, 1) };
}

// What the page shows of a place: the likeliest tokens with their probability `model` as the model says, `p` at the
// temperature and `q` as filtered; how many tokens each filter leaves, and their mass; the entropies in bits as the
// model says and as filtered; the place's random number, and the token that it falls on, without an id if it is not
// stored.
export function prospect(place, sizes, { temperature, topK, topP, minP }, seed, at) {
  const z = scores(place, sizes), size = z.length, number = uniform(seed, at);
  const model = (place.model ??= summed(z));
  const left = leave(z, { temperature, topK, topP, minP }), { widths, ends, sum, stages, count, mass } = left;
  const { rank, ...span } = fall(left, number), whole = ends[count - 1];
  const token = (n) => ({ which: place.ids[n], model: Math.exp(z[n] - z[0]) / model.sum, p: widths[n] / sum,
    q: n < count ? widths[n] / whole : 0 });
  const bits = [model.bits, spread(widths, whole, z, count, temperature)];
  const known = place.exact ? size : sizes.keep;
  const even = temperature === 0 || temperature === 1, beyond = count > known && count < size;
  const near = { // what is not exact
    count: !place.exact && ((beyond && count !== topK) || (topP < 1 && !even)),
    mass: !place.exact && count < size && (beyond || !even),
  };
  return { size, at, best: Array.from({ length: Math.min(SHOWN, known) }, (_, n) => token(n)), stages, count,
    mass, near, bits, number, drawn: { rank, ...span, ...token(rank) } };
}

// The probability of a token at a place, as the model says; undefined if the place does not know it.
export function chance(place, sizes, id) {
  const n = place.ids.indexOf(id);
  return n < 0 ? undefined : Math.exp(scores(place, sizes)[n]);
}

// The longest stored beginning of a path, and the tokens after it that lead to stored places.
export function nearest(tree, path) {
  let n = path.length;
  while (!tree.get(path.slice(0, n))) n -= 1;
  return { path: path.slice(0, n), next: branches(tree, path.slice(0, n)) };
}
export const branches = (tree, path) => tree.get(path)?.ids.slice(0, SHOWN)
  .filter((id) => tree.get([...path, id])) ?? [];
