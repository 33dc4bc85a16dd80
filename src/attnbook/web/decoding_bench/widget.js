// DecodingBench: a tree of a real model's distributions. Filters cut, a random number draws, and the reader continues.
import { Answers } from "./answers.js";
import { Kernel } from "./kernel.js";
import { Other } from "./other.js";
import { makeOwn } from "./own.js";
import { branches, chance, nearest, prospect, unpack } from "./tree.js";
import { makeLines } from "./view.js";
import { Writer } from "./writer.js";
import { language, offered } from "../shared/published.js";
import { format, grouped, share, toSlider, visible, within } from "../shared/math.js";
import { makeFilters } from "../playground/filters.js";
import { stepOf } from "../playground/row.js";
import { makeDraw, makeText } from "../playground/view.js";
import {
  button, disable, h, keepFocus, live, onceAFrame, oneAFrame, put, stateControls, token, write,
} from "../shared/ui.js";

const FILTERS = ["temperature", "top_k", "top_p", "min_p"];
const RARE = 1e-3; // the probability below which a token is rare, as chapter 10 has it
const PAUSE = 150; // milliseconds: nobody reads bars that change faster
const LEAD = "What the model says comes next, and what a filter keeps of that. Take the token that the number falls "
  + "on, or press any other; press a token of the text to go back to its place.";
const precision = ({ nodes, keep }) => `Stored are the chances of the ${keep} likeliest tokens at `
  + `${grouped(nodes)} places. A number that needs other tokens has an “about” in front.`;

// What the filters leave of a place's distribution, and the entropy before and after.
function leftLine({ count, mass, near, size, bits }) {
  const strong = (words) => h("b", {}, words), about = (is) => (is ? "about " : "");
  return ["Kept: ", strong(about(near.count) + grouped(count)), ` of ${grouped(size)} tokens, `,
    "which have ", strong(about(near.mass) + share(mass)), " of the chance. Entropy (how evenly it is spread, "
      + `at most ${format(Math.log2(size), 2)} bits): `,
    strong(`${format(bits[0], 2)} bits`), " as the model says, ", strong(`${format(bits[1], 2)} bits`),
    " as it is filtered."];
}

class DecodingBench {
  constructor(model, el) {
    const onPage = Boolean(el.closest("[data-attnbook-page]"));
    this.model = model;
    [this.sizes, this.prompt, this.methods] = ["sizes", "prompt", "methods"].map((name) => model.get(name));
    this.tree = unpack(model.get("tree"), this.sizes);
    this.view = null; // what is shown of the current place
    this.stored = true; // the text begins as the stored tree does
    this.apart = []; // the path behind a beginning of the reader's own; `written` is the one behind the stored prompt
    this.shaded = { path: [], chances: [] }; // the path last drawn, and what the model gave to each token of it
    this.room = Infinity; // how many tokens after the beginning the model can read
    this.names = Object.fromEntries(model.get("tokens").map((name, n) => [this.tree.ids[n], name]));
    this.prompt.forEach((name, n) => (this.names[-1 - n] = name));
    this.answers = new Answers(onPage, () => (this.writer.busy ? this.ask.now() : this.say()), () => this.miss());
    this.writer = new Writer(this);
    this.own = this.makeOwn(onPage ? offered() : null);
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
    this.ask = onceAFrame(() => keepFocus(this.root, () => this.draw(), this.back));
  }

