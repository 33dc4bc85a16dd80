// MaskedWords: the reader hides words of a sentence, and a BERT in the page says what it would put there.
import { wordsAndMasks } from "../engine/wordpiece.js";
import { makeAttention } from "./attention.js";
import { distributions, fits, likeliest, stillHidden, wholeWords } from "./masked.js";
import { makeBars, makeChips, remarks } from "./view.js";
import { format, fromSlider, fullBar, share, toSlider, unpackWeights, visible, within } from "../shared/math.js";
import { summon } from "../shared/model.js";
import { slider } from "../shared/plot.js";
import { h, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const LEVELS = 65535, LETTERS = 500, MOST = 20; // levels of a weight; most letters of a text; most words shown
const SET = ["temperature", "top", "place", "into", "layer", "head"];
const LEAD = "Press a word to hide it: the model reads the rest and says what it would put there. "
  + "The sentence is yours to change; [MASK] in it is hidden, too.";

const highest = ({ p, best }) => p?.reduce((a, b) => Math.max(a, b)) ?? best[0]?.p ?? 0;

class MaskedWords {
  constructor(model, el) {
    const { shape, likely, ...answer } = model.get("answer"), levels = unpackWeights(model.get("attention"));
    const data = Float32Array.from(levels, (level) => level / LEVELS);
    this.model = model;
    this.lowercase = model.get("lowercase");
    [this.shape, this.likely, this.size] = [shape, likely, answer.size]; // likely: the stored words of each place
    this.answer = { ...answer, attention: { shape, data } };
    this.before = null; // the answer before the reader's last change
    this.typing = false;
    this.engine = this.tokens = this.ids = undefined; // the model's, once it has loaded
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
  }

  makeParts() {
    const { model } = this, note = () => h("p", { className: "attn-note" });
    this.text = h("textarea", {
      rows: 2, maxLength: LETTERS, spellcheck: false, "aria-label": "Your sentence",
      oninput: () => this.edit(), onchange: () => (this.typing = false),
      onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); this.typing = false; } },
    });
    this.chips = makeChips((n) => this.hide(n));
    [this.tinted, this.scale, this.notes] = [note(), note(), h("div")];
    this.bars = h("div", { className: "attn-places" });
    this.status = h("p", { className: "attn-note", role: "status", "aria-live": "polite" });
    this.warmth = slider("temperature", { min: 0, max: 1, step: 0.01 },
      (x) => put(model, { temperature: fromSlider(x) }));
    this.top = slider("words shown", { min: 1, max: MOST, step: 1 }, (n) => put(model, { top: n }));
    this.attention = makeAttention(this.shape, (traits) => put(model, traits));
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  }

  layOut(title) {
    return h("div", { className: "attn attn-masked", role: "group", "aria-label": title || "Masked words" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []), h("p", { className: "attn-lead" }, LEAD),
      this.text, this.chips.node, this.tinted, this.notes, this.status, this.bars, this.scale, this.warmth.node,
      this.top.node, this.attention.node, this.heard, this.state.bar);
  }

  // ---- what the reader does
  edit() {
    const { model, text } = this;
    if (!this.typing) this.before = this.answer;
    this.typing = true;
    const words = text.value.toWellFormed?.() ?? text.value;
    const [was, is] = [model.get("text"), words].map((each) => wordsAndMasks(each, this.lowercase));
    put(model, { text: words, masks: stillHidden(model.get("masks"), was, is) });
  }
  hide(n) {
    const masks = this.model.get("masks"), others = masks.filter((m) => m !== n);
    this.before = this.answer;
    this.typing = false;
    put(this.model, { masks: masks.includes(n) ? others : [...others, n].sort((a, b) => a - b) });
  }
  read() {
    const { model } = this, masks = model.get("masks");
    const numbers = Object.fromEntries(SET.map((name) => [name, [Number(model.get(name))]]));
    return { text: [model.get("text")], masks: masks.length ? masks : [-1], ...numbers };
  }
  restore({ text: [words], masks, temperature: [t], top: [n], place: [at], into: [on], layer: [l], head: [k] }) {
    const kept = words.slice(0, LETTERS), [layers, heads] = this.shape;
    const size = wordsAndMasks(kept, this.lowercase).length;
    const whole = (x, low, high) => within(Math.trunc(x), low, high);
    this.before = null;
    put(this.model, {
      text: kept, masks: [...new Set(masks)].filter((m) => Number.isInteger(m) && m >= 0 && m < size),
      temperature: Math.max(0, t), top: whole(n, 1, MOST), place: whole(at, 0, LETTERS), into: on > 0,
      layer: whole(l, -1, layers - 1), head: whole(k, -1, heads - 1),
    });
  }

  // ---- the model
  ready(engine, { tokens }) {
    this.engine = engine;
    this.tokens = tokens;
    this.ids = new Map(tokens.map((name, id) => [name, id]));
    return this.question();
  }
  async question() {
    if (!this.ids) return;
    const asked = { text: this.model.get("text"), masks: this.model.get("masks") };
    const found = await this.engine.newest("answer", asked).catch(() => undefined); // the status says why
    if (!found) return;
    this.answer = { ...found, masks: found.hidden };
    this.draw();
    if (!this.typing) this.heard.textContent = Array.from(this.bars.children, (each) => each.dataset.said).join(". ");
  }
  // The hidden places of an answer, with the model's distributions or, until it has loaded, the stored tokens.
  hiddenPlaces(answer) {
    if (!answer) return [];
    return answer.logits ? distributions(answer, this.ids, this.model.get("temperature")) : this.likely;
  }

  // The same by word: the pieces of a word that was cut are joined.
  hiddenWords(answer, places) {
    const fitting = ({ p, best }, n) => (p
      ? likeliest(p.map((x, id) => (fits(this.tokens[id], n) ? x : -1)), this.tokens, MOST).filter((one) => one.p >= 0)
      : best.filter(({ token }) => fits(token, n)));
    return answer ? wholeWords(places, answer.words, MOST, fitting) : [];
  }

  // ---- drawing
  draw() {
    const { model, text, answer } = this, ready = Boolean(answer.logits), t = model.get("temperature");
    const now = this.hiddenPlaces(answer), before = this.hiddenPlaces(this.before);
    if (text.value !== model.get("text")) text.value = model.get("text");
    text.disabled = this.warmth.node.querySelector("input").disabled = !ready;
    this.notes.replaceChildren(...remarks(answer));
    this.warmth.set(toSlider(t), format(t, 2));
    this.top.set(model.get("top"), String(model.get("top")));
    this.drawBars(this.hiddenWords(answer, now), this.hiddenWords(this.before, before));
    this.drawAttention(now, ready);
  }
  drawBars(now, before) {
    const full = fullBar(Math.max(0, ...[...now, ...before].map(highest))), { bars } = this;
    const earlier = (place) => before.find(({ name }) => name === place.name);
    bars.replaceChildren(...now.map((place) => this.barsOf(place, earlier(place), full)));
    if (!now.length) bars.replaceChildren(h("p", { className: "attn-none" }, "Nothing is hidden: press a word."));
    this.scale.textContent = !now.length ? "" : `A full bar is ${full}.`
      + (bars.querySelector(".attn-then:not([hidden])") ? " Thin line: before your last change." : "");
  }
  barsOf(place, before, full) {
    const n = this.model.get("top"), best = place.best?.slice(0, n) ?? likeliest(place.p, this.tokens, n);
    const earlier = (name) => (before?.pieces ? before.best.find(({ token }) => token === name)?.p
      : before?.p[this.ids.get(name)]);
    const node = makeBars(place, best, this.size - best.length, full, earlier);
    const said = best.slice(0, 3).map((one) => `${visible(one.token)} ${share(one.p)}`).join(", ");
    node.dataset.said = `Instead of ${visible(place.name)}: ${said}`;
    return node;
  }
  drawAttention(now, ready) {
    const { model, answer, attention, chips, tinted } = this;
    const [place, into, layer, head] = ["place", "into", "layer", "head"].map((name) => model.get(name));
    attention.node.hidden = !now.length;
    tinted.replaceChildren();
    if (!now.length) return chips.draw(answer, ready, () => 0);
    const { level, legend } = attention.draw(answer, now, Math.min(place, now.length - 1), { into, layer, head });
    chips.draw(answer, ready, level);
    tinted.replaceChildren(...legend);
  }
}

function render({ model, el }) {
  const widget = new MaskedWords(model, el), { root, state, status } = widget;
  const ask = onceAFrame(() => widget.draw()), wonder = onceAFrame(() => widget.question());
  const dismiss = summon({ model, root, status, ready: (engine, told) => widget.ready(engine, told) });
  const changes = { text: wonder, masks: wonder, ...Object.fromEntries(SET.map((name) => [name, ask])) };
  const stop = live({ model, el, root, state, ask, changes, render });
  return () => {
    dismiss();
    wonder.cancel();
    stop();
  };
}

export default { render };
