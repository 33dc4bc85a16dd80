// What the widgets on positions compute; no DOM, so Node tests can import this file as it is.
import { oklch, within } from "./math.js";

// Wave m of size/2 turns by `speed` radians per position, and so once in `wavelength` positions.
export const speed = (m, size, base) => base ** ((-2 * m) / size);
export const wavelength = (m, size, base) => 2 * Math.PI * base ** ((2 * m) / size);

// [n x size], row by row: p(i, 2m) = sin(i / base^(2m/size)) and p(i, 2m+1) = cos of the same.
export function sinusoidal(n, size, base) {
  const p = new Float64Array(n * size);
  for (let m = 0; m < size / 2; m++) {
    const step = speed(m, size, base);
    for (let i = 0; i < n; i++) {
      p[i * size + 2 * m] = Math.sin(i * step);
      p[i * size + 2 * m + 1] = Math.cos(i * step);
    }
  }
  return p;
}

// The inner products of vector i with each of the n vectors.
export function products(p, n, i) {
  const size = p.length / n, out = new Float64Array(n);
  for (let j = 0; j < n; j++) {
    let sum = 0;
    for (let c = 0; c < size; c++) sum += p[i * size + c] * p[j * size + c];
    out[j] = sum;
  }
  return out;
}

// The base on a slider with equal steps in its logarithm, from 10 to a million.
const LOW = 10, HIGH = 1e6;
export const toBaseSlider = (base) => within(Math.log(base / LOW) / Math.log(HIGH / LOW), 0, 1);
export const fromBaseSlider = (x) => Number((LOW * (HIGH / LOW) ** x).toPrecision(2));

// A picture of n vectors, one per column: red, green, blue and opacity of each entry in -1..1. Orange is below zero,
// blue above, and zero is transparent, so it suits any page; colour-blind readers can tell the two apart, and blue
// prints darker.
export const BLUE = oklch(0.52, 0.16, 255), ORANGE = oklch(0.66, 0.16, 55);
export function pixels(p, n) {
  const size = p.length / n, data = new Uint8ClampedArray(4 * p.length);
  for (let c = 0, at = 0; c < size; c++) {
    for (let i = 0; i < n; i++, at += 4) {
      const x = p[i * size + c], [red, green, blue] = x < 0 ? ORANGE : BLUE;
      data[at] = red;
      data[at + 1] = green;
      data[at + 2] = blue;
      data[at + 3] = 255 * Math.abs(x);
    }
  }
  return data;
}

// A pair of numbers at a position: rotated by position * theta, or with a hand (cos, sin) at that angle added.
export function positioned([x, y], position, theta, mode) {
  const s = Math.sin(position * theta), c = Math.cos(position * theta);
  return mode === "add" ? [x + c, y + s] : [x * c - y * s, x * s + y * c];
}
export const inner = ([a, b], [c, d]) => a * c + b * d;

// The lowest and highest scores of all pairs of positions i, j = 0..last at each distance i - j = -last..last.
export function spread(q, k, theta, mode, last) {
  const low = new Float64Array(2 * last + 1).fill(Infinity), high = low.map((x) => -x);
  const [queries, keys] = [q, k].map((v) =>
    Array.from({ length: last + 1 }, (_, position) => positioned(v, position, theta, mode)));
  queries.forEach((turned, i) => keys.forEach((other, j) => {
    const score = inner(turned, other), at = i - j + last;
    low[at] = Math.min(low[at], score);
    high[at] = Math.max(high[at], score);
  }));
  return { low, high };
}
