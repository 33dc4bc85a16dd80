// The sliders of the filters, which Playground and DecodingBench share.
import { fromSlider } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { LAST_STEP, kAt } from "./row.js";

// `change` receives the trait that a slider sets.
export const makeFilters = (change) => ({
  temperature: slider("temperature", { min: 0, max: 1, step: 0.01 }, (x) => change({ temperature: fromSlider(x) })),
  top_k: slider("top-k", { min: 0, max: LAST_STEP, step: 1 }, (n) => change({ top_k: kAt(n) })),
  top_p: slider("top-p", { min: 0.05, max: 1, step: 0.01 }, (p) => change({ top_p: p })),
  min_p: slider("min-p", { min: 0, max: 0.5, step: 0.01 }, (p) => change({ min_p: p })),
});
