// The curves of costs against the number of tokens, both on logarithmic scales, with rings at measured points.
import { grouped } from "../shared/math.js";
import { axis, curve, dot, follow, move, plot, trace } from "../shared/plot.js";
import { h } from "../shared/ui.js";
import { MOST, counted, curvesOf, stored, timed } from "./costs.js";

export const TICKS = 9;
const STEPS = Array.from({ length: 18 }, (_, k) => 2 ** k); // numbers of tokens at which a curve is computed
const TEXTS = { operations: counted, memory: stored, time: timed };
const along = (n) => Math.log2(n) / Math.log2(MOST[0]);

export const makeGrid = () =>
  Array.from({ length: TICKS }, () => [curve("attn-zero"), h("span", { className: "attn-cost-tick" })]);

// `points` are the measurements; `choose` receives the number of tokens under the pointer.
export function makeChart(points, choose) {
  const lines = [1, 2, 3].map((k) => curve(`attn-cost-line attn-cost-${k}`)), here = curve("attn-faint");
  const grid = makeGrid();
  const ends = lines.map((_, k) => h("span", { className: `attn-cost-end attn-cost-${k + 1}` }));
  const marks = lines.map(() => dot("")), rings = points.map(() => dot("attn-cost-ring"));
  const graph = plot(...grid.map(([line]) => line), here, ...lines);
  graph.append(...grid.map(([, text]) => text), ...ends, ...rings, ...marks);
  follow(graph, (x) => choose(Math.round(MOST[0] ** x)));
  const ticks = axis([1, 16, 256, 4096, MOST[0]].map((n, k) => [along(n), k ? grouped(n) : "1 token"]));
  return { graph, ticks, points, lines, here, grid, ends, marks, rings };
}

// Draws the curves of the chart `which` for the sizes `now`, and rings if the points were measured for the chosen
// settings (`ours`). Returns whether there are rings.
export function drawChart(chart, which, now, ours) {
  const curves = curvesOf(which, now), values = curves.map(({ value }) => STEPS.map(value));
  const measured = chart.points.map((p) =>
    ours && p.batch === now.batch && curves.map((each) => each.measured?.(p)).find(Boolean));
  const every = [...values.flat(), ...measured.filter(Boolean)];
  const low = Math.floor(Math.log10(Math.min(...every))), high = Math.ceil(Math.log10(Math.max(...every)) + 0.01);
  const height = (x) => (Math.log10(x) - low) / (high - low);
  drawGrid(chart.grid, low, high, height, TEXTS[which]);
  drawCurves(chart, curves, values.map((list) => list.map(height)));
  curves.forEach(({ value }, k) => move(chart.marks[k], along(now.n), height(value(now.n))));
  trace(chart.here, [[along(now.n), 0], [along(now.n), 1]]);
  chart.rings.forEach((ring, k) => {
    ring.hidden = !measured[k];
    if (measured[k]) move(ring, along(chart.points[k].n), height(measured[k]));
  });
  return measured.some(Boolean);
}

// Draws a line with its text at every power of ten or, if these are too many, at every second, third ...
export function drawGrid(grid, low, high, height, text) {
  const step = Math.ceil((high - low) / TICKS);
  grid.forEach(([line, tick], k) => {
    const at = low + k * step, shown = at < high;
    trace(line, shown ? [[0, height(10 ** at)], [1, height(10 ** at)]] : []);
    tick.textContent = shown ? text(10 ** at).replace(/\.0+/, "") : "";
    move(tick, 0, shown ? height(10 ** at) : 0);
  });
}

function drawCurves({ lines, ends, marks }, curves, heights) {
  const last = apart(heights.map((list) => list.at(-1)), 0.1);
  lines.forEach((line, k) => {
    trace(line, curves[k] ? STEPS.map((n, i) => [along(n), heights[k][i]]) : []);
    ends[k].textContent = curves[k]?.name ?? "";
    move(ends[k], 1, last[k] ?? 0);
    marks[k].hidden = !curves[k];
  });
}

// Heights of labels, raised where they would be closer than `least`.
export function apart(heights, least) {
  const raised = [...heights], order = heights.map((_, k) => k).sort((a, b) => heights[a] - heights[b]);
  let under = -1;
  for (const k of order) under = raised[k] = Math.max(raised[k], under + least);
  return raised;
}
