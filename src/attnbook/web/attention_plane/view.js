// The drawings of AttentionPlane: arrows in a plane, with grips to drag, and rows of numbers with bars.
import { within } from "../shared/math.js";
import { h, svg, token } from "../shared/ui.js";
import { point, spreadOut, written } from "./numbers.js";

const HALF = 155; // pixels from the middle of a plane to its edge, about
const MARGIN = 1.12; // how far a plane reaches, relative to the largest that a vector may have
const LINE = 15, LETTER = 7.2; // pixels of a label

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}
export const shape = (look) => svg("path", { class: `attn-qkv-${look}` });

// A plane for vectors with numbers in -edge..edge. `shapes` are drawn in it, in order, below the grips.
export function makePlane(edge, shapes, axes = []) {
  const reach = MARGIN * edge, scale = HALF / reach, [across, up] = axes;
  const cross = svg("path", { class: "attn-qkv-cross", d: `M${-HALF} 0H${HALF}M0 ${-HALF}V${HALF}` });
  const viewBox = `${-HALF} ${-HALF} ${2 * HALF} ${2 * HALF}`;
  const drawn = svg("svg", { viewBox, "aria-hidden": "true" }, cross, ...shapes);
  const names = [["across", across], ["up", up]].filter(([, text]) => text).map(([look, text]) =>
    h("span", { className: `attn-qkv-axis attn-qkv-${look}`, "aria-hidden": "true" }, text));
  const node = h("div", { className: "attn-qkv-plane" }, drawn, ...names);
  const at = ([x, y]) => [x * scale, -y * scale]; // in pixels from the middle
  const place = (mark, [x, y]) =>
    Object.assign(mark.style, { left: `${50 + (50 * x) / HALF}%`, top: `${50 + (50 * y) / HALF}%` });

  function arrow(path, to, from = [0, 0]) {
    const [[x, y], [u, v]] = [at(to), at(from)], length = Math.hypot(x - u, y - v), size = Math.min(9, length / 2);
    const [a, b] = [x - u, y - v].map((part) => (size * part) / length || 0);
    const point = `M${x - a + 0.5 * b} ${y - b - 0.5 * a}L${x} ${y}L${x - a - 0.5 * b} ${y - b + 0.5 * a}`;
    set(path, { d: `M${u} ${v}L${x} ${y}${point}` });
  }
  function line(path, ...points) {
    set(path, { d: `M${points.map((each) => at(each).join(" ")).join("L")}` });
  }
  // The whole line through a vector; none for a zero vector.
  function through(path, [x, y]) {
    const far = (2 * reach) / Math.hypot(x, y);
    const ends = [at([-far * x, -far * y]), at([far * x, far * y])];
    set(path, { d: Number.isFinite(far) ? `M${ends[0].join(" ")}L${ends[1].join(" ")}` : "" });
  }
  // The pointer's position.
  function pointAt(event) {
    const box = node.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return [x, y].map((pixels, side) => (side ? -1 : 1) * ((2 * pixels) / box.width - 1) * reach);
  }
  // Places grips at the tips of vectors, and labels beyond the tips, apart from one another.
  function label(grips) {
    const labels = grips.map(({ vector, text }) => {
      const [x, y] = at(vector), out = 20 / (Math.hypot(x, y) || 1), wide = LETTER * [...text].length;
      const far = HALF - wide / 2 - 2;
      const down = within(y + y * out || -20, -HALF + 9, HALF - 9);
      return { x: within(x + x * out * (1 + wide / 45), -far, far), y: down, wide };
    });
    const heights = spreadOut(labels, LINE);
    grips.forEach(({ node: grip, mark, vector, text }, n) => {
      place(grip, at(vector));
      mark.firstChild.textContent = text;
      place(mark, [labels[n].x, Math.min(heights[n], HALF - 8)]);
    });
  }
  return { node, arrow, line, through, pointAt, label };
}

// A grip, a button to drag, and its label.
export function makeGrip(plane, look) {
  const node = h("button", { type: "button", className: `attn-qkv-grip attn-qkv-${look}` });
  const mark = h("span", { className: `attn-qkv-mark attn-qkv-${look}`, "aria-hidden": "true" }, token(""));
  plane.node.append(mark, node);
  return { node, mark };
}
export function nameGrip({ node }, what, vector) {
  const label = `${what} at ${point(vector)}; arrow keys move it`;
  if (node.getAttribute("aria-label") !== label) node.setAttribute("aria-label", label);
}

// A row for each name, with numbers and a bar. `signed` bars have zero in their middle.
export function makeRows(look, heads, names, signed) {
  const lines = names.map((name) => {
    const label = h("span", { className: "attn-qkv-label" }, token(name)), bar = h("i", {});
    const numbers = heads.slice(1, -1).map(() => h("span", { className: "attn-qkv-number" }));
    const last = h("b", { className: "attn-qkv-number" });
    const className = `attn-qkv-track${signed ? " attn-qkv-signed" : ""}`;
    const track = h("span", { className, "aria-hidden": "true" }, bar);
    return { node: h("li", {}, label, ...numbers, track, last), numbers, bar, last };
  });
  const titles = heads.map((text) => h("span", {}, text));
  const head = h("div", { className: "attn-qkv-head", "aria-hidden": "true" }, ...titles);
  const node = h("div", { className: `attn-qkv-rows attn-qkv-${look}` }, head,
    h("ul", { role: "list" }, ...lines.map((line) => line.node)));
  // `share` is the length of the bar relative to the longest, in -1..1.
  function draw(n, numbers, share, last) {
    const { numbers: cells, bar, last: cell } = lines[n], size = 100 * Math.min(1, Math.abs(share));
    cells.forEach((one, at) => (one.textContent = written(numbers[at])));
    cell.textContent = last;
    const from = share < 0 ? 50 - size / 2 : 50;
    Object.assign(bar.style, signed ? { left: `${from}%`, width: `${size / 2}%` } : { left: "0", width: `${size}%` });
  }
  const mark = (n) => lines.forEach(({ node: line }, at) => line.classList.toggle("attn-qkv-chosen", at === n));
  return { node, head, draw, mark };
}
