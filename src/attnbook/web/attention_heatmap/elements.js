// Parts of a heatmap on the page: selectors, canvases of the maps, the columns as text, the colour scale.
import { visible } from "../shared/math.js";
import { player } from "../shared/play.js";
import { h, put, select } from "../shared/ui.js";

// A selector for each axis, and a second one beside it for the axis along which two maps are compared.
export function makeSelectors({ model, axes, split }) {
  const ordered = model.get("ordered") ?? [], side = (which) => `${axes[split][0]}, map ${which}`;
  const axis = (d, name, change) => (ordered.includes(axes[d][0]) ? player : select)(name, axes[d][1], change);
  const selectors = axes.map(([name], d) => axis(d, d === split ? side(1) : name, (n) => {
    put(model, { index: model.get("index").map((old, other) => (other === d ? n : old)) });
  }));
  if (split >= 0) selectors.push(axis(split, side(2), (n) => put(model, { against: n })));
  const controls = selectors.map(({ node }) => node);
  if (split >= 0) controls.splice(split + 1, 0, controls.pop());
  return { selectors, controls };
}

export function makeCanvases({ model, rows, columns, labels, two }, count) {
  const canvases = Array.from({ length: count }, () => h("canvas", { "aria-hidden": "true" }));
  const stills = canvases.map(() => h("canvas", { className: "attn-still", "aria-hidden": "true" }));
  const application = h("div", {
    className: "attn-maps", tabIndex: 0, role: "application", "aria-roledescription": "attention map",
    "aria-label": `${model.get("title") || "Attention"}. ${rows.length} rows (${labels[0]}), `
      + `${columns.length} columns (${labels[1]}). `
      + "Arrow keys move from cell to cell, Home and End along the row, Escape clears. A table follows.",
  }, ...canvases.map((canvas) => h("div", { className: "attn-map" },
    ...(two ? [h("p", { className: "attn-name" })] : []), canvas)));
  return { application, canvases, stills };
}

// The columns as text, a line for each map.
export function makeTexts({ columns, labels, what, two }, count) {
  const words = Array.from({ length: count }, () =>
    columns.map((text) => h("bdi", { className: "attn-word" }, visible(text))));
  const texts = words.map((line) => h("p", { className: "attn-text" },
    h("span", {}, two ? "" : `${labels[1]}, shaded by ${what}:`), " ", ...line.flatMap((word) => [word, " "])));
  return { words, texts };
}

export function makeScale({ model, what, hidden }) {
  const gradient = h("i", { "aria-hidden": "true" }), end = h("span");
  const scale = h("span", { className: "attn-scale" }, `${what} 0`, gradient, end,
    hidden.size ? "· crossed out: masked" : "");
  const stretch = h("input", { type: "checkbox", onchange: () => put(model, { stretch: stretch.checked }) });
  const stretcher = h("label", { className: "attn-field attn-check" }, stretch, "scale ends at the largest value");
  return { gradient, end, scale, stretch, stretcher };
}