  makeParts() {
    const { model } = this;
    this.text = makeText((at) => this.go(this.path.slice(0, Math.max(0, at - this.prompt.length))));
    this.rare = h("p", { className: "attn-note" });
    this.back = button("Back", () => this.go(this.path.slice(0, -1)));
    this.anew = button("Start anew", () => this.go([]));
    this.ways = this.methods.map(({ name, ...how }) => button(name, () => put(model, how)));
    this.filters = makeFilters((traits) => put(model, traits));
    this.bars = makeLines((id) => this.follow(id));
    this.take = button("Take it", () => this.follow(this.view.drawn.which), "attn-go");
    this.fell = makeDraw(h("span", { className: "attn-row attn-act" }, this.take,
      button("Draw again", () => { put(model, { seed: (model.get("seed") + 1) % 1e6 }); this.say(true); })));
    this.fellLine = this.fell.node.querySelector(".attn-fell");
    this.readout = h("p", { className: "attn-readout" });
    this.parts = [(view) => this.bars.draw(view, view.stored), (view) => this.drawFall(view), () => this.drawFilters()];
    const alone = (part) => () => keepFocus(this.root, () => this.drawParts([part]), this.back);
    this.inParts = oneAFrame(this.parts.map(alone), PAUSE);
    this.panel = h("div", { className: "attn-beyond" });
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  }

  layOut(title) {
    const ways = { className: "attn-row attn-methods", role: "group", "aria-label": "Method" };
    const filters = Object.values(this.filters).map(({ node }) => node);
    this.shown = h("div", { className: "attn-shown" }, h("div", ways, ...this.ways), ...filters, this.readout,
      this.bars.node, this.fell.node);
    return h("div", {
      className: "attn attn-playground attn-bench", role: "group", "aria-label": title || "Decoding bench",
    }, ...(title ? [h("p", { className: "attn-title" }, title)] : []), h("p", { className: "attn-lead" }, LEAD),
      this.text.node, this.rare, h("div", { className: "attn-row attn-act" }, this.back, this.anew),
      this.own.node, this.panel, this.shown,
      h("p", { className: "attn-note" }, precision(this.sizes)), this.heard, this.state.bar);
  }

  // ---- the model, in the page or, without a site (null), in the kernel
  makeOwn(site) {
    this.language = site === null ? new Kernel(this.model) : site && language(site);
    const begin = (text) => this.begin(text), write = () => this.writer.press();
    this.other = this.language && new Other(this);
    return makeOwn({ site, language: this.language, begin, write, other: this.other?.node ?? "" });
  }
  // The model's stage has changed: once it is ready, it answers for this text.
  async hearModel() {
    const { stage, told } = this.language;
    if (stage === "loading") return this.own.draw();
    if (stage === "failed") this.answers.begin(undefined, []), this.writer.halt(), this.other?.stop();
    if (stage === "ready" && !this.answers.language) {
      const wrong = this.tree.ids.find((id) => this.names[id] !== told.names[id]);
      if (wrong !== undefined || told.names.length !== this.sizes.vocab) {
        return this.language.fail(new Error("it is another model than the stored one"));
      }
      Object.assign(this.names, told.names);
      await this.open(this.own.text.value = this.prompt.join(""), told.ids);
    }
    this.ask();
  }
  // Encodes the beginning of a text unless its ids are given. A tree is stored only for the widget's own prompt.
  async open(text, given) {
    const found = given ?? await this.language.encode(text), { names, start, sizes } = this.language.told;
    const ids = found.length ? found : [start];
    this.prompt = ids.map((id) => names[id]);
    this.prompt.forEach((name, n) => (this.names[-1 - n] = name));
    this.stored = String(this.prompt) === String(this.model.get("prompt"));
    this.room = sizes.room - ids.length;
    this.shaded = { path: [], chances: [] };
    this.answers.begin(this.language, ids);
  }
  async begin(text) {
    await this.open(text);
    this.go([]);
  }
  // No answer came in time.
  miss() {
    this.writer.halt();
    this.other?.stop();
    this.say();
  }
  placeOf(path) {
    return this.answers.at(path) ?? (this.stored ? this.tree.get(path) : undefined);
  }

