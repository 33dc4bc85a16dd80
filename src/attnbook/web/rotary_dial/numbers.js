// What RotaryDial computes and writes; no DOM.
import { format } from "../shared/math.js";
import { inner, positioned } from "../shared/positions.js";

export const LAST = 64; // positions are 0..64
const LONGEST = 2; // length of q and k

export const subscript = (n) => String(n).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
export const degrees = (angle) => `${format((angle * 180) / Math.PI, 0)}°`;
const two = (number) => format(number, 2);
const signed = (text) => (text.startsWith("-") ? `− ${text.slice(1)}` : `+ ${text}`);

// Shortens a vector that is longer than LONGEST.
export function clip([x = 0, y = 0]) {
  const length = Math.hypot(x, y);
  return length <= LONGEST ? [x, y] : [x, y].map((part) => Math.trunc((100 * part * LONGEST) / length) / 100);
}
export const rounded = (vector) => clip(vector.map((part) => Math.round(100 * part) / 100));

// The largest score that these vectors can have at any positions.
export const largestScore = (vectors, adds) =>
  vectors.reduce((product, v) => product * (Math.hypot(...v) + (adds ? 1 : 0)), 1) || 1;

// The score as a sum or product of its parts, up to the equals sign.
export function scoreWritten(q, k, i, j, theta, mode) {
  if (mode === "add") {
    const [atI, atJ] = [i, j].map((position) => positioned([0, 0], position, theta, mode));
    const [pi, pj] = [`p${subscript(i)}`, `p${subscript(j)}`];
    return `Score (q + ${pi})·(k + ${pj}): q·k ${two(inner(q, k))} + q·${pj} ${two(inner(q, atJ))}`
      + ` + ${pi}·k ${two(inner(atI, k))} + ${pi}·${pj} ${two(inner(atI, atJ))} = `;
  }
  const between = Math.atan2(inner([-k[1], k[0]], q), inner(k, q));
  return `Score |q| |k| cos(φ ${signed(`${i - j}θ`)}): ${two(Math.hypot(...q))} · ${two(Math.hypot(...k))}`
    + ` · cos(${degrees(between)} ${signed(degrees((i - j) * theta))}) = `;
}
