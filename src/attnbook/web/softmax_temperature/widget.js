// SoftmaxTemperature: bars of softmax(logits / t), the curve of their entropy over t, logits to drag.
import {
  COLDEST, HOTTEST, entropy, format, fromSlider, grouped, largest, packLogits, softmax, toSlider, unpackLogits,
  visible, within,
} from "../shared/math.js";
import { h, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";
import { dragRange, drawLogit, drawShares, makeBar, makeCurve, nudge, readoutLine } from "./view.js";

const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

// The names of things, from the traits or, if these are not set, the usual ones.
function readWords(model) {
  const said = (trait, usual) => model.get(trait) ?? usual;
  return {
    warmth: said("temperature_label", "temperature"), bar: said("bar_label", "token"),
    score: said("score_label", "logit"), share: said("share_label", "probability"),
    context: said("context_label", "context"),
  };
}

// The logits that differ from the original ones, as index, value, index, value ...; and logits with such changes.
const changesOf = (logits, original) => Array.from(logits, (z, i) => (z === original[i] ? [] : [i, z])).flat();
function withChanges(original, changes) {
  const all = original.slice();
  for (let n = 0; n + 1 < changes.length; n += 2) {
    if (Number.isFinite(all[changes[n]])) all[changes[n]] = changes[n + 1];
  }
  return all;
}

class SoftmaxTemperature {
  constructor(model, el) {
    this.model = model;
    this.labels = model.get("labels");
    this.contexts = model.get("contexts");
    this.counts = model.get("counts") ?? [];
    this.total = this.counts.length ? this.counts.reduce((sum, n) => sum + n) : this.labels.length;
    this.top = model.get("top");
    this.editable = model.get("editable");
    this.hottest = model.get("hottest") ?? HOTTEST;
    this.greedy = model.get("greedy") ?? true;
    this.words = readWords(model);
    this.original = this.logits = this.unpack();
    this.makeControls();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
    this.fillList();
    this.readLogits();
  }

  // All contexts' logits, one after another; and those of the current context.
  unpack() {
    return unpackLogits(this.model.get("logits"), this.labels.length * Math.max(1, this.contexts.length));
  }
  ofContext(all) {
    const n = this.model.get("context"), size = this.labels.length;
    return all.subarray(n * size, (n + 1) * size);
  }

  makeControls() {
    const { words, hottest, model } = this, name = capital(words.warmth);
    const warm = (temperature) => put(model, { temperature });
    const number = h("input", {
      type: "number", min: "0", step: "any", inputMode: "decimal",
      "aria-label": `${name}, as a number${this.greedy ? "; 0 is greedy" : ""}`,
      oninput: () => { if (number.value !== "" && number.checkValidity()) warm(Number(number.value)); },
      onchange: () => { this.showNumber(); this.say(); },
    });
    this.context = select(words.context, this.contexts.map(visible), (n) => {
      put(model, { context: n });
      this.say();
    });
    this.number = number;
    this.slider = h("input", {
      type: "range", min: "0", max: "1", step: "0.005", "aria-label": `${name}, ${COLDEST} to ${hottest}`,
      oninput: ({ target }) => warm(fromSlider(Number(target.value), hottest)),
    });
    this.cool = h("button", { type: "button", onclick: () => { warm(0); this.showNumber(); this.say(); } },
      "Greedy (0)");
  }

  layOut(title) {
    const { words, total } = this, most = Math.log2(total), dragged = this.editable ? " attn-editable" : "";
    this.curve = makeCurve(this.hottest, most, this.counts);
    this.list = h("ul", { className: `attn-bars${dragged}`, role: "list" });
    this.readout = h("p", { className: "attn-readout" });
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
    return h("div", {
      className: "attn attn-temperature", role: "group", "aria-label": title || "Softmax with temperature",
    }, ...(title ? [h("p", { className: "attn-title" }, title)] : []),
      h("div", { className: "attn-row" }, ...(this.contexts.length ? [this.context.node] : []),
        h("label", { className: "attn-field" }, h("span", {}, words.warmth), this.number),
        ...(this.greedy ? [this.cool] : [])),
      h("p", { className: "attn-caption", "aria-hidden": "true" }, `Entropy by ${words.warmth}: `
        + `0 bits if a single one has all the ${words.share}, `
        + `${format(most, 2)} (dashed) if all ${grouped(total)} have the same`),
      this.curve.node, this.slider, this.curve.ticks, this.readout,
      h("div", { className: `attn-head${dragged}`, "aria-hidden": "true" }, h("span", {}, words.bar),
        h("span", {}, words.score), h("span", {}, `${words.share} (mark `, h("i"), `: at ${words.warmth} 1)`)),
      this.list, this.heard, this.state.bar);
  }

  read() {
    const { model } = this;
    return { temperature: [model.get("temperature")], context: [model.get("context")],
      logits: changesOf(this.logits, this.original) };
  }
  restore({ temperature: [t], context: [c], logits: changes }) {
    put(this.model, {
      temperature: Math.max(0, t), logits: packLogits(withChanges(this.original, changes)),
      context: within(Math.trunc(c), 0, Math.max(0, this.contexts.length - 1)),
    });
    this.showNumber();
  }

  edit(i, z) {
    const all = this.logits.slice();
    this.ofContext(all)[i] = Math.round(z * 100) / 100;
    put(this.model, { logits: packLogits(all) });
  }
  say() {
    this.draw();
    this.heard.textContent = this.readout.textContent;
  }
  showNumber() {
    this.number.value = Number(this.model.get("temperature").toPrecision(4));
  }

  // Makes a line for each label shown: those with the largest original logits, so that dragging reorders nothing.
  fillList() {
    const { labels, words, top, total } = this, own = this.ofContext(this.original);
    const range = dragRange(own), many = labels.length > top;
    const drag = (i, text) => h("input", {
      type: "range", ...range, disabled: !Number.isFinite(own[i]), "aria-label": `${capital(words.score)} of ${text}`,
      oninput: (event) => this.edit(i, Number(event.target.value)), onkeydown: nudge,
    });
    this.bars = (many ? largest(own, top) : [...labels.keys()]).map((i) => {
      const text = visible(labels[i]);
      return makeBar(i, text, words, this.editable ? drag(i, text) : undefined);
    });
    this.others = many ? makeBar(-1, `${grouped(total - top)} others`, words) : null;
    this.list.replaceChildren(...[...this.bars, ...(this.others ? [this.others] : [])].map((bar) => bar.node));
  }

  // Updates what depends only on the logits: the curve, and the probabilities at temperature 1.
  readLogits() {
    this.logits = this.unpack();
    this.unchanged = softmax(this.ofContext(this.logits), 1, this.counts);
    this.curve.drawLine(this.ofContext(this.logits));
  }

  draw() {
    const { counts } = this, t = this.model.get("temperature"), z = this.ofContext(this.logits);
    const p = softmax(z, t, counts), nats = entropy(p, counts);
    const [best] = largest(z, 1), name = visible(this.labels[best]);
    this.context.list.selectedIndex = this.model.get("context");
    if (!this.number.matches(":focus")) this.showNumber();
    this.slider.value = toSlider(t, this.hottest);
    this.slider.setAttribute("aria-valuetext", `${Number(t.toPrecision(3))}, most likely ${name} ${format(p[best])}`);
    this.curve.drawDot(t, nats);
    this.drawBars(z, p);
    this.readout.replaceChildren(...readoutLine(nats, name, p[best], this.model.get("perplexity") ?? true));
  }

  drawBars(z, p) {
    let rest = 1, restBefore = 1;
    for (const bar of this.bars) {
      const now = p[bar.index], before = this.unchanged[bar.index];
      drawShares(bar, now, before);
      drawLogit(bar, z[bar.index], now, this.words.share);
      [rest, restBefore] = [rest - now, restBefore - before];
    }
    if (this.others) drawShares(this.others, Math.max(0, rest), Math.max(0, restBefore));
  }
}

function render({ model, el }) {
  const widget = new SoftmaxTemperature(model, el), { root, state } = widget, ask = onceAFrame(() => widget.draw());
  const changes = {
    temperature: ask, logits: () => { widget.readLogits(); ask(); },
    context: () => { widget.fillList(); widget.readLogits(); ask(); },
  };
  return live({ model, el, root, state, ask, changes });
}

export default { render };
