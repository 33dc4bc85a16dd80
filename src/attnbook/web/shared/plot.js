// Parts of a widget: sliders with their values, curves with an axis, dots, and a function that follows the pointer.
import { within } from "./math.js";
import { h, svg, write } from "./ui.js";

// `set` moves it, writes the value beside it and announces it.
export function slider(label, range, oninput) {
  const input = h("input", { type: "range", ...range, oninput: () => oninput(Number(input.value)) });
  const value = h("span", { className: "attn-value", "aria-hidden": "true" });
  const node = h("div", { className: "attn-slider" }, h("label", {}, h("span", {}, label), input), value);
  const set = (at, text, spoken = text) => {
    input.value = at;
    write(value, text);
    input.setAttribute("aria-valuetext", spoken);
  };
  return { node, set };
}

// Drawings in a box of 100 x 100 that is stretched to fit, with points given as fractions of its width and height. The
// box's `data-high` and `data-low` say what its top and bottom stand for.
export const plot = (...children) => h("div", { className: "attn-graph", "aria-hidden": "true" },
  svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, ...children));
export const curve = (look) => svg("polyline", { class: `attn-line ${look}` });
export function trace(line, points) {
  const written = points.map(([x, y]) => `${(100 * x).toFixed(2)},${(100 * (1 - y)).toFixed(2)}`);
  line.setAttribute("points", written.join(" "));
}

// A dot that is not stretched, and labels below an axis.
export const dot = (look) => h("i", { className: `attn-point ${look}`, "aria-hidden": "true" });
export const move = (node, x, y) => Object.assign(node.style, { left: `${100 * x}%`, top: `${100 * (1 - y)}%` });
export function axis(labels) {
  return h("div", { className: "attn-axis", "aria-hidden": "true" }, ...labels.map(([x, text]) => {
    const label = h("span", {}, text);
    label.style.left = `${100 * x}%`;
    return label;
  }));
}

// Calls `choose` with the point where a pointer clicks or drags, as fractions of the width and height.
export function follow(node, choose) {
  const at = (event) => {
    const box = node.getBoundingClientRect();
    choose(within((event.clientX - box.left) / box.width, 0, 1), within((event.clientY - box.top) / box.height, 0, 1));
  };
  node.classList.add("attn-follow");
  node.addEventListener("click", at);
  node.addEventListener("pointermove", (event) => event.buttons && at(event));
}
