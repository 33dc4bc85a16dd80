// The drawings of RotaryDial: q and k as arrows in the plane, and the scores of all pairs by distance.
import { format, within } from "../shared/math.js";
import { axis, curve, dot, move, plot, trace } from "../shared/plot.js";
import { inner } from "../shared/positions.js";
import { h, svg } from "../shared/ui.js";
import { LAST, subscript } from "./numbers.js";

const EDGE = 3.05; // the largest coordinate

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

function drawArrow(path, [x, y]) {
  const length = Math.hypot(x, y), size = Math.min(0.2, length / 2);
  const [a, b] = [x, y].map((part) => (size * part) / length || 0);
  const barb = (side) => `M${x} ${-y}L${x - a - 0.5 * side * b} ${-(y - b + 0.5 * side * a)}`;
  path.setAttribute("d", `M0 0L${x} ${-y}${barb(1)}${barb(-1)}`);
}

// An arc from k to q, the short way round.
function drawAngle(arc, [[x, y], [u, v]]) {
  const from = Math.atan2(v, u), by = Math.atan2(inner([-v, u], [x, y]), inner([u, v], [x, y]));
  const at = (t) => `${0.45 * Math.cos(from + t)} ${-0.45 * Math.sin(from + t)}`;
  arc.setAttribute("d", `M${at(0)}A0.45 0.45 0 0 ${by > 0 ? 0 : 1} ${at(by)}`);
}

// Places a label beyond the tip of an arrow, to one side of it (1 or -1). Words keep clear of the handle.
function placeLabel(label, [x, y], side, hasWords) {
  const out = 0.26 / (Math.hypot(x, y) || 1), aside = side * out, far = hasWords ? 1.9 : 1;
  const half = hasWords ? 0.08 * label.textContent.length : 0, edge = EDGE - half; // half of the label's width
  const across = x + x * out * (far + 3 * half) - y * aside;
  set(label, { x: within(across, -edge, edge), y: -y - far * y * out - x * aside });
}

// The plane with q and k: dashed without positions, solid with them. `words` names the two tokens.
export function makePlane(words) {
  const shapes = ["q", "k"].map((name, n) => ({
    name, words: words[n],
    orbit: svg("circle", { class: "attn-orbit" }),
    start: svg("path", { class: `attn-arrow attn-start attn-${name}` }),
    now: svg("path", { class: `attn-arrow attn-${name}` }),
    label: svg("text", { class: `attn-name attn-${name}` }),
    handle: h("button", { type: "button", className: `attn-handle attn-${name}` }, name),
  }));
  const arc = svg("path", { class: "attn-angle" });
  const cross = svg("path", { class: "attn-cross", d: `M${-EDGE} 0H${EDGE}M0 ${-EDGE}V${EDGE}` });
  const node = h("div", { className: "attn-plane" },
    svg("svg", { viewBox: `${-EDGE} ${-EDGE} ${2 * EDGE} ${2 * EDGE}`, "aria-hidden": "true" }, cross, arc,
      ...shapes.flatMap(({ orbit, start, now, label }) => [orbit, start, now, label])),
    ...shapes.map(({ handle }) => handle));

  // `given` holds q and k, `now` both at their positions; if `adds`, a vector lies on a circle around its start.
  function draw({ given, now, positions, adds }) {
    const side = Math.sign(inner([-now[1][1], now[1][0]], now[0])) || 1; // the labels lie on opposite sides
    drawAngle(arc, now);
    shapes.forEach((shape, n) => {
      const [x, y] = given[n];
      set(shape.orbit, adds ? { cx: x, cy: -y, r: 1 } : { cx: 0, cy: 0, r: Math.hypot(x, y) });
      drawArrow(shape.start, given[n]);
      drawArrow(shape.now, now[n]);
      shape.label.textContent = `${shape.name}${subscript(positions[n])} ${shape.words}`.trim();
      placeLabel(shape.label, now[n], n ? -side : side, shape.words);
      move(shape.handle, 0.5 + x / (2 * EDGE), 0.5 + y / (2 * EDGE));
      const here = given[n].map((part) => format(part, 2)).join(", ");
      shape.handle.setAttribute("aria-label", `${shape.name} at ${here}; arrow keys move it`);
    });
  }
  // The point of the plane under the pointer.
  function pointAt(event) {
    const box = node.getBoundingClientRect(), scale = (2 * EDGE) / box.width;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((pixels) => pixels * scale - EDGE);
    return [x, -y];
  }
  return { node, draw, pointAt, handles: shapes.map(({ handle }) => handle) };
}

// The least and greatest scores at each distance as a band, and the current score as a dot.
export function makeScores() {
  const band = svg("polygon", { class: "attn-band" }), zero = curve("attn-zero"), present = dot("");
  const node = plot(zero, band), along = (distance) => 0.5 + distance / (2 * LAST);
  const labels = [-LAST, -LAST / 2, 0, LAST / 2, LAST];
  const below = axis(labels.map((x) => [along(x), x > 0 ? `+${x}` : String(x).replace("-", "−")]));
  node.append(present);
  trace(zero, [[0, 0.5], [1, 0.5]]);

  function draw({ low, high }, distance, score, most) {
    const height = (value) => 0.5 + value / (2 * most);
    const edge = (values) => Array.from(values, (value, n) => [along(n - LAST), height(value)]);
    trace(band, [...edge(high), ...edge(low).reverse()]);
    move(present, along(distance), height(score));
    Object.assign(node.dataset, { high: format(most, 2), low: format(-most, 2).replace("-", "−") });
  }
  return { node, below, draw };
}
