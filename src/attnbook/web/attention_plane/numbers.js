// What AttentionPlane computes and writes; no DOM, so Node tests can import this file as it is.
import { format, softmax, within } from "../shared/math.js";

const dot = (a, b) => a.reduce((sum, x, m) => sum + x * b[m], 0);
export const written = (x, digits = 2) => format(x, digits).replace("-", "−");
export const point = (vector) => vector.map((part) => written(part)).join(", ");
export const swap = (list, at, by) => list.map((one, n) => (n === at ? by : one));

// A vector as the plane keeps it: rounded to four decimals, and within its edges.
export const kept = (vector, edge) => vector.map((part) => Math.round(1e4 * within(part, -edge, edge)) / 1e4 || 0);

// What the query of one word reads. `shadows` holds the lengths of the keys along the query, `feet` their end points.
export function compute({ q, k, v, query, root }) {
  const asked = q[query], length = Math.hypot(...asked), products = k.map((key) => dot(asked, key));
  const scores = products.map((product) => (root ? product / Math.SQRT2 : product)), weights = [...softmax(scores)];
  const shadows = products.map((product) => product / length || 0);
  const feet = shadows.map((shadow) => asked.map((part) => (shadow * part) / length || 0));
  const parts = v.map((value, j) => value.map((x) => weights[j] * x));
  const out = v[0].map((_, m) => parts.reduce((sum, part) => sum + part[m], 0));
  return { products, scores, weights, length, shadows, feet, parts, out };
}

// The dot product of the query and key j, first as a sum of products, then as a product of lengths.
export function productWritten({ q, k, query }, j, { products, length, shadows }) {
  const factors = q[query].map((x, m) => `${written(x)} × ${written(k[j][m])}`);
  return [`${factors.join(" + ")} = ${written(products[j])}`,
    `length of the query ${written(length)} × shadow ${written(shadows[j])} = ${written(products[j])}`];
}

// A list of numbers in the shape of `old`; `old` itself if the sizes differ.
export function reshaped(values, old, edge) {
  const wide = old[0].length;
  if (values.length !== old.length * wide) return old;
  return old.map((_, i) => kept(values.slice(i * wide, (i + 1) * wide), edge));
}

// The heights of labels { x, y, wide }, in pixels, moved down where one would lie on another.
export function spreadOut(labels, line) {
  const order = labels.map((_, n) => n).sort((a, b) => labels[a].y - labels[b].y), heights = labels.map(({ y }) => y);
  order.forEach((a, at) => {
    for (const b of order.slice(0, at)) {
      const near = Math.abs(labels[a].x - labels[b].x) < (labels[a].wide + labels[b].wide) / 2;
      if (near && heights[a] < heights[b] + line) heights[a] = heights[b] + line;
    }
  });
  return heights;
}
