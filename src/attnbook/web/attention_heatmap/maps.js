// The maps of a heatmap: which are on view, what they are called, and the weights in them. No DOM.
import { LEVELS } from "../shared/canvas.js";
import { format, unpackWeights } from "../shared/math.js";

// What a heatmap shows; everything but `weights` stays the same while the widget is on the page.
export function readMaps(model) {
  const axes = model.get("axes"), weights = readWeights(model);
  const split = axes.findIndex(([name]) => name === model.get("compare")); // the axis along which two maps are compared
  return {
    model, axes, weights, split, hidden: new Set(model.get("masked") ?? []), two: split >= 0 || weights.length > 1,
    rows: model.get("query_tokens"), columns: model.get("key_tokens"),
    labels: [model.get("query_label"), model.get("key_label")], what: model.get("weight_label") ?? "weight",
  };
}
export const readWeights = (model) =>
  ["weights", "other"].map((trait) => unpackWeights(model.get(trait))).filter((all) => all.length);

// The index that the selectors choose on each axis, for the first map (m = 0) and the second.
const indexOf = ({ model, split }, m) =>
  model.get("index").map((n, d) => (m > 0 && d === split ? model.get("against") : n));

// The [query, key] map of each kind or, if two are compared, of each side; a kind with only one map always shows it.
export function mapsOnView(view) {
  const { axes, rows, columns, weights, split } = view, area = rows.length * columns.length;
  const slice = (all, m) => {
    if (all.length === area) return all;
    const index = indexOf(view, m), start = axes.reduce((n, [, options], d) => n * options.length + index[d], 0) * area;
    return all.subarray(start, start + area);
  };
  return split < 0 ? weights.map((all) => slice(all, 0)) : [0, 1].map((m) => slice(weights[0], m));
}

export function namesOnView(view) {
  const { model, axes, split } = view;
  if (split < 0) return model.get("names");
  const [name, options] = axes[split];
  const called = (label) => (/^\d+$/.test(label) ? `${name} ${label}` : label); // "head 2"
  return [0, 1].map((m) => called(options[indexOf(view, m)[split]]));
}

// A function that says whether the mask hides cell n of a map, which is a part of `weights`.
export function masking({ weights: [all], hidden }, map) {
  const start = (map.byteOffset - all.byteOffset) / map.BYTES_PER_ELEMENT;
  return (n) => map.buffer === all.buffer && hidden.has(start + n);
}

// A weight as stored in 16 bits, and as text.
export const level = ({ columns }, map, i, j) => map[i * columns.length + j];
export const weight = (view, map, i, j) =>
  (masking(view, map)(i * view.columns.length + j) ? "masked" : format(level(view, map, i, j) / LEVELS));

// The chosen row and column, -1 for none, and those under the pointer or, without one, the chosen ones.
export const chosen = ({ model }) => ({ i: model.get("query"), j: model.get("key") });
export const cursor = (view) => view.hover ?? chosen(view);
