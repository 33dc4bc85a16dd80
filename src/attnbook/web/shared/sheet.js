// A complete self-attention on a sheet: what each cell is, and which cells it is computed from. No DOM, so Node tests
// can import this file as it is.
import { format, softmax } from "./math.js";

// Only the first four can be edited; the rest follow from them.
export const BLOCKS = ["x", "w_q", "w_k", "w_v", "q", "k", "v", "scores", "weights", "out"];
export const INPUTS = BLOCKS.slice(0, 4);
export const NAMES = { x: "x", w_q: "W_Q", w_k: "W_K", w_v: "W_V", q: "query", k: "key", v: "value", scores: "score",
  weights: "weight", out: "output" };
export const MOST = 9.99; // the largest number that can be entered

const dot = (a, b) => a.reduce((sum, x, m) => sum + x * b[m], 0);
const column = (matrix, c) => matrix.map((row) => row[c]);
const product = (a, b) => a.map((row) => b[0].map((_, c) => dot(row, column(b, c))));
export const rootOf = ({ root, w_q: [first] }) => (root ? Math.sqrt(first.length) : 1);

// All blocks, each a list of rows. A masked score is minus infinity, so its weight is 0.
export function compute(given) {
  const { x, w_q, w_k, w_v, mask } = given, scale = rootOf(given);
  const [q, k, v] = [w_q, w_k, w_v].map((w) => product(x, w));
  const scores = q.map((a, i) => k.map((b, j) => (mask && j > i ? -Infinity : dot(a, b) / scale)));
  const weights = scores.map((row) => [...softmax(row)]);
  return { x, w_q, w_k, w_v, q, k, v, scores, weights, out: product(weights, v) };
}

// The two vectors that the cell [block, i, j] is computed from, each a list of cells; no vectors for an input.
export function operands(all, block, i, j) {
  const row = (name, at) => all[name][at].map((_, m) => [name, at, m]);
  const down = (name, at) => all[name].map((_, m) => [name, m, at]);
  if (INPUTS.includes(block)) return [];
  if (block === "scores") return [row("q", i), row("k", j)];
  if (block === "weights") return [[["scores", i, j]], row("scores", i)];
  if (block === "out") return [row("weights", i), down("v", j)];
  return [row("x", i), down(`w_${block}`, j)];
}

// The cells that use the cell [block, i, j] directly, each as "block.i.j".
export function uses(all, block, i, j) {
  const found = [];
  for (const name of BLOCKS.slice(4)) {
    all[name].forEach((row, a) => row.forEach((_, b) => {
      const made = operands(all, name, a, b).flat();
      if (made.some((cell) => cell[0] === block && cell[1] === i && cell[2] === j)) found.push(`${name}.${a}.${b}`);
    }));
  }
  return found;
}

// A number short enough for a cell: two decimals, one from 10 on, none from 100 on.
export function brief(x) {
  const size = Math.abs(x), digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return format(x, digits).replace("-", "−");
}

// The arithmetic of a cell as pieces [text, block, raised]: the block gives a number its colour, and is "" for signs.
export function written(all, given, block, i, j) {
  const number = (name, a, b) => [brief(all[name][a][b]), name];
  const sign = (text) => [text, ""], result = [sign(" = "), number(block, i, j)];
  const join = (terms, between) => terms.flatMap((term, n) => (n ? [sign(between), ...term] : term));
  const [a, b] = operands(all, block, i, j);
  if (!a) return [number(block, i, j)];
  if (block === "weights") {
    const power = (cell) => [sign("e"), [...number(...cell), true]];
    const seen = b.filter(([name, r, c]) => all[name][r][c] > -Infinity);
    if (!seen.includes(b[j])) return [sign("hidden by the mask: "), ...power(a[0]), ...result];
    return [...power(a[0]), sign(" / ("), ...join(seen.map(power), " + "), sign(")"), ...result];
  }
  const terms = join(a.map((cell, m) => [number(...cell), sign(" × "), number(...b[m])]), " + ");
  if (block !== "scores") return [...terms, ...result];
  if (all.scores[i][j] === -Infinity) return [sign("hidden by the mask"), ...result];
  const scaled = given.root ? [sign("("), ...terms, sign(`) / √${a.length}`)] : terms;
  return [...scaled, ...result];
}

// The name of a cell, and what it is computed from, in words. `outputs` names the entries of a value, if they have
// names.
const numbered = (block, j, outputs) => (["v", "out"].includes(block) && outputs[j]) || `number ${j + 1}`;
export function naming([block, i, j], tokens, outputs) {
  const name = NAMES[block], word = `“${tokens[i]}”`;
  if (block.startsWith("w_")) return `${name}, row ${i + 1}, column ${j + 1}`;
  if (["scores", "weights"].includes(block)) return `${name}, ${word} → “${tokens[j]}”`;
  return `${name} of ${word}, ${numbered(block, j, outputs)}`;
}
export function madeOf([block, i, j], tokens, outputs) {
  const word = `“${tokens[i]}”`;
  if (INPUTS.includes(block)) return "";
  if (block === "scores") return ` = query of ${word} · key of “${tokens[j]}”`;
  if (block === "weights") return ` = its share in the softmax of row ${word}`;
  if (block === "out") return ` = weights of ${word} · values, ${numbered(block, j, outputs)}`;
  return ` = x of ${word} · ${NAMES[`w_${block}`]}, column ${j + 1}`;
}

// "scores.3.1" as [block, row, column], if there is such a cell.
export function cellOf(all, text) {
  const [block, ...at] = String(text).split("."), [i, j] = at.map(Number);
  return BLOCKS.includes(block) && at.length === 2 && all[block][i]?.[j] !== undefined ? [block, i, j] : null;
}

// A number as the sheet stores it: two decimals, and no larger than fits a cell.
export const kept = (x) => Math.round(100 * Math.min(MOST, Math.max(-MOST, x))) / 100 || 0;
