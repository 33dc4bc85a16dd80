// Translator: the book's own trained models translate a number from English words to German ones, in the page.
import { makeCard, verdict } from "./card.js";
import { wrong } from "./compare.js";
import { NAMES, seen } from "./looks.js";
import { fetchModels } from "./models.js";
import { MOST_DIGITS, another, english, german, longer, readNumber, spelled, unsettled } from "./numbers.js";
import { makeWalk } from "./walk.js";
import { within } from "../shared/math.js";
import { button, disable, h, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const LETTERS = 100, KEPT = 50; // most letters in the input; most answers kept
const NUMBERS = ["stage", "at", "which", "head", "attention"];
const SHADES = "The deeper, the larger the weight.";
const UNSETTLED = "Germans do not agree how this number is written, so the book leaves it out and marks nothing.";

class Translator {
  constructor(model, el) {
    this.model = model;
    this.names = model.get("weights");
    this.labels = model.get("labels");
    this.engines = null; // the models, once they have loaded
    this.known = new Map(); // number -> answers
    this.broken = new Map(); // model -> the fewest digits at which it was seen to be wrong
    this.tried = model.get("guess") ? new Set() : null; // the lengths whose shares are shown; null: all
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
  }

  makeParts() {
    const { model, names, labels } = this, set = (traits) => put(model, traits);
    this.text = h("input", {
      type: "text", className: "attn-number", maxLength: LETTERS, spellcheck: false, autocomplete: "off",
      autocapitalize: "off", enterKeyHint: "go", "aria-label": "A number, in digits or in English words",
      oninput: () => this.ask(this.text.value.toWellFormed?.() ?? this.text.value),
    });
    this.more = button("One digit longer", () => this.goOn((number) => longer(number)), "attn-longer");
    this.other = button("Another number", () => this.goOn((number) => another(String(number).length)));
    [this.source, this.truth] = ["attn-english", "attn-truth"].map((className) => h("p", { className }));
    this.said = h("p", { className: "attn-outcome", "aria-live": "polite" });
    this.status = h("p", { className: "attn-note", role: "status", "aria-live": "polite" });
    this.cards = names.map((name, n) => makeCard({
      label: labels[n], exact: model.get("exact")[n], tell: (text) => this.point(text),
      choose: name === "one_vector" ? null : (at) => set({ at, which: n, head: 0 }),
      look: name === "transformer" && ((attention) => set({ attention })),
    }));
    this.readout = h("p", { className: "attn-note attn-readout" });
    this.attends = [...names.keys()].filter((n) => names[n] !== "one_vector");
    this.walk = makeWalk(set, this.attends.map((n) => labels[n]), this.attends);
    this.open = button("Walk through one word", () => set({ stage: 1, at: Math.max(0, model.get("at")) }));
  }
  layOut(title) {
    return h("div", { className: "attn attn-translator", role: "group", "aria-label": title || "Translator" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []),
      h("div", { className: "attn-typing" }, this.text, this.more, this.other),
      this.source, this.truth, this.said, this.status,
      h("div", { className: "attn-cards" }, ...this.cards.map((card) => card.node)),
      h("div", { className: "attn-views" }, ...this.cards.map((card) => card.views)), this.readout,
      ...(this.attends.length ? [this.open, this.walk.node] : []), this.state.bar);
  }

  // ---- what the reader does
  ask(text) {
    put(this.model, { text, at: -1 });
  }
  goOn(next) {
    const { number } = readNumber(this.model.get("text"));
    this.ask(String(next(number ?? 42)));
  }
  read() {
    const { model } = this, numbers = NUMBERS.map((name) => [name, [Number(model.get(name) ?? 0)]]);
    return { text: [model.get("text")], ...Object.fromEntries(numbers) };
  }
  restore({ text: [text], stage: [stage], at: [at], which: [which], head: [head], attention: [attention] }) {
    const whole = (x, low, high) => within(Math.trunc(x), low, high);
    this.broken.clear();
    this.tried?.clear();
    put(this.model, {
      text: text.slice(0, LETTERS).replace(/[\ud800-\udbff]$/, ""), stage: whole(stage, 0, 6), at: whole(at, -1, 31),
      which: whole(which, 0, this.names.length - 1), head: whole(head, 0, 3),
      attention: whole(attention, 0, NAMES.length - 1),
    });
  }

  // ---- the answers
  ready(engines) {
    this.engines = engines;
    this.draw();
  }
  answers(number) {
    const stored = this.model.get("answers");
    if (number === undefined) return [];
    if (!this.engines) return stored.number === number ? stored.models : [];
    if (!this.known.has(number)) {
      if (this.known.size > KEPT) this.known.clear();
      const words = english(number);
      const ask = ({ translate, kind, target }) => ({ ...translate(words), kind, target });
      this.known.set(number, this.engines.map(ask));
    }
    return this.known.get(number);
  }

  // ---- drawing
  draw() {
    const { model, text } = this, { number, problem } = readNumber(model.get("text"));
    const given = number !== undefined;
    const truth = given && !unsettled(number) ? german(number) : null, attention = model.get("attention") ?? 0;
    const digits = given ? String(number).length : 0, words = given ? english(number) : [];
    const told = this.answers(number).map((each) => seen(each, words, attention));
    if (text.value !== model.get("text")) text.value = model.get("text");
    text.setAttribute("aria-invalid", !given);
    disable(this.more, digits >= MOST_DIGITS);
    this.source.textContent = given ? `English: ${words.join(" ")}` : "";
    const right = truth ? spelled(truth) : "—";
    this.truth.replaceChildren(...(given ? ["German: ", h("span", { lang: "de" }, right)] : []));
    if (given) this.tried?.add(digits);
    const more = { truth, digits, attention, trained: model.get("trained"), tried: this.tried };
    const places = this.cards.map((card, n) => card.draw(told[n], { ...more, here: this.here(told[n], n) }));
    this.said.textContent = problem ?? (truth ? this.tell(places, digits) : UNSETTLED);
    this.said.classList.toggle("attn-problem", Boolean(problem));
    this.reads = told.some((each) => each.part === "encoder");
    this.point();
    this.drawWalk(told);
  }
  // Writes the line below the maps: the weight under the pointer or, without one, how to read the maps.
  point(text) {
    const some = this.root.querySelector(".attn-grid");
    const verb = !this.reads ? "wrote" : this.cards.length > 1 ? "wrote (the Transformer: read)" : "read";
    const rows = `Each row: where the model looked while it ${verb} that word. ${SHADES}`;
    this.readout.textContent = text ?? (some ? rows : "");
  }
  // The index of the German word that a model's maps mark, or -1.
  here(told, n) {
    const { model } = this, at = model.get("at");
    if (!told?.maps.length || n !== this.chosen()) return -1;
    const last = told.steps ? told.steps.length - 1 : told.written.length;
    return at < 0 && !model.get("stage") ? -1 : within(at, 0, last);
  }
  chosen() {
    const which = this.model.get("which");
    return this.attends.includes(which) ? which : this.attends[0];
  }
  drawWalk(told) {
    const { model, open, walk } = this, mine = told[this.chosen()], stage = model.get("stage");
    const shown = stage > 0 && mine?.steps;
    open.hidden = stage > 0;
    disable(open, !mine?.steps);
    walk.node.hidden = !shown;
    if (!shown) return;
    const at = this.here(mine, this.chosen()), head = Math.min(model.get("head"), mine.maps.length - 1);
    walk.draw(mine, { which: this.chosen(), at, head, stage });
  }
  // Says which models are right, and notes the fewest digits each got wrong.
  tell(places, digits) {
    if (places.some((each) => !each)) return "";
    const bad = [...places.keys()].filter((n) => places[n].some(wrong)), named = (n) => this.labels[n];
    for (const n of bad) this.broken.set(n, Math.min(digits, this.broken.get(n) ?? Infinity));
    const size = `${digits} digit${digits > 1 ? "s" : ""}`;
    if (!bad.length) return `${size}: ${places.length > 1 ? "both are right" : "right"}.`;
    const trained = this.model.get("trained");
    if (digits > trained) {
      const who = bad.length > 1 ? "both break" : `${named(bad[0])} breaks`;
      const why = `Training ended at ${trained} digits: the length is new, and so is the word “billion”.`;
      return `${size}: ${who}. ${why}`;
    }
    if (places.length < 2) return `${size}: ${verdict(places[0])}`;
    if (bad.length > 1) return `${size}: both are wrong.`;
    const first = this.broken.get(bad[0]) === digits ? "breaks" : "is wrong";
    return `${size}: ${named(bad[0])} ${first}, ${named(1 - bad[0])} is right.`;
  }
}

function render({ model, el }) {
  const widget = new Translator(model, el), { root, state, status } = widget, ask = onceAFrame(() => widget.draw());
  const dismiss = fetchModels({ model, root, status, ready: (engines) => widget.ready(engines) });
  const changes = Object.fromEntries(["text", ...NUMBERS].map((name) => [name, ask]));
  return live({ model, el, root, state, ask, changes, render, leave: dismiss });
}

export default { render };