  // ---- what the reader does
  get path() {
    return this.stored ? this.model.get("written") : this.apart;
  }
  set path(path) {
    if (this.stored) this.model.set("written", path);
    else this.apart = path, this.ask();
  }
  get ended() {
    return this.path.at(-1) === this.sizes.end;
  }
  get full() {
    return this.path.length >= (this.answers.language ? this.room : this.sizes.room);
  }
  get over() {
    return this.ended || this.full;
  }
  go(written) {
    this.writer.halt();
    if (String(written) !== String(this.path)) {
      this.path = written;
      this.model.save_changes();
    }
    this.say();
  }
  follow(id) {
    if (id !== undefined) this.go([...this.path, id]);
  }
  say(drawn = false) {
    this.ask.now();
    const text = [...this.prompt, ...this.path.map((id) => this.names[id])].slice(-8).join("");
    const what = this.panel.textContent || this.readout.textContent;
    this.heard.textContent = drawn ? this.fellLine.textContent : `… ${text}. ${what}`;
  }
  read() {
    const numbers = Object.fromEntries([...FILTERS, "seed"].map((name) => [name, [this.model.get(name)]]));
    return { ...numbers, written: this.path.length && this.stored ? this.path : [-1] };
  }
  restore({ temperature: [t], top_k: [k], top_p: [p], min_p: [m], seed: [s], written }) {
    this.writer.halt();
    const known = (id) => this.stored && Number.isInteger(id) && id >= 0 && id < this.sizes.vocab;
    if (!this.stored) this.path = [];
    const ids = written.filter(known); // a link's tokens follow the stored beginning, not the reader's own
    put(this.model, {
      temperature: Math.max(0, t), top_k: Math.max(0, Math.trunc(k)), top_p: within(p, 0.01, 1), min_p: within(m, 0, 1),
      seed: within(Math.trunc(s), 0, 1e6), ...(this.stored ? { written: ids.slice(0, this.sizes.room) } : {}),
    });
  }

