// What writing one token costs, and how numbers of any size are written. No DOM, so that Node tests import this file as
// it is.
import LISTS from "./lists.json" with { type: "json" };
import { format, grouped } from "../shared/math.js";

// The largest n, n_layers and batch are MOST; SPANS are powers of ten: operations a second, bytes a second.
const { WIDTHS, MOST, BYTES, CHARTS, SPANS, SIZES, COUNTS, STORE } = LISTS;
const SHORT = ["", " k", " M", " G", " T", " P"];
export { BYTES, CHARTS, COUNTS, MOST, SHORT, SIZES, SPANS, WIDTHS };

// Twins of `costs.step_cost` and its `seconds`.
export function stepCost({ n, d_model: d, n_layers, n_heads, n_kv_heads, batch, cache, size }) {
  const kept = (d / n_heads) * n_kv_heads, matrices = 10 * d * d + 2 * d * kept, asked = cache ? 1 : n;
  return {
    operations: batch * n_layers * asked * (2 * matrices + 4 * n * d),
    parameters: n_layers * matrices * size,
    cache: cache ? 2 * batch * n_layers * n * kept * size : 0,
    scores: batch * n_heads * asked * n * size,
  };
}
export const seconds = ({ operations, parameters, cache }, { speed, bandwidth }) =>
  [operations / speed, (parameters + cache) / bandwidth];
export const boundBy = ([computing, reading]) => (computing > reading ? "arithmetic" : "memory");

// Twin of `CostCalculator.roofline`: what a pass does for each byte that it reads, and then at most a second.
export const PASSES = ["reading the prompt", "writing a token"];
export const roofline = (now) => [{ ...now, cache: false }, now].map((sizes, k) => {
  const cost = stepCost(sizes), times = seconds(cost, now);
  return {
    name: PASSES[k], intensity: cost.operations / (cost.parameters + cost.cache),
    reached: cost.operations / Math.max(...times), bound: boundBy(times),
  };
});

// Three digits and a unit; units grow a thousandfold.
export function scaled(x, units) {
  let n = 0;
  const digits = () => (x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
  for (; n < units.length - 1 && x >= 999.5; n++) x /= 1000;
  return grouped(format(x, Number.isInteger(x) && !n ? 0 : digits())) + units[n];
}
export const counted = (x) => scaled(x, COUNTS);
export const rated = (x, units = COUNTS) => (x < 0.01 ? String(Number(x.toPrecision(2))) : scaled(x, units));
export const stored = (x) => scaled(x, STORE);
export const timed = (x) => (x >= 1 ? scaled(x, [" s"]) : scaled(x * 1e9, [" ns", " µs", " ms", " s"]));

export const divisors = (whole, least = 1) =>
  Array.from({ length: whole / least }, (_, k) => k + 1).filter((k) => whole % k === 0);
export const nearest = (list, x) => list.reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a));

// How many heads a width can have, each of at least 8 numbers, and how many key heads so many heads can have.
export const headsOf = (d_model) => divisors(d_model, 8);
export const keyHeadsOf = (n_heads) => divisors(n_heads);
// The nearest numbers of heads that are possible: heads divide the width, key heads divide the heads.
export function fitted({ d_model, n_heads, n_kv_heads }) {
  const heads = nearest(headsOf(d_model), n_heads);
  return { n_heads: heads, n_kv_heads: nearest(keyHeadsOf(heads), n_kv_heads) };
}

// The curves of a chart: each has a name, a value by n, and what a measured point says of it, if anything.
export function curvesOf(chart, now) {
  const at = (n, change = {}) => stepCost({ ...now, n, ...change });
  const kinds = {
    operations: [true, false].map((cache) => ({ name: cache ? "with a cache" : "all anew",
      value: (n) => at(n, { cache }).operations, measured: (p) => p.cache === cache && p.operations })),
    memory: [
      { name: "parameters", value: (n) => at(n).parameters }, { name: "scores", value: (n) => at(n).scores },
      { name: "cache", value: (n) => at(n).cache, measured: (p) => p.cache && p.bytes },
    ].slice(0, now.cache ? 3 : 2),
    time: ["computing", "reading"].map((name, k) => ({ name,
      value: (n) => seconds(at(n), now)[k], measured: (p) => !k && p.cache === now.cache && p.seconds })),
  };
  return kinds[chart];
}
