// The three parts of Playground that can be folded, and their contents.
import { format, grouped, toSlider } from "../shared/math.js";
import { h } from "../shared/ui.js";
import { stepOf } from "./row.js";

const FOLDS = { filters: "Filters", places: "Every place", inside: "Inside" };
const NAMES = Object.keys(FOLDS);

// The open parts as a number for a link, one bit for each part; and their names from that number.
export const packFolds = (open) => NAMES.reduce((sum, name, n) => sum + (open.includes(name) ? 2 ** n : 0), 0);
export const unpackFolds = (bits) => NAMES.filter((_, n) => (bits >> n) & 1);

// `bodies` holds lists of nodes by name. `read` returns the names of the parts to open; `change` receives new ones.
export function makeFolds(bodies, read, change) {
  const fold = (name) => {
    const ontoggle = () => {
      const open = NAMES.filter((each) => folds[each].open);
      if (String(open) !== String(read())) change(open);
    };
    return h("details", { className: "attn-fold", ontoggle }, h("summary", {}, FOLDS[name]), ...bodies[name]);
  };
  const folds = Object.fromEntries(NAMES.map((name) => [name, fold(name)]));
  // Not at each drawing: the reader's toggle is told a task later, and a drawing in between would fold it again.
  function draw() {
    for (const name of NAMES) folds[name].open = read().includes(name);
  }
  draw();
  return { nodes: Object.values(folds), draw };
}

// What a filter does, in words.
const warmthWritten = (t) => (t < 1 ? "Below 1: the likely become likelier."
  : t > 1 ? "Above 1: the unlikely get a chance." : "At 1 as the model says.");
const leftWritten = ({ count, mass }, size) =>
  `leaves ${grouped(count)} of ${grouped(size)}, ${format(mass)} of the probability`;

// The sliders of `makeFilters`, each with a line below that says what it does.
export function makeEffects(filters) {
  const lines = Object.fromEntries(Object.keys(filters).map((name) => [name, h("p", { className: "attn-after" })]));
  function draw({ stages, size }, { temperature, topK, topP, minP }) {
    filters.temperature.set(toSlider(temperature), format(temperature, 2));
    filters.top_k.set(stepOf(topK), topK ? String(topK) : "all");
    filters.top_p.set(topP, topP < 1 ? format(topP, 2) : "all");
    filters.min_p.set(minP, minP > 0 ? format(minP, 2) : "0");
    lines.temperature.textContent = warmthWritten(temperature);
    lines.top_k.textContent = topK > 0 ? leftWritten(stages.topK, size) : "off";
    lines.top_p.textContent = topP < 1 ? leftWritten(stages.topP, size) : "off";
    lines.min_p.textContent = minP > 0 ? leftWritten(stages.minP, size) : "off";
  }
  return { nodes: Object.keys(filters).flatMap((name) => [filters[name].node, lines[name]]), draw };
}
