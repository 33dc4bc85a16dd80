// CostCalculator: what writing one token takes, by the sizes of a model and the speeds of a machine.
import LISTS from "./lists.json" with { type: "json" };
import { format, grouped, within } from "../shared/math.js";
import { axis, curve, dot, follow, move, plot, slider, trace } from "../shared/plot.js";
import { h, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";

// The largest n, n_layers and batch are MOST; SPANS are powers of ten: operations a second, bytes a second.
const { WIDTHS, MOST, BYTES, CHARTS, SPANS, SIZES, COUNTS, STORE } = LISTS;
const TICKS = 9;
const SHORT = ["", " k", " M", " G", " T", " P"];

// Twins of `costs.step_cost` and its `seconds`.
export function stepCost({ n, d_model: d, n_layers, n_heads, n_kv_heads, batch, cache, size }) {
  const kept = (d / n_heads) * n_kv_heads, matrices = 10 * d * d + 2 * d * kept, asked = cache ? 1 : n;
  return {
    operations: batch * n_layers * asked * (2 * matrices + 4 * n * d),
    parameters: n_layers * matrices * size,
    cache: cache ? 2 * batch * n_layers * n * kept * size : 0,
    scores: batch * n_heads * asked * n * size,
  };
}
export const seconds = ({ operations, parameters, cache }, { speed, bandwidth }) =>
  [operations / speed, (parameters + cache) / bandwidth];

// Three digits and a unit; units grow a thousandfold.
export function scaled(x, units) {
  let n = 0;
  const digits = () => (x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
  for (; n < units.length - 1 && x >= 999.5; n++) x /= 1000;
  return grouped(format(x, Number.isInteger(x) && !n ? 0 : digits())) + units[n];
}
export const counted = (x) => scaled(x, COUNTS);
export const stored = (x) => scaled(x, STORE);
export const timed = (x) => (x >= 1 ? scaled(x, [" s"]) : scaled(x * 1e9, [" ns", " µs", " ms", " s"]));

export const divisors = (whole, least = 1) =>
  Array.from({ length: whole / least }, (_, k) => k + 1).filter((k) => whole % k === 0);
const nearest = (list, x) => list.reduce((a, b) => (Math.abs(b - x) < Math.abs(a - x) ? b : a));

function render({ model, el }) {
  const title = model.get("title"), models = model.get("models"), machines = model.get("machines");
  const points = model.get("points");
  const get = (...traits) => Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
  const chosen = () => get("n", ...SIZES, "batch", "cache", "speed", "bandwidth");
  const heads = (d) => divisors(d, 8), groups = (h_) => divisors(h_);
  function fit(traits) { // heads divide d, groups divide heads
    const all = { ...chosen(), ...traits };
    all.n_heads = nearest(heads(all.d_model), all.n_heads);
    all.n_kv_heads = nearest(groups(all.n_heads), all.n_kv_heads);
    put(model, { ...traits, n_heads: all.n_heads, n_kv_heads: all.n_kv_heads });
  }
  const plain = ({ name, ...traits } = {}) => traits;
  const is = (preset, traits) => Object.entries(plain(preset)).every(([trait, x]) => traits[trait] === x);

  // ---- elements
  const own = "as set below";
  const kind = select("model", [...models.map(({ name }) => name), own], (k) => tell(plain(models[k])));
  const machine = select("machine", [...machines.map(({ name }) => name), own], (k) => tell(plain(machines[k])));
  const bits = select("numbers", BYTES.map((b) => `of ${8 * b} bits`), (k) => tell({ size: BYTES[k] }));
  const check = h("input", { type: "checkbox", onchange: () => tell({ cache: check.checked }) });
  const octaves = (x, part = 1) => Math.round(part * Math.log2(x));
  const knobs = {
    n: slider("tokens n", { min: 0, max: octaves(MOST[0], 4), step: 1 },
      (x) => put(model, { n: Math.round(2 ** (x / 4)) })),
    batch: slider("texts at once", { min: 0, max: octaves(MOST[2]), step: 1 }, (x) => put(model, { batch: 2 ** x })),
    d_model: slider("width d", { min: 0, max: WIDTHS.length - 1, step: 1 }, (k) => fit({ d_model: WIDTHS[k] })),
    n_layers: slider("blocks", { min: 1, max: MOST[1], step: 1 }, (x) => put(model, { n_layers: x })),
    n_heads: slider("query heads", { min: 0, step: 1 }, (k) => fit({ n_heads: heads(model.get("d_model"))[k] })),
    n_kv_heads: slider("key heads", { min: 0, step: 1 },
      (k) => put(model, { n_kv_heads: groups(model.get("n_heads"))[k] })),
    speed: slider("operations/s", { min: SPANS[0], max: SPANS[1], step: 0.1 },
      (x) => put(model, { speed: power(x) })),
    bandwidth: slider("bytes/s", { min: SPANS[2], max: SPANS[3], step: 0.1 },
      (x) => put(model, { bandwidth: power(x) })),
  };
  const looks = { parameters: 1, cache: 3, scores: 2, computing: 1, reading: 2 }; // as in the curves
  const rows = Object.fromEntries(Object.entries(looks).map(([name, look]) => {
    const bar = h("i", {}), value = h("b", {});
    const label = { scores: "scores of a block" }[name] ?? name;
    return [name, { bar, value, node: h("div", { className: `attn-cost-row attn-cost-${look} attn-cost-${name}` },
      h("span", {}, label), h("span", { className: "attn-cost-bar", "aria-hidden": "true" }, bar), value) }];
  }));
  const work = h("p", { className: "attn-readout" }), verdict = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const drawn = select("curves", ["operations", "memory", "time"], (k) => tell({ chart: CHARTS[k] }));
  const lines = [1, 2, 3].map((k) => curve(`attn-cost-line attn-cost-${k}`)), here = curve("attn-faint");
  const grid = Array.from({ length: TICKS }, () => [curve("attn-zero"), h("span", { className: "attn-cost-tick" })]);
  const ends = lines.map((_, k) => h("span", { className: `attn-cost-end attn-cost-${k + 1}` }));
  const marks = lines.map(() => dot("")), rings = points.map(() => dot("attn-cost-ring"));
  const graph = plot(...grid.map(([line]) => line), here, ...lines);
  graph.append(...grid.map(([, text]) => text), ...ends, ...rings, ...marks);
  const note = h("p", { className: "attn-legend attn-cost-note" });
  follow(graph, (x) => put(model, { n: Math.round(MOST[0] ** x) }));
  const numbers = ["n", ...SIZES, "batch", "speed", "bandwidth"];
  const state = stateControls(el, model.get("name"),
    () => ({ ...Object.fromEntries(numbers.map((trait) => [trait, [model.get(trait)]])),
      cache: [Number(model.get("cache"))], chart: [CHARTS.indexOf(model.get("chart"))] }),
    (given) => {
      const to = Object.fromEntries(Object.entries(given).map(([trait, [x]]) => [trait, x]));
      const whole = (x, most) => within(Math.trunc(x), 1, most), [low, high, least, most] = SPANS.map((x) => 10 ** x);
      fit({ ...to, n: whole(to.n, MOST[0]), n_layers: whole(to.n_layers, MOST[1]), batch: whole(to.batch, MOST[2]),
        d_model: nearest(WIDTHS, to.d_model), size: nearest(BYTES, to.size), cache: Boolean(to.cache),
        chart: CHARTS[to.chart] ?? CHARTS[0], speed: within(to.speed, low, high),
        bandwidth: within(to.bandwidth, least, most) });
    });
  const root = h("div", { className: "attn attn-cost", role: "group", "aria-label": title || "The costs of a token" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, kind.node, machine.node, bits.node,
      h("label", { className: "attn-field" }, check, h("span", {}, "keys and values kept in a cache"))),
    h("div", { className: "attn-cost-knobs" }, ...Object.values(knobs).map(({ node }) => node)),
    h("p", { className: "attn-legend" }, "To write the next token of each text"), work,
    ...Object.values(rows).map(({ node }) => node), verdict, heard,
    h("div", { className: "attn-row attn-cost-chart" }, drawn.node), graph,
    axis([1, 16, 256, 4096, MOST[0]].map((n, k) => [along(n), k ? grouped(n) : "1 token"])), note, state.bar);

  // ---- what the reader does
  const power = (x) => Number((10 ** x).toPrecision(3));
  function tell(traits) {
    fit(traits);
    draw();
    heard.textContent = verdict.textContent;
  }

  // ---- drawing
  function along(n) {
    return Math.log2(n) / Math.log2(MOST[0]);
  }
  function bar({ bar: node, value }, x, most, text) {
    node.style.width = `${x ? Math.max(0.5, (100 * x) / most) : 0}%`;
    value.textContent = text(x);
  }
  function series(now) { // of each curve: its name, its values by n, and what a measured point has there
    const at = (n, change = {}) => stepCost({ ...now, n, ...change });
    return {
      operations: [true, false].map((cache) => [cache ? "with a cache" : "all anew",
        (n) => at(n, { cache }).operations, (p) => p.cache === cache && p.operations]),
      memory: [["parameters", (n) => at(n).parameters], ["scores", (n) => at(n).scores],
        ["cache", (n) => at(n).cache, (p) => p.cache && p.bytes]].slice(0, now.cache ? 3 : 2),
      time: ["computing", "reading"].map((name, k) =>
        [name, (n) => seconds(at(n), now)[k], (p) => !k && p.cache === now.cache && p.seconds]),
    }[model.get("chart")];
  }
  function chart(now) {
    const which = model.get("chart"), text = { operations: counted, memory: stored, time: timed }[which];
    const all = series(now), steps = Array.from({ length: 18 }, (_, k) => 2 ** k);
    const ours = is(models[0], now) && (which !== "time" || is(machines[0], now));
    const measured = points.map((p) => ours && p.batch === now.batch
      && all.reduce((found, [, , read]) => found || (read?.(p) ?? 0), 0));
    const values = all.map(([, value]) => steps.map(value)), every = [...values.flat(), ...measured.filter(Boolean)];
    const low = Math.floor(Math.log10(Math.min(...every))), high = Math.ceil(Math.log10(Math.max(...every)) + 0.01);
    const height = (x) => (Math.log10(x) - low) / (high - low), step = Math.ceil((high - low) / TICKS);
    grid.forEach(([line, tick], k) => {
      const at = low + k * step, shown = at < high;
      trace(line, shown ? [[0, height(10 ** at)], [1, height(10 ** at)]] : []);
      tick.textContent = shown ? text(10 ** at).replace(/\.0+/, "") : "";
      move(tick, 0, shown ? height(10 ** at) : 0);
    });
    const last = values.map((list) => height(list.at(-1)));
    const order = last.map((_, k) => k).sort((a, b) => last[a] - last[b]);
    let under = -1;
    for (const k of order) under = last[k] = Math.max(last[k], under + 0.1);
    lines.forEach((line, k) => {
      const [name, value] = all[k] ?? [];
      trace(line, name ? steps.map((n, i) => [along(n), height(values[k][i])]) : []);
      ends[k].textContent = name ?? "";
      move(ends[k], 1, last[k] ?? 0);
      marks[k].hidden = !name;
      if (name) move(marks[k], along(now.n), height(value(now.n)));
    });
    trace(here, [[along(now.n), 0], [along(now.n), 1]]);
    rings.forEach((ring, k) => {
      ring.hidden = !measured[k];
      if (measured[k]) move(ring, along(points[k].n), height(measured[k]));
    });
    const shown = measured.filter(Boolean).length, batches = [...new Set(points.map((p) => p.batch))].join(" or ");
    const near = shown || !points.length || (ours && points.some((p) => p.batch === now.batch));
    note.textContent = near ? (shown ? "Lines: computed. Rings: measured." : "")
      : `Rings show ${models[0].name} on ${machines[0].name}, ${batches} texts at once: choose these to see them.`;
  }

  function draw() {
    const now = chosen(), cost = stepCost(now), [computing, reading] = seconds(cost, now);
    const most = Math.max(computing, reading);
    const which = (presets) => [...presets, {}].findIndex((preset) => is(preset, now));
    kind.list.selectedIndex = which(models);
    machine.list.selectedIndex = which(machines);
    bits.list.selectedIndex = BYTES.indexOf(now.size);
    check.checked = now.cache;
    drawn.list.selectedIndex = CHARTS.indexOf(model.get("chart"));
    const bound = computing > reading ? "arithmetic" : "memory", ratio = most / Math.min(computing, reading);
    const set = (trait, at, text = grouped(now[trait])) => knobs[trait].set(at, text, `${text}, bound by ${bound}`);
    const [h_, g] = [heads(now.d_model), groups(now.n_heads)];
    knobs.n_heads.node.querySelector("input").max = h_.length - 1;
    knobs.n_kv_heads.node.querySelector("input").max = g.length - 1;
    set("n", 4 * Math.log2(now.n));
    set("batch", Math.log2(now.batch));
    set("d_model", WIDTHS.indexOf(now.d_model));
    set("n_layers", now.n_layers);
    set("n_heads", h_.indexOf(now.n_heads));
    set("n_kv_heads", g.indexOf(now.n_kv_heads));
    set("speed", Math.log10(now.speed), scaled(now.speed, SHORT));
    set("bandwidth", Math.log10(now.bandwidth), stored(now.bandwidth));
    work.replaceChildren(h("b", {}, counted(cost.operations)), " operations");
    const room = Math.max(cost.parameters, cost.cache, cost.scores);
    for (const name of ["parameters", "cache", "scores"]) bar(rows[name], cost[name], room, stored);
    bar(rows.computing, computing, most, timed);
    bar(rows.reading, reading, most, timed);
    verdict.replaceChildren("Bound by ", h("b", {}, bound), `, ${scaled(ratio, COUNTS)} to 1: at most `,
      h("b", {}, counted(now.batch / most)), " tokens a second");
    chart(now);
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = Object.fromEntries([...numbers, "cache", "chart"].map((trait) => [trait, ask]));
  return live({ model, el, root, state, ask, changes });
}

export default { render };
