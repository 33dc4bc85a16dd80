// CostCalculator: what writing one token costs, given the sizes of a model and the speeds of a machine.
import { grouped, within } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { h, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";
import { drawChart, makeChart } from "./chart.js";
import { drawRoof, makeRoof } from "./roof.js";
import {
  BYTES, CHARTS, COUNTS, MOST, SHORT, SIZES, SPANS, WIDTHS,
  boundBy, counted, fitted, headsOf, keyHeadsOf, nearest, scaled, seconds, stepCost, stored, timed,
} from "./costs.js";

const NUMBERS = ["n", ...SIZES, "batch", "speed", "bandwidth"];
const LOOKS = { parameters: 1, cache: 3, scores: 2, computing: 1, reading: 2 }; // of a row, and of its curve

// ---- what is chosen
const chosen = (model) => Object.fromEntries([...NUMBERS, "cache"].map((trait) => [trait, model.get(trait)]));
const fit = (model, traits) => put(model, { ...traits, ...fitted({ ...chosen(model), ...traits }) });
const traitsOf = ({ name, ...traits } = {}) => traits;
const is = (preset, now) => Object.entries(traitsOf(preset)).every(([trait, x]) => now[trait] === x);
const power = (x) => Number((10 ** x).toPrecision(3));

const linkedState = (model, el) => stateControls(el, model.get("name"),
  () => ({ ...Object.fromEntries(NUMBERS.map((trait) => [trait, [model.get(trait)]])),
    cache: [Number(model.get("cache"))], chart: [CHARTS.indexOf(model.get("chart"))] }),
  (given) => {
    const to = Object.fromEntries(Object.entries(given).map(([trait, [x]]) => [trait, x]));
    const whole = (x, most) => within(Math.trunc(x), 1, most), [low, high, least, most] = SPANS.map((x) => 10 ** x);
    fit(model, { ...to, n: whole(to.n, MOST[0]), n_layers: whole(to.n_layers, MOST[1]),
      batch: whole(to.batch, MOST[2]), d_model: nearest(WIDTHS, to.d_model), size: nearest(BYTES, to.size),
      cache: Boolean(to.cache), chart: CHARTS[to.chart] ?? CHARTS[0], speed: within(to.speed, low, high),
      bandwidth: within(to.bandwidth, least, most) });
  });

// ---- elements; `tell` receives traits that change what the text says
function makeChoices(model, tell) {
  const presets = (label, all) => select(label, [...all.map(({ name }) => name), "as set below"],
    (k) => tell(traitsOf(all[k])));
  return {
    setting: presets("setting", model.get("settings")),
    kind: presets("model", model.get("models")),
    machine: presets("machine", model.get("machines")),
    bits: select("numbers", BYTES.map((b) => `of ${8 * b} bits`), (k) => tell({ size: BYTES[k] })),
    shown: select("chart", CHARTS, (k) => tell({ chart: CHARTS[k] })),
    check: h("input", { type: "checkbox", onchange: ({ target }) => tell({ cache: target.checked }) }),
  };
}

function makeKnobs(model) {
  const octaves = (x, part = 1) => Math.round(part * Math.log2(x));
  const knob = (label, range, traits, set = put) =>
    slider(label, { min: 0, step: 1, ...range }, (x) => set(model, traits(x)));
  return {
    n: knob("tokens n", { max: octaves(MOST[0], 4) }, (x) => ({ n: Math.round(2 ** (x / 4)) })),
    batch: knob("texts at once", { max: octaves(MOST[2]) }, (x) => ({ batch: 2 ** x })),
    d_model: knob("width d", { max: WIDTHS.length - 1 }, (k) => ({ d_model: WIDTHS[k] }), fit),
    n_layers: knob("blocks", { min: 1, max: MOST[1] }, (x) => ({ n_layers: x })),
    n_heads: knob("query heads", {}, (k) => ({ n_heads: headsOf(model.get("d_model"))[k] }), fit),
    n_kv_heads: knob("key heads", {}, (k) => ({ n_kv_heads: keyHeadsOf(model.get("n_heads"))[k] })),
    speed: knob("operations/s", { min: SPANS[0], max: SPANS[1], step: 0.1 }, (x) => ({ speed: power(x) })),
    bandwidth: knob("bytes/s", { min: SPANS[2], max: SPANS[3], step: 0.1 }, (x) => ({ bandwidth: power(x) })),
  };
}

const LABELS = { parameters: "blocks’ parameters", scores: "scores of a block, if stored" };

function makeRow(name) {
  const bar = h("i", {}), value = h("b", {}), label = LABELS[name] ?? name;
  const node = h("div", { className: `attn-cost-row attn-cost-${LOOKS[name]} attn-cost-${name}` },
    h("span", {}, label), h("span", { className: "attn-cost-bar", "aria-hidden": "true" }, bar), value);
  return { bar, value, node };
}

function build(model, { bar }, tell) {
  const title = model.get("title"), choices = makeChoices(model, tell), knobs = makeKnobs(model);
  const rows = Object.fromEntries(Object.keys(LOOKS).map((name) => [name, makeRow(name)]));
  const chart = makeChart(model.get("points"), (n) => put(model, { n })), roof = makeRoof();
  const work = h("p", { className: "attn-readout" }), verdict = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const note = h("p", { className: "attn-legend attn-cost-note" });
  const curves = h("div", { className: "attn-cost-curves" }, chart.graph, chart.ticks, note);
  const root = h("div", { className: "attn attn-cost", role: "group", "aria-label": title || "The costs of a token" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    ...(model.get("settings").length ? [h("div", { className: "attn-row" }, choices.setting.node)] : []),
    h("div", { className: "attn-row" }, choices.kind.node, choices.machine.node, choices.bits.node,
      h("label", { className: "attn-field" }, choices.check, h("span", {}, "keys and values kept in a cache"))),
    h("div", { className: "attn-cost-knobs" }, ...Object.values(knobs).map(({ node }) => node)),
    h("p", { className: "attn-legend" }, "To write the next token of each text"), work,
    ...Object.values(rows).map(({ node }) => node), verdict, heard,
    h("div", { className: "attn-row attn-cost-chart" }, choices.shown.node), curves, roof.node, bar);
  return { root, choices, knobs, rows, chart, curves, roof, work, verdict, heard, note };
}

// ---- drawing
function drawChoices(model, { setting, kind, machine, bits, shown, check }, now) {
  const which = (presets) => [...presets, {}].findIndex((preset) => is(preset, now));
  setting.list.selectedIndex = which(model.get("settings"));
  kind.list.selectedIndex = which(model.get("models"));
  machine.list.selectedIndex = which(model.get("machines"));
  bits.list.selectedIndex = BYTES.indexOf(now.size);
  shown.list.selectedIndex = CHARTS.indexOf(model.get("chart"));
  check.checked = now.cache;
}

function drawKnobs(knobs, now, bound) {
  const heads = headsOf(now.d_model), keyHeads = keyHeadsOf(now.n_heads);
  const set = (trait, at, text = grouped(now[trait])) => knobs[trait].set(at, text, `${text}, bound by ${bound}`);
  knobs.n_heads.node.querySelector("input").max = heads.length - 1;
  knobs.n_kv_heads.node.querySelector("input").max = keyHeads.length - 1;
  set("n", 4 * Math.log2(now.n));
  set("batch", Math.log2(now.batch));
  set("d_model", WIDTHS.indexOf(now.d_model));
  set("n_layers", now.n_layers);
  set("n_heads", heads.indexOf(now.n_heads));
  set("n_kv_heads", keyHeads.indexOf(now.n_kv_heads));
  set("speed", Math.log10(now.speed), scaled(now.speed, SHORT));
  set("bandwidth", Math.log10(now.bandwidth), stored(now.bandwidth));
}

// Draws the bars of `numbers`, keyed by name, relative to the largest.
function drawRows(rows, numbers, text) {
  const most = Math.max(...Object.values(numbers));
  for (const [name, x] of Object.entries(numbers)) {
    rows[name].bar.style.width = `${x ? Math.max(0.5, (100 * x) / most) : 0}%`;
    rows[name].value.textContent = text(x);
  }
}

function drawCurvesAndNote(model, { chart, note }, now) {
  const [first] = model.get("models"), [fastest] = model.get("machines"), points = model.get("points");
  const ours = is(first, now) && (model.get("chart") !== "time" || is(fastest, now));
  const rings = drawChart(chart, model.get("chart"), now, ours);
  const batches = [...new Set(points.map((p) => p.batch))].join(" or ");
  const near = rings || !points.length || (ours && points.some((p) => p.batch === now.batch));
  note.textContent = near ? (rings ? "Lines: computed. Rings: measured." : "")
    : `Rings show ${first.name} on ${fastest.name}, ${batches} texts at once: choose these to see them.`;
}

function drawShown(model, parts, now) {
  const roofed = model.get("chart") === "roofline";
  parts.curves.hidden = roofed;
  parts.roof.node.hidden = !roofed;
  if (roofed) drawRoof(parts.roof, now);
  else drawCurvesAndNote(model, parts, now);
}

function draw(model, parts) {
  const now = chosen(model), cost = stepCost(now), { operations, ...memory } = cost;
  const [computing, reading] = seconds(cost, now), most = Math.max(computing, reading);
  const bound = boundBy([computing, reading]), ratio = most / Math.min(computing, reading);
  drawChoices(model, parts.choices, now);
  drawKnobs(parts.knobs, now, bound);
  parts.work.replaceChildren(h("b", {}, counted(operations)), " operations");
  drawRows(parts.rows, memory, stored);
  drawRows(parts.rows, { computing, reading }, timed);
  const other = computing > reading ? "reading" : "computing";
  const longer = `, which takes ${scaled(ratio, COUNTS)} times as long as ${other}: at most `;
  parts.verdict.replaceChildren("Bound by ", h("b", {}, bound), longer,
    h("b", {}, counted(now.batch / most)), " tokens a second");
  drawShown(model, parts, now);
}

function render({ model, el }) {
  const link = linkedState(model, el), parts = build(model, link, tell);
  function tell(traits) {
    fit(model, traits);
    ask.now();
    parts.heard.textContent = parts.verdict.textContent;
  }
  const ask = onceAFrame(() => draw(model, parts));
  const changes = Object.fromEntries([...NUMBERS, "cache", "chart"].map((trait) => [trait, ask]));
  return live({ model, el, root: parts.root, state: link, ask, changes });
}

export default { render };
