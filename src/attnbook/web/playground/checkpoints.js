// Playground's slider over the checkpoints of its model, each fetched when it is chosen.
import { grouped } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { h } from "../shared/ui.js";

// `checkpoints` have a name and a step; the last one is the end of training. `choose` receives the index of one. If
// there is only one, the slider is hidden.
export function makeCheckpoints(checkpoints, choose) {
  const most = checkpoints.length - 1, whole = checkpoints[most].step;
  const tell = (n) => line.set(n, grouped(checkpoints[n].step));
  const line = slider("training", { min: 0, max: Math.max(1, most), step: 1 }, tell);
  const input = line.node.querySelector("input"), said = h("p", { className: "attn-after" });
  const node = h("div", { hidden: most === 0 }, line.node, said);
  input.addEventListener("change", () => choose(Number(input.value)));
  function draw(n, ready) {
    const { step } = checkpoints[n];
    input.disabled = !ready;
    line.set(n, grouped(step), `after ${step} steps`);
    said.textContent = step === 0 ? "The model before its training: its weights are random numbers."
      : `The model after ${grouped(step)} of ${grouped(whole)} steps of its training.`;
  }
  return { node, draw };
}
