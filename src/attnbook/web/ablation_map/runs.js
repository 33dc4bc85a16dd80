// What a part is for: the stored run of a model without it, and its loss beside the whole model's.
import { format } from "../shared/math.js";
import { axis, curve, plot, trace } from "../shared/plot.js";
import { h } from "../shared/ui.js";
import { translation } from "./translations.js";

const NAMES = {
  "": "Whole model", add: "Without add (residual connections)", norm: "Without layer norm",
  mask: "Without the causal mask",
  attention: "Without self-attention", cross: "Without cross-attention", positions: "Without positions",
  heads: "With one head",
};

const runWithout = (runs, part) => runs.find(({ off }) => (off[0] ?? "") === part);
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

// ---- curves of the loss on a logarithmic scale, for the run on view and, dashed, for the whole model
function makeCurves(runs) {
  const losses = runs.flatMap(({ loss }) => loss.flat()), high = Math.max(...losses);
  const low = Math.max(high / 1e5, Math.min(...losses.filter((x) => x > 0))); // lower losses are drawn here
  const last = Math.max(...runs.map(({ steps }) => steps.at(-1)));
  const height = (loss) => 0.03 + 0.94 * Math.log(Math.max(loss, low) / low) / (Math.log(high / low) || 1);
  const seeds = Math.max(...runs.map(({ loss }) => loss.length));
  const [whole, present] = ["attn-whole", "attn-run"].map((look) => ({
    thin: Array.from({ length: seeds }, () => curve(`${look} attn-thin`)), thick: curve(look),
  }));
  const graph = plot(...[whole, present].flatMap(({ thin, thick }) => [...thin, thick]));
  const written = (x) => String(Number(x.toPrecision(2)));
  Object.assign(graph.dataset, { high: written(high), low: written(low) });
  const ticks = axis([0, 0.5, 1].map((x) => [x, x === 1 ? `step ${last}` : String(Math.round(x * last))]));
  function draw({ thin, thick }, { steps, loss }) {
    const points = (values) => values.map((y, n) => [steps[n] / last, height(y)]);
    thin.forEach((line, n) => trace(line, loss.length > 1 && loss[n] ? points(loss[n]) : []));
    trace(thick, points(steps.map((_, n) => mean(loss.map((values) => values[n])))));
  }
  return { graph, ticks, seeds, draw: (run, other) => {
    draw(present, run);
    draw(whole, other ?? { steps: [], loss: [[]] });
  } };
}

export function makeRuns(runs) {
  const curves = makeCurves(runs), legend = h("p", { className: "attn-legend" });
  const list = h("ul", { className: "attn-translations", role: "list" });
  const node = h("div", {}, legend, curves.graph, curves.ticks, list);
  const name = (off) => NAMES[off] ?? `Without ${off}`;
  function draw(off) {
    const run = runWithout(runs, off);
    curves.draw(run, off ? runs[0] : null);
    legend.replaceChildren("Stored runs: each model was trained anew. Training loss, on a logarithmic scale; thick: ",
      h("b", { className: "attn-run" }, name(off)[0].toLowerCase() + name(off).slice(1)),
      ...(off ? ["; dashed: whole model"] : []),
      curves.seeds > 1 ? "; thin: each seed." : ".");
    list.replaceChildren(...run.translations.map(translation));
  }
  function said(off) {
    const { exact } = runWithout(runs, off);
    const seeds = exact.length > 1 ? ` (seeds ${exact.map((x) => format(x)).join(", ")})` : "";
    const rest = off ? `whole model ${format(mean(runs[0].exact))}` : "press a part of the drawing to take it away";
    return [`${name(off)}: exactly right `, h("b", {}, format(mean(exact))), `${seeds} · ${rest}`];
  }
  return { node, draw, said };
}
