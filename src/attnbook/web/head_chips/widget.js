// HeadChips: the heads of a small model as chips to switch off, and its training as a slider that can play.
import { format, ramp, within } from "../shared/math.js";
import { playing } from "../shared/play.js";
import { axis, curve, dot, follow, move, plot, slider, trace } from "../shared/plot.js";
import { disable, h, isDark, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";

const PAUSE = 350; // milliseconds per checkpoint during play

// ---- the training, which does not change while the widget is on the page, and what is read from it
function readTraining(model) {
  const [steps, losses, maps] = ["steps", "losses", "maps"].map((trait) => model.get(trait));
  const scores = Object.entries(model.get("scores")), heads = scores[0][1][0].length;
  const side = Math.sqrt(maps.byteLength / steps.length / heads); // of a thumbnail, in pixels
  return { steps, losses, maps, scores, heads, side, last: steps.length - 1, highest: Math.max(...losses) };
}
const checkpointOf = (model, { last }) => within(model.get("at"), 0, last);

// The number of the stored set with these heads: bit l is set for head l.
export const setOf = (off) => off.reduce((sum, head) => sum | (1 << head), 0);
const headsIn = (set, heads) => Array.from({ length: heads }, (_, head) => head).filter((head) => (set >> head) & 1);
const toggled = (off, head) =>
  (off.includes(head) ? off.filter((other) => other !== head) : [...off, head].sort((a, b) => a - b));

// The accuracy at a checkpoint with the heads `off` replaced by zeros or, if the trait `mean` is set, by their means.
function shareRight(model, { heads }, checkpoint, off) {
  const place = 2 * (((2 * checkpoint + Number(model.get("mean"))) << heads) + setOf(off));
  return model.get("right").getUint16(place, true) / 65535;
}

// ---- elements; `go` receives a checkpoint, `tell` traits that change what the text says
function makeChip(side, choose) {
  const canvas = h("canvas", { width: side, height: side, "aria-hidden": "true" });
  const [name, score, without] = ["b", "span", "span"].map((tag) => h(tag));
  const node = h("button", { type: "button", className: "chips-chip", onclick: choose }, canvas, name, score, without);
  return { node, canvas, name, score, without };
}

const across = (checkpoint, { last }) => checkpoint / last; // checkpoints are evenly spaced, whatever their steps
function makeGraph(training, go) {
  const { steps, last } = training, dots = [dot("chips-loss"), dot("chips-right")];
  const lines = [curve("chips-right"), curve("chips-loss")], graph = plot(...lines);
  graph.append(...dots);
  follow(graph, (x) => go(Math.round(x * last)));
  const ticks = axis([0, 0.5, 1].map((x) => {
    const n = Math.round(x * last);
    return [across(n, training), x === 1 ? `step ${steps[n]}` : String(steps[n])];
  }));
  return { graph, ticks, dots, lines };
}

function makePlay(model, training) {
  return playing("Play", PAUSE, () => {
    const n = checkpointOf(model, training), { last } = training;
    put(model, { at: n < last ? n + 1 : 0 });
    return n !== last - 1;
  });
}

function build(model, training, { bar }, tell) {
  const title = model.get("title"), play = makePlay(model, training);
  const go = (checkpoint) => { play.stop(); put(model, { at: checkpoint }); };
  const readout = h("p", { className: "attn-readout chips-readout" });
  const chips = Array.from({ length: training.heads }, (_, head) =>
    makeChip(training.side, () => tell({ off: toggled(model.get("off"), head) })));
  const curves = makeGraph(training, go), time = slider("step", { min: 0, max: training.last, step: 1 }, go);
  const instead = select("A silenced head leaves", ["nothing", "its average result"], (n) => tell({ mean: n === 1 }));
  const all = h("button", { type: "button", onclick: () => tell({ off: [] }) }, "All heads on");
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const legend = h("p", { className: "attn-legend" }, h("b", { className: "chips-loss" }, "Loss of the whole model"),
    ` (top: ${format(training.highest, 1)}) and `,
    h("b", { className: "chips-right" }, "share right with the heads that are on"),
    " (top: 1), at each kept step (drawn at equal distances, whatever lies between them).");
  const root = h("div", { className: "attn chips", role: "group", "aria-label": title || "Heads" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []), readout,
    h("div", { className: "chips-all", role: "group", "aria-label": "Heads: press to silence" },
      ...chips.map(({ node }) => node)),
    h("div", { className: "attn-row chips-how" }, instead.node, all), legend, curves.graph, curves.ticks,
    h("div", { className: "chips-time" }, time.node, play.node), heard, bar);
  return { root, readout, chips, curves, time, play, instead, all, heard };
}

const linkedState = (model, el, { heads, last }, stop) => stateControls(el, model.get("name"),
  () => ({ at: [model.get("at")], off: [setOf(model.get("off"))], mean: [Number(model.get("mean"))] }),
  ({ at: [n], off: [set], mean: [on] }) => {
    stop();
    put(model, { at: within(Math.trunc(n), 0, last), off: headsIn(Math.trunc(set), heads), mean: on > 0 });
  });

// ---- drawing
function readoutOf(model, training) {
  const off = model.get("off"), n = checkpointOf(model, training);
  const right = (silent) => format(shareRight(model, training, n, silent), 2);
  const start = [`Step ${training.steps[n]}: loss ${format(training.losses[n], 2)}. Right: all heads `,
    h("b", {}, right([]))];
  if (!off.length) return [...start, ". Press a head to silence it."];
  const names = `head${off.length > 1 ? "s" : ""} ${off.map((head) => head + 1).join(", ")}`;
  const alone = off.map((head) => `${head + 1}: ${right([head])}`).join(", ");
  return [...start, `, without ${names} `, h("b", {}, right(off)), off.length === 2 ? ` (alone ${alone}).` : "."];
}

function drawChip({ node, name, score, without }, model, training, head) {
  const off = model.get("off"), n = checkpointOf(model, training), on = !off.includes(head);
  const scores = training.scores.map(([key, values]) => [key, values[n][head]]);
  const [best, value] = scores.reduce((a, b) => (b[1] > a[1] ? b : a));
  const then = shareRight(model, training, n, toggled(off, head));
  node.setAttribute("aria-pressed", String(on));
  name.textContent = `head ${head + 1}${on ? "" : ": off"}`;
  score.textContent = `${best} ${format(value, 2)}`;
  without.textContent = `${on ? "without" : "with"} ${format(then, 2)}`;
}

function paintThumbnail(canvas, { maps, heads, side }, checkpoint, head, colours) {
  const ctx = canvas.getContext("2d"), pixels = ctx.createImageData(side, side), area = side * side;
  for (let i = 0; i < area; i++) {
    pixels.data.set([...colours[maps.getUint8((checkpoint * heads + head) * area + i)], 255], 4 * i);
  }
  ctx.putImageData(pixels, 0, 0);
}

function drawTime(model, training, { curves: { lines, dots }, time }) {
  const { steps, losses, highest } = training, off = model.get("off"), n = checkpointOf(model, training);
  const right = (checkpoint) => shareRight(model, training, checkpoint, off);
  const heights = [right, (checkpoint) => losses[checkpoint] / highest];
  lines.forEach((line, k) => trace(line, steps.map((_, at) => [across(at, training), heights[k](at)])));
  dots.forEach((node, k) => move(node, across(n, training), heights[1 - k](n)));
  time.set(n, String(steps[n]), `step ${steps[n]}, loss ${format(losses[n], 2)}, right ${format(right(n), 2)}`);
}

function render({ model, el }) {
  let colours; // of the thumbnails, made when needed
  const training = readTraining(model), link = linkedState(model, el, training, () => parts.play.stop());
  const parts = build(model, training, link, tell);
  function tell(traits) {
    put(model, traits);
    draw();
    parts.heard.textContent = parts.readout.textContent;
  }
  function draw() {
    if (parts.root.isConnected) colours ??= ramp(isDark(parts.root)); // until then it has no theme
    parts.chips.forEach((chip, head) => {
      drawChip(chip, model, training, head);
      if (colours) paintThumbnail(chip.canvas, training, checkpointOf(model, training), head, colours);
    });
    parts.readout.replaceChildren(...readoutOf(model, training));
    drawTime(model, training, parts);
    parts.instead.list.selectedIndex = Number(model.get("mean"));
    disable(parts.all, !model.get("off").length); // with `disabled` it would lose the focus
  }
  const ask = onceAFrame(draw);
  const changes = { at: ask, off: ask, mean: ask, maps: (again) => again(), right: (again) => again() };
  const themed = () => { colours = null; ask(); };
  return live({ model, el, root: parts.root, state: link, ask, changes, themed, box: parts.curves.graph, sized: ask,
    render });
}

export default { render };
