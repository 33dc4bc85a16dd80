// What PositionExplorer computes for its drawings; no DOM.
import { format, grouped } from "../shared/math.js";

const CLOCKS = 8; // at most
const POINTS = 600; // of a drawn wave

// Pairs of dimensions that get a clock, spread evenly from the fastest to the slowest.
export function clockPairs(size) {
  const count = Math.min(CLOCKS, size / 2);
  return Array.from({ length: count }, (_, c) => Math.round((c * (size / 2 - 1)) / Math.max(1, count - 1)));
}

// A position's binary digits: those that are the same as in the position before it, and those that changed.
export function binary(position, n) {
  const digits = position.toString(2).padStart((n - 1).toString(2).length, "0");
  const flipped = (position ^ (position - 1)).toString(2).length;
  const same = position ? Math.max(0, digits.length - flipped) : digits.length;
  return { same: digits.slice(0, same), changed: digits.slice(same) };
}

// A wave that turns by `turn` radians per position, as fractions of a plot's width and height.
export const wavePoints = (n, turn, wave) => Array.from({ length: POINTS + 1 }, (_, k) =>
  [k / POINTS, 0.5 + wave(((k / POINTS) * n - 0.5) * turn) / 2]);

// Where a distance and an inner product lie in their plot, as fractions of its width and height.
export const apart = (distance, n) => 0.5 + distance / (2 * (n - 1));
export const height = (product, low, size) => (product - low) / (size / 2 - low);

export const longWritten = (x) => (x < 1000 ? format(x, 1) : grouped(Math.round(x)));
