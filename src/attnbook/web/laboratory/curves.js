// The laboratory's charts: the loss and the share right, against steps or operations; and the loss against size.
import { atCost, bestOfSizes, bestWritten, operationsWritten, power, span } from "./compute.js";
import { end } from "./ledger.js";
import { lastStep, rightOf } from "./verdict.js";
import { below, levels, makeChart, scaleOf } from "./view.js";
import { format, grouped, within } from "../shared/math.js";
import { curve, dot, move, plot, slider, trace } from "../shared/plot.js";
import { h, select } from "../shared/ui.js";

const SHOWN = 6; // most runs in a chart of steps
const COLOURS = 8;
export const VIEWS = ["steps", "compute", "size"];
const NAMES = ["steps", "compute: operations", "size, at equal compute"];

// How each run looks: its number sets its colour; the reader's newest one of the task is drawn thicker.
export function looksOf(runs, { task }) {
  const latest = runs.findLast((run) => run.settings.task === task && !run.stored);
  const look = (run) => `attn-run-${(run.number - 1) % COLOURS}${run === latest ? " attn-now" : ""}`;
  return { latest, look };
}

export function makeCurves(choose) {
  const loss = makeChart("loss on held-out items, nats a token", (test) => test.loss);
  const right = makeChart("held-out items that are right", rightOf, (x) => x), sizes = makeSizes();
  const key = h("p", { className: "attn-note attn-keys" });
  const against = select("draw them against", NAMES, (n) => choose(VIEWS[n]));
  const charts = h("div", { className: "attn-charts" }, loss.node, right.node);

  // `running` is the run in progress, if there is one.
  function draw(runs, { task, steps }, { latest, look }, running, view) {
    const mine = runs.filter((run) => run.settings.task === task);
    const shown = view === "steps" ? mine.slice(-SHOWN) : mine.filter((run) => run.sizes);
    against.list.selectedIndex = VIEWS.indexOf(view);
    [charts.hidden, sizes.node.hidden] = [view === "size", view !== "size"];
    if (view === "size") sizes.draw(shown, look);
    else {
      const across = view === "steps" ? bySteps(Math.max(steps, ...shown.map(lastStep))) : byCost(shown);
      const curves = shown.map((run) => ({ run, look: look(run), noise: run === latest ? run.seeds[0].losses : [] }));
      const said = shown.map((run) => `Run ${run.number}: ${end(run)}`).join(". ");
      for (const chart of [loss, right]) chart.draw(chart === loss ? curves : curves.map(quiet), across, said);
    }
    const named = (run) => h("span", {}, h("i", { className: `attn-swatch ${look(run)}` }),
      `run ${run.number}${view === "size" ? `: ${grouped(run.sizes.body)} parameters` : ""}`
      + (run.stored ? ", made before" : run === running ? ", now" : ""));
    const many = shown.some(({ seeds }) => seeds.length > 1), thin = view === "steps" && latest?.seeds[0].losses.length;
    key.replaceChildren(...shown.map(named), h("span", {}, thin ? "Thin: the loss of each step." : ""),
      h("span", {}, many ? "A band: from the least to the largest of its seeds." : ""));
  }
  return { nodes: [against.node, charts, sizes.node, key], draw };
}
const quiet = (each) => ({ ...each, noise: [] });

// Horizontal positions in a chart, 0 to 1, and what is written below it.
const bySteps = (steps) => ({
  at: (run, step) => step / steps, from: 0, marks: [[0, "0"], [0.5, String(steps / 2)], [1, `${steps} steps`]],
});
function byCost(runs) {
  const [least, most] = span(runs) ?? [1e8, 1e10], across = scaleOf(least, most);
  return {
    at: ({ sizes }, step) => (sizes ? across.at(step * sizes.operations) : NaN), from: 1,
    unit: "operations", marks: across.decades.map((n) => [across.at(10 ** n), power(n)]),
  };
}

// A logarithmic scale around numbers, with room at its ends, that contains at least one power of ten.
function roomy(numbers) {
  const low = Math.min(...numbers, Infinity), high = Math.max(...numbers, 0);
  if (!high) return scaleOf(0.1, 10);
  const decade = 10 ** Math.round(Math.log10(Math.sqrt(Math.max(low, 1e-6) * high)));
  return scaleOf(Math.min(Math.max(low, 1e-6) / 1.5, decade), Math.max(1.5 * high, decade));
}

// The loss of each run after a number of operations, against the size of its blocks.
function makeSizes() {
  let place = null, last = null; // where the slider was left, 0 to 1
  const title = h("p"), box = plot(), ticks = h("div", { className: "attn-levels" }), under = h("div");
  const picture = box.querySelector("svg"), said = h("p", { className: "attn-best", role: "status" });
  const chart = h("div", { className: "attn-chart", role: "img" }, title, box, under);
  const budget = slider("operations", { min: 0, max: 1, step: 0.01 }, (x) => ((place = x), draw(...last)));
  const node = h("div", { className: "attn-sizes" }, budget.node, chart, said);
  box.append(ticks);

  function draw(runs, look) {
    last = [runs, look];
    const [least, most] = span(runs) ?? [1e8, 1e10], reached = runs.map((run) => span([run])?.[1] ?? Infinity);
    const width = Math.log(most / least) || 1, shared = Math.min(most, ...reached);
    const at = place ?? within(Math.log(shared / least) / width, 0, 1);
    const cost = place === null ? within(shared, least, most) : Math.min(most, least * Math.exp(at * width));
    const points = atCost(runs, cost), dots = box.querySelectorAll(".attn-point");
    budget.set(at, operationsWritten(cost), `${operationsWritten(cost)} operations`);
    title.textContent = `loss on held-out items after ${operationsWritten(cost)} operations, nats a token, `
      + "against parameters in the blocks";
    said.textContent = bestWritten(points, cost);
    for (const old of dots) old.remove();
    const all = points.flatMap((point) => [point.least, point.most]);
    const bodies = runs.flatMap(({ sizes }) => sizes?.body ?? []);
    const [up, across] = [all, bodies].map(roomy);
    const line = curve("attn-faint"), x = ({ run }) => across.at(run.sizes.body);
    trace(line, bestOfSizes(points).map((point) => [x(point), up.at(point.mean)]));
    picture.replaceChildren(line, ...points.map((point) => {
      const spread = curve(look(point.run));
      trace(spread, [[x(point), up.at(point.least)], [x(point), up.at(point.most)]]);
      return spread;
    }));
    for (const point of points) {
      const mark = dot(look(point.run));
      move(mark, x(point), up.at(point.mean));
      box.append(mark);
    }
    levels(ticks, up.decades.map((n) => [up.at(10 ** n), String(Number(`1e${n}`))]));
    below(under, across.decades.map((n) => [across.at(10 ** n), grouped(10 ** n)]));
    const tell = ({ run, mean }) => `run ${run.number}, ${grouped(run.sizes.body)} parameters: ${format(mean)}`;
    const heard = points.map(tell).join("; ");
    chart.setAttribute("aria-label", `${title.textContent}. ${heard}`);
  }
  return { node, draw };
}
