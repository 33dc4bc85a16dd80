// What writing one token costs, and how numbers of any size are written. No DOM, so Node tests can import this file as
// it is.
import LISTS from "./lists.json" with { type: "json" };
import { format, grouped } from "../shared/math.js";

// MOST holds the largest n, n_layers and batch; SPANS, as powers of ten, the ranges of operations and bytes per second.
const { WIDTHS, MOST, BYTES, CHARTS, SPANS, SIZES, COUNTS, SHORT, STORE } = LISTS;
export { BYTES, CHARTS, COUNTS, MOST, SHORT, SIZES, SPANS, WIDTHS };

// The same as `costs.step_cost` and its `seconds` in Python.
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

// The same as `CostCalculator.roofline` in Python: a pass's operations per byte that it reads, and per second at most.
export const PASSES = ["reading the prompt", "writing a token"];
export const roofline = (now) => [{ ...now, cache: false }, now].map((sizes, k) => {
  const cost = stepCost(sizes), times = seconds(cost, now);
  return {
    name: PASSES[k], intensity: cost.operations / (cost.parameters + cost.cache),
    reached: cost.operations / Math.max(...times), bound: boundBy(times),
  };
});

// Three digits and a unit; each unit is a thousand times the last.
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

// The possible numbers of heads for a width (each head at least 8 wide), and of key heads for a number of heads.
export const headsOf = (d_model) => divisors(d_model, 8);
export const keyHeadsOf = (n_heads) => divisors(n_heads);
// The nearest possible numbers of heads: heads divide the width, key heads divide the heads.
export function fitted({ d_model, n_heads, n_kv_heads }) {
  const heads = nearest(headsOf(d_model), n_heads);
  return { n_heads: heads, n_kv_heads: nearest(keyHeadsOf(heads), n_kv_heads) };
}

// The curves of a chart: each has a `name`, a `value` for any n and, if points were measured, theirs (`measured`).
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
