// The roofline: the operations per second that a machine can reach, against the operations of a pass per byte it reads.
import { grouped } from "../shared/math.js";
import { axis, curve, dot, move, plot, trace } from "../shared/plot.js";
import { h, write } from "../shared/ui.js";
import { TICKS, drawGrid, makeGrid } from "./chart.js";
import { PASSES, SHORT, rated, roofline, scaled, stored } from "./costs.js";

const SIDES = ["memory", "arithmetic", "ridge"]; // labels: what bounds a pass on each side of the ridge, and the ridge
const FEWEST = [-1, 4]; // powers of ten that are always on the axis
const NEAR = 0.35; // share of the width that a label takes on a phone

export function makeRoof() {
  const grid = makeGrid(), roof = curve("attn-cost-roof"), ridge = curve("attn-faint");
  const points = PASSES.map((name, k) => ({
    mark: dot(`attn-cost-pass-${k + 1}`), label: h("span", { className: "attn-cost-label" }, name),
    said: h("p", { className: "attn-cost-said" }),
  }));
  const sides = SIDES.map((name) => h("span", { className: `attn-cost-side attn-cost-${name}` }, name));
  const graph = plot(...grid.map(([line]) => line), ridge, roof), ticks = axis([]);
  graph.append(...grid.map(([, text]) => text), ...sides, ...points.flatMap(({ mark, label }) => [label, mark]));
  const legend = h("p", { className: "attn-legend" }), picture = h("div", { role: "img" }, graph, ticks);
  const node = h("div", { className: "attn-cost-roofline" }, legend, picture, ...points.map(({ said }) => said));
  return { node, legend, picture, grid, roof, ridge, points, sides, ticks };
}

export function drawRoof(parts, now) {
  const { speed, bandwidth } = now, ridge = speed / bandwidth, passes = roofline(now);
  const { low, high, bottom, top, along, height } = scales(now, ridge, passes);
  const corner = [along(ridge), height(speed)];
  drawGrid(parts.grid, bottom, top, height, (x) => scaled(x, SHORT));
  parts.ticks.replaceChildren(...axis(powers(low, high).map((k) => [along(10 ** k), written(k)])).childNodes);
  trace(parts.roof, [[0, height(bandwidth * 10 ** low)], corner, [1, corner[1]]]);
  trace(parts.ridge, [[corner[0], 0], corner]);
  for (const side of parts.sides) move(side, corner[0], 0);
  write(parts.sides[2], `ridge: ${rated(ridge, SHORT)}`);
  parts.sides[2].classList.toggle("attn-cost-left", corner[0] > 1 - NEAR);
  drawPasses(parts.points, passes.map(({ intensity, reached }) => [along(intensity), height(reached)]));
  tell(parts, now, ridge, passes);
}

// Both axes are logarithmic, with room around the ridge and above the roof.
function scales({ speed, bandwidth }, ridge, passes) {
  const every = passes.map(({ intensity }) => Math.log10(intensity)), bend = Math.log10(ridge);
  const low = Math.floor(Math.min(FEWEST[0], bend - 1.5, ...every));
  const high = Math.ceil(Math.max(FEWEST[1], bend + 1.5, ...every.map((x) => x + 0.1)));
  const bottom = Math.floor(Math.log10(bandwidth) + low), peak = Math.log10(speed);
  const top = Math.ceil(peak + 0.2 * (peak - bottom));
  return {
    low, high, bottom, top,
    along: (x) => (Math.log10(x) - low) / (high - low), height: (x) => (Math.log10(x) - bottom) / (top - bottom),
  };
}
function powers(low, high) {
  const step = Math.ceil((high - low) / TICKS);
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, k) => low + k * step);
}
const written = (k) => (k < 0 ? String(Number(`1e${k}`)) : scaled(10 ** k, SHORT).replace(/\.0+/, ""));

// A label avoids the roof: it goes below and right of its point or, near the right edge, above and left of it. Of two
// close labels the first makes way.
function drawPasses(points, places) {
  const above = places.map(([x]) => x > 1 - NEAR);
  const close = above[0] === above[1] && places[0].every((at, k) => Math.abs(at - places[1][k]) < [NEAR, 0.08][k]);
  points.forEach(({ mark, label }, k) => {
    move(mark, ...places[k]);
    move(label, ...places[k]);
    const away = close && !k ? " attn-cost-away" : "";
    label.className = `attn-cost-label attn-cost-${above[k] ? "above" : "below"}${away}`;
  });
}

function tell({ legend, picture, points }, { n, speed, bandwidth }, ridge, passes) {
  write(legend, "Upward: operations a second, at most. To the right: operations for each byte that is read. "
    + `On the slope memory bounds: ${stored(bandwidth)} a second times the operations a byte. `
    + `The flat part is the peak, ${scaled(speed, SHORT)} operations a second. `
    + `They meet at the ridge, ${rated(ridge)} operations a byte.`);
  passes.forEach(({ intensity, reached, bound }, k) => {
    const what = k ? "Writing a token" : `Reading the prompt (${grouped(n)} ${n > 1 ? "tokens" : "token"})`;
    points[k].said.replaceChildren(`${what}: ${rated(intensity)} operations a byte, bound by `, h("b", {}, bound),
      `: at most ${scaled(reached, SHORT)} operations a second, ${rated((100 * reached) / speed)} % of the peak.`);
  });
  const words = [legend, ...points.map(({ said }) => said)].map(({ textContent }) => textContent);
  picture.setAttribute("aria-label", `Roofline, both axes logarithmic. ${words.join(" ")}`);
}
