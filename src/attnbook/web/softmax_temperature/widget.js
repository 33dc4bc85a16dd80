// SoftmaxTemperature: bars of softmax(logits / t), the curve of their entropy over t, logits to drag.
import {
  COLDEST, HOTTEST, entropy, format, fromSlider, grouped, largest, packLogits, softmax, toSlider, unpackLogits,
  visible, within,
} from "../shared/math.js";
import { h, live, onceAFrame, put, select, stateControls, svg, token } from "../shared/ui.js";

const TICKS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100], POINTS = 80, MARGIN = 3;
const inBits = (nats) => nats / Math.LN2;

function render({ model, el }) {
  const labels = model.get("labels"), contexts = model.get("contexts"), top = model.get("top");
  const said = (trait, usual) => model.get(trait) ?? usual, hottest = said("hottest", HOTTEST);
  const warmth = said("temperature_label", "temperature"), bar = said("bar_label", "token");
  const score = said("score_label", "logit"), share = said("share_label", "probability");
  const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1), Warmth = capital(warmth);
  const title = model.get("title"), editable = model.get("editable"), many = labels.length > top;
  const count = labels.length * Math.max(1, contexts.length), mostBits = Math.log2(labels.length);
  const unpack = () => unpackLogits(model.get("logits"), count);
  const original = unpack();
  let logits = original, bars = [], others, unchanged; // unchanged: the probabilities at temperature 1

  const row = (all) => all.subarray(model.get("context") * labels.length, (model.get("context") + 1) * labels.length);

  // ---- elements
  const contextLabel = said("context_label", "context");
  const context = select(contextLabel, contexts.map(visible), (n) => { put(model, { context: n }); say(); });
  const number = h("input", {
    type: "number", min: "0", step: "any", inputMode: "decimal",
    "aria-label": `${Warmth}, as a number${said("greedy", true) ? "; 0 is greedy" : ""}`,
    oninput: () => { if (number.value !== "" && number.checkValidity()) warm(Number(number.value)); },
    onchange: () => { showNumber(); say(); },
  });
  const slider = h("input", {
    type: "range", min: "0", max: "1", step: "0.005", "aria-label": `${Warmth}, ${COLDEST} to ${hottest}`,
    oninput: () => warm(fromSlider(Number(slider.value), hottest)),
  });
  const greedy = h("button", { type: "button", onclick: () => { warm(0); showNumber(); say(); } }, "Greedy (0)");
  const line = svg("polyline", { class: "attn-curve" });
  const dot = h("i", { className: "attn-dot" });
  const caption = `Entropy by ${warmth}; dashed: ${format(mostBits, 2)} bits, `
    + `all ${grouped(labels.length)} equally likely`;
  const curve = h("div", { className: "attn-plot", "aria-hidden": "true" },
    svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, line), dot);
  const marks = TICKS.filter((t) => t <= hottest);
  const ticks = h("div", { className: "attn-ticks", "aria-hidden": "true" }, ...marks.map((t) => {
    const tick = h("span", {}, String(t));
    tick.style.left = `${100 * toSlider(t, hottest)}%`;
    return tick;
  }));
  const list = h("ul", { className: editable ? "attn-bars attn-editable" : "attn-bars", role: "list" });
  const head = h("div", { className: editable ? "attn-head attn-editable" : "attn-head", "aria-hidden": "true" },
    h("span", {}, bar), h("span", {}, score),
    h("span", {}, `${share} (`, h("i"), ` at ${warmth} 1)`));
  const readout = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });

  const state = stateControls(el, model.get("name"),
    () => ({
      temperature: [model.get("temperature")], context: [model.get("context")],
      logits: Array.from(logits, (z, i) => (z === original[i] ? [] : [i, z])).flat(),
    }),
    ({ temperature: [t], context: [c], logits: changes }) => {
      const all = original.slice();
      for (let n = 0; n + 1 < changes.length; n += 2) {
        if (Number.isFinite(all[changes[n]])) all[changes[n]] = changes[n + 1];
      }
      put(model, {
        temperature: Math.max(0, t), logits: packLogits(all),
        context: within(Math.trunc(c), 0, Math.max(0, contexts.length - 1)),
      });
      showNumber();
    });
  const root = h("div", {
    className: "attn attn-temperature", role: "group", "aria-label": title || "Softmax with temperature",
  }, ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, ...(contexts.length ? [context.node] : []),
      h("label", { className: "attn-field" }, h("span", {}, warmth), number),
      ...(said("greedy", true) ? [greedy] : [])),
    h("p", { className: "attn-caption", "aria-hidden": "true" }, caption),
    curve, slider, ticks, readout, head, list, heard, state.bar);

  // ---- what the reader does
  function warm(temperature) {
    put(model, { temperature });
  }
  function edit(i, z) {
    const all = logits.slice();
    row(all)[i] = Math.round(z * 100) / 100;
    put(model, { logits: packLogits(all) });
  }
  function say() {
    draw();
    heard.textContent = readout.textContent;
  }
  function showNumber() {
    number.value = Number(model.get("temperature").toPrecision(4));
  }

  // ---- drawing
  // One line for each label shown: the largest of this context's own logits, so that dragging reorders nothing.
  function fillList() {
    const own = row(original), finite = own.filter(Number.isFinite);
    const low = Math.floor(Math.min(...finite)) - MARGIN, high = Math.ceil(Math.max(...finite)) + MARGIN;
    bars = (many ? largest(own, top) : [...labels.keys()]).map((i) => {
      const text = visible(labels[i]);
      const drag = editable ? [h("input", {
        type: "range", min: low, max: high, step: "any", disabled: !Number.isFinite(own[i]),
        "aria-label": `${capital(score)} of ${text}`,
        oninput: (event) => edit(i, Number(event.target.value)),
      })] : [];
      return makeBar(i, text, drag);
    });
    others = many ? makeBar(-1, `${grouped(labels.length - top)} others`, []) : null;
    list.replaceChildren(...bars.map((bar) => bar.item), ...(others ? [others.item] : []));
  }
  function makeBar(i, text, drag) {
    const fill = h("i", { className: "attn-fill" }), mark = h("i", { className: "attn-then" });
    const logit = h("span", { className: "attn-logit" }), value = h("b");
    const unseen = (words) => h("span", { className: "attn-heard" }, words);
    const item = h("li", {}, h("span", { className: "attn-label", title: text }, i < 0 ? text : token(text)),
      ...drag, ...(i < 0 ? [logit] : [unseen(` ${score} `), logit]),
      h("span", { className: "attn-track", "aria-hidden": "true" }, fill, mark), unseen(` ${share} `), value);
    return { i, item, fill, mark, logit, value, drag: drag[0] };
  }

  // The curve and the marks of temperature 1 depend on the logits alone.
  function readLogits() {
    logits = unpack();
    unchanged = softmax(row(logits), 1);
    const points = Array.from({ length: POINTS + 1 }, (_, n) => {
      const t = COLDEST * (hottest / COLDEST) ** (n / POINTS);
      return [100 * n / POINTS, height(entropy(softmax(row(logits), t)))];
    });
    line.setAttribute("points", points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" "));
  }
  const height = (nats) => 100 - (mostBits > 0 ? 88 * inBits(nats) / mostBits : 0);

  function draw() {
    const t = model.get("temperature"), z = row(logits), p = softmax(z, t), nats = entropy(p);
    context.list.selectedIndex = model.get("context");
    if (!number.matches(":focus")) showNumber();
    slider.value = toSlider(t, hottest);
    dot.style.left = `${100 * toSlider(t, hottest)}%`;
    dot.style.top = `${height(nats)}%`;
    const set = ({ fill, mark, value }, now, then) => {
      fill.style.width = `${100 * now}%`;
      mark.style.left = `${100 * then}%`;
      value.textContent = format(now);
    };
    let rest = 1, restThen = 1;
    for (const bar of bars) {
      set(bar, p[bar.i], unchanged[bar.i]);
      bar.logit.textContent = format(z[bar.i]);
      if (bar.drag) bar.drag.value = z[bar.i];
      bar.drag?.setAttribute("aria-valuetext", `${format(z[bar.i])}, ${share} ${format(p[bar.i])}`);
      rest -= p[bar.i];
      restThen -= unchanged[bar.i];
    }
    if (others) set(others, Math.max(0, rest), Math.max(0, restThen));
    const best = largest(p, 1)[0];
    slider.setAttribute("aria-valuetext",
      `${Number(t.toPrecision(3))}, most likely ${visible(labels[best])} ${format(p[best])}`);
    readout.replaceChildren(
      "Entropy ", h("b", {}, `${format(inBits(nats))} bits`), ` (${format(nats)} nats) · perplexity `,
      h("b", {}, format(Math.exp(nats), 2)), " · most likely ", token(visible(labels[best])), ` ${format(p[best])}`);
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = {
    temperature: ask, logits: () => { readLogits(); ask(); }, context: () => { fillList(); readLogits(); ask(); },
  };
  fillList();
  readLogits();
  return live({ model, el, root, state, ask, changes });
}

export default { render };
