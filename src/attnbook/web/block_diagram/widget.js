// BlockDiagram: encoder and decoder block, whose parts switch to the run of a model trained without them.
import PARTS from "./parts.json" with { type: "json" };
import { format } from "../shared/math.js";
import { axis, curve, plot, trace } from "../shared/plot.js";
import { h, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { drawWires, makeDiagram, markOff } from "./diagram.js";
import { translation } from "./translations.js";

const NAMES = {
  "": "Whole model", mask: "Without the mask", residual: "Without residual connections", norm: "Without layer norm",
  scale: "Without the scale 1/√(d/h)",
};

// ---- runs
const leavesOut = (runs, part) => runs.some(({ off }) => off.includes(part));
const runWithout = (runs, part) => runs.find(({ off }) => (off[0] ?? "") === part);
const nameWithout = (part, heads) =>
  (part === "heads" ? `With one head, not ${heads}` : NAMES[part] ?? `Without ${part}`);
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

// ---- curves of the loss on a logarithmic scale: of the run on view and, dashed, of the whole model
function makeCurves(runs) {
  const losses = runs.flatMap(({ loss }) => loss.flat()), high = Math.max(...losses);
  const low = Math.max(high / 1e5, Math.min(...losses.filter((x) => x > 0))); // nothing is drawn below
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

// ---- elements
function build(model, { bar }, choose) {
  const title = model.get("title"), runs = model.get("runs"), curves = makeCurves(runs);
  const diagram = makeDiagram({
    heads: model.get("n_heads"), times: model.get("n_layers"), pre: model.get("norm") === "pre",
    known: (part) => leavesOut(runs, part), choose,
  });
  const readout = h("p", { className: "attn-readout" }), legend = h("p", { className: "attn-legend" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const list = h("ul", { className: "attn-translations", role: "list" });
  const root = h("div", { className: "attn attn-diagram", role: "group", "aria-label": title || "Transformer block" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []), readout,
    h("div", { className: "attn-results" }, diagram.node,
      h("div", {}, legend, curves.graph, curves.ticks, list)), heard, bar);
  return { root, diagram, curves, readout, legend, heard, list };
}

const linkedState = (model, el) => stateControls(el, model.get("name"),
  () => ({ off: [PARTS.indexOf(model.get("off")) + 1] }),
  ({ off: [n] }) => put(model, { off: leavesOut(model.get("runs"), PARTS[n - 1]) ? PARTS[n - 1] : "" }));

// ---- drawing
function draw(model, { diagram, curves, readout, legend, list }) {
  const runs = model.get("runs"), off = model.get("off"), run = runWithout(runs, off), { exact } = run;
  const name = nameWithout(off, model.get("n_heads"));
  markOff(diagram, off);
  curves.draw(run, off ? runs[0] : null);
  const seeds = exact.length > 1 ? ` (seeds ${exact.map((x) => format(x)).join(", ")})` : "";
  readout.replaceChildren(`${name}: exactly right `, h("b", {}, format(mean(exact))), seeds,
    off ? ` · whole model ${format(mean(runs[0].exact))}` : " · switch a part off in the diagram");
  legend.replaceChildren("Stored runs: each model was trained anew. Loss on a logarithmic scale, solid: ",
    h("b", { className: "attn-run" }, name[0].toLowerCase() + name.slice(1)),
    ...(off ? ["; dashed: whole model"] : []),
    curves.seeds > 1 ? "; thin: each seed." : ".");
  list.replaceChildren(...run.translations.map(translation));
}

function render({ model, el }) {
  const link = linkedState(model, el), parts = build(model, link, choose);
  function choose(part) {
    put(model, { off: model.get("off") === part ? "" : part });
    ask.now();
    parts.heard.textContent = parts.readout.textContent;
  }
  const ask = onceAFrame(() => draw(model, parts));
  const sized = () => {
    drawWires(parts.diagram);
    markOff(parts.diagram, model.get("off"));
  };
  const changes = { off: ask, runs: (again) => again() };
  return live({ model, el, root: parts.root, state: link, ask, changes, box: parts.diagram.node, sized, render });
}

export default { render };