  // ---- drawing
  nameOf(id) {
    return this.names[id] ?? `token ${id}`;
  }
  draw() {
    const { writer } = this;
    if (writer.waits) return this.answers.ask(this.path);
    const place = !this.over && this.placeOf(this.path);
    this.view = place ? this.viewOf(place) : null;
    this.drawText();
    this.shown.hidden = !this.view;
    this.panel.hidden = Boolean(this.view);
    this.panel.replaceChildren(...(this.view ? [] : this.panelLines()));
    if (this.view && writer.busy) this.inParts();
    else this.drawParts();
    this.own.draw(writer.busy, this.answers.silent);
    this.other?.draw();
    // Last, since it forces a layout; and once more after the writer has stopped, as the text's end then changes.
    if (writer.busy || this.wrote) this.text.node.scrollTop = this.text.node.scrollHeight;
    this.wrote = writer.busy;
    writer.goOn();
  }
  viewOf(place) {
    const { model, path } = this, [temperature, topK, topP, minP] = FILTERS.map((name) => model.get(name));
    const view = prospect(place, this.sizes, { temperature, topK, topP, minP }, model.get("seed"), path.length);
    for (const each of [...view.best, view.drawn]) {
      each.name = each.which === undefined ? "one of the others" : this.nameOf(each.which);
    }
    return { ...view, stored: place.exact || this.answers.language ? null : new Set(branches(this.tree, path)) };
  }
  drawText() {
    const { path, prompt, names } = this, ids = [...prompt.map((_, n) => -1 - n), ...path];
    for (const id of path) names[id] ??= `⟨${id}⟩`;
    const pieces = ids.map((id) => (this.nameOf(id).startsWith("\\x") ? "" : this.nameOf(id)));
    const chances = this.chancesOf(path), rare = chances.map((p) => p < RARE);
    const shades = [...prompt.slice(1).map(() => 0), ...rare.map((is) => (is ? Infinity : 0))];
    this.text.draw({ ids, pieces, prompt: prompt.length }, names, ids.length, shades);
    const known = chances.filter((p) => p !== undefined).length;
    const those = known < path.length ? "whose chance is known" : "after the beginning";
    write(this.rare, "Rare tokens are shaded (the model gave each less than 1 in 1,000)"
      + (known ? `: ${rare.filter(Boolean).length} of the ${known} ${those}.` : "."));
    for (const node of [this.back, this.anew]) disable(node, !path.length);
  }
  // What the model gave to each token of a path, undefined where it was not asked; what the path last drawn had in
  // common with this one is kept.
  chancesOf(path) {
    const old = this.shaded;
    let same = 0;
    while (same < path.length && old.path[same] === path[same]) same++;
    const ask = (id, n) => {
      const place = this.placeOf(path.slice(0, n));
      return place && chance(place, this.sizes, id);
    };
    const chances = path.map((id, n) => (n < same ? old.chances[n] : undefined) ?? ask(id, n));
    this.shaded = { path, chances };
    return chances;
  }
  // Draws what is shown of the place. While the model writes, the box never shrinks, so what is below rarely moves.
  drawParts(parts = this.parts) {
    const { writer, shown, root, view } = this;
    root.classList.toggle("attn-writing", writer.busy);
    shown.style.minHeight = writer.busy ? `${shown.offsetHeight}px` : "";
    if (view) parts.forEach((draw) => draw(view));
  }
  drawFall(view) {
    this.fell.draw(view);
    disable(this.take, view.drawn.which === undefined);
    if (view.drawn.which === undefined) this.drawUnknown(view);
    this.readout.replaceChildren(...leftLine(view));
  }
  drawFilters() {
    const { filters, model } = this, [temperature, topK, topP, minP] = FILTERS.map((name) => model.get(name));
    this.ways.forEach((way, n) =>
      way.setAttribute("aria-pressed", FILTERS.every((name) => this.methods[n][name] === model.get(name))));
    filters.temperature.set(temperature ? toSlider(temperature) : 0, temperature ? format(temperature, 2) : "0");
    filters.top_k.set(stepOf(topK), topK ? String(topK) : "all");
    filters.top_p.set(topP, topP < 1 ? format(topP, 2) : "all");
    filters.min_p.set(minP, format(minP, 2));
  }
  // The number falls on a token that is not stored.
  drawUnknown({ number, size }) {
    this.answers.ask(this.path);
    this.fellLine.textContent = `The number ${format(number)} falls among the ${grouped(size - this.sizes.keep)} `
      + "others: " + (this.answers.silent ? "which one is not stored. Draw again, or press a token."
      : "asking the model which …");
  }
  // What is shown instead if a place has no distribution.
  panelLines() {
    if (this.ended) return ["The text ends here: the model chose its end token."];
    if (this.full) return ["The model reads no more tokens than these."];
    this.answers.ask(this.path);
    if (!this.answers.silent) return ["Asking the model …"];
    const { path, next } = nearest(this.tree, this.path);
    const last = path.length ? this.nameOf(path.at(-1)) : this.prompt.at(-1);
    const ways = next.map((id) => button(visible(this.nameOf(id)), () => this.go([...path, id])));
    if (!next.length) ways.push(button("Back to it", () => this.go(path)));
    return [h("p", {}, "What the model says here is not stored, and no kernel is there to ask it. "
      + (this.own.offers ? "Load the model, go back," : "Go back,")
      + " or take a branch that is stored after ", token(visible(last)), ":"),
    h("div", { className: "attn-row attn-branches" }, ...ways)];
  }
}

function render({ model, el }) {
  const bench = new DecodingBench(model, el), { root, state, ask } = bench;
  const changes = Object.fromEntries([...FILTERS, "seed", "written"].map((name) => [name, ask]));
  const stop = live({ model, el, root, state, ask, changes, render });
  const unwatch = bench.language?.watch(() => bench.hearModel());
  bench.own.look(ask);
  if (bench.language?.stage === "ready") bench.hearModel();
  return () => {
    unwatch?.();
    bench.writer.halt();
    bench.other?.stop();
    bench.answers.stop();
    stop();
  };
}

export default { render };
