// The laboratory's two charts: the loss and what is right, of the newest runs of a task.
import { end, lastStep, rightOf, rival } from "./ledger.js";
import { makeChart } from "./view.js";
import { h } from "../shared/ui.js";

const SHOWN = 4; // earlier runs in a chart

// How each run looks: the newest one of the task, the one that it is compared with, all others.
export function looksOf(runs, settings) {
  const latest = runs.findLast((run) => run.settings.task === settings.task && !run.stored);
  const compared = rival(runs.filter((run) => run !== latest), latest?.settings ?? settings);
  const look = (run) => (run === latest ? "attn-now" : run === compared ? "attn-last" : "attn-faint");
  return { latest, look };
}

export function makeCurves() {
  const loss = makeChart("loss on held-out items, nats a token", (test) => test.loss);
  const right = makeChart("held-out items that are right", rightOf, (x) => x);
  const key = h("p", { className: "attn-note attn-keys" });

  // `running` is the run under way, if one is.
  function draw(runs, { task, steps }, { latest, look }, running) {
    const shown = runs.filter((run) => run.settings.task === task).slice(-1 - SHOWN);
    const longest = Math.max(steps, ...shown.map(lastStep)), noise = latest?.seeds[0].losses ?? [];
    const curves = shown.map((run) => ({ seeds: run.seeds, look: look(run) }));
    const said = shown.map((run) => `Run ${run.number}: ${end(run)}`).join(". ");
    loss.draw(curves.map((each, n) => (shown[n] === latest ? { ...each, noise } : each)), longest, said);
    right.draw(curves, longest, said);
    const named = (run) => h("span", {}, h("i", { className: `attn-swatch ${look(run)}` }),
      `run ${run.number}${run.stored ? ", made before" : run === running ? ", now" : ""}`);
    const many = shown.some(({ seeds }) => seeds.length > 1);
    key.replaceChildren(...shown.map(named), h("span", {}, noise.length ? "Thin: the loss of each step." : ""),
      h("span", {}, many ? "A band: from the least to the largest of its seeds." : ""));
  }
  return { nodes: [h("div", { className: "attn-charts" }, loss.node, right.node), key], draw };
}
