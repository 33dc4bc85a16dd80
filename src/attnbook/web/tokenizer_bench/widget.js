// TokenizerBench: how byte-pair encoding learns pieces from the reader's text, and how three vocabularies cut it.
import ENGINE from "../engine/tokenizers.js" with { type: "text" };
import { start } from "../engine/client.js";
import { grouped, within } from "../shared/math.js";
import { button, h, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { fetchWeights } from "../shared/weights.js";
import { makeCut } from "./cut.js";
import { makeLearn } from "./learn.js";

const MOST = 200_000, LINKED = 2_000; // most characters that are read; that a link keeps
const VIEWS = { learn: "Learn pieces", cut: "Cut words" };
// The first characters of a text, without half a surrogate pair.
const cutAt = (text, most) => text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
const CODE = { learn: ["learn_merges", "joined"], cut: ["by_rank", "by_longest"] };

class Bench {
  constructor(model, el) {
    this.model = model;
    this.engine = start(ENGINE);
    this.ready = false; // the vocabularies have loaded
    this.told = {};
    this.text = h("textarea", { rows: 4, spellcheck: false, "aria-label": "Your text", oninput: () => this.edit() });
    this.note = h("p", { className: "attn-note", role: "status" });
    this.status = h("p", { className: "attn-note", role: "status" });
    this.views = Object.entries(VIEWS).map(([view, name]) => button(name, () => put(model, { view })));
    this.learn = makeLearn((traits) => put(model, traits));
    this.cut = makeCut(model.get("labels"), (traits) => put(model, traits));
    this.code = h("pre", { tabIndex: 0, role: "region", "aria-label": "The same in Python" }, h("code"));
    this.fold = h("details", { className: "attn-fold", ontoggle: () => {
      if (this.fold.open !== model.get("unfolded")) put(model, { unfolded: this.fold.open });
    } }, h("summary", {}, "The same in Python"), this.code);
    this.unfold();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
    this.draw = onceAFrame(() => this.show());
    this.asking = false;
  }

  layOut(title) {
    this.cutting = h("div", {}, this.status, this.cut.node);
    return h("div", { className: "attn attn-cutter", role: "group", "aria-label": title || "Bench for tokenizers" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []), this.text, this.note,
      h("div", { className: "attn-row attn-halves", role: "group", "aria-label": "What to look at" }, ...this.views),
      this.learn.node, this.cutting, this.fold, this.state.bar);
  }

  edit() {
    const { value } = this.text, text = value.toWellFormed?.() ?? value;
    put(this.model, { text: cutAt(text, MOST), word: 0, step: 0 });
    this.left = Math.max(0, text.length - MOST);
  }
  // Not in `show`: the reader's toggle is told a task later, and an answer in between would fold it again.
  unfold() {
    this.fold.open = this.model.get("unfolded");
  }
  // Asks the worker about the open view, once for all traits that change together. A question overtaken by a newer one
  // gets no answer.
  async ask() {
    if (this.asking) return;
    this.asking = true;
    await null;
    this.asking = false;
    const { model } = this, view = model.get("view"), get = (name) => model.get(name);
    if (this.stopped || (view === "cut" && !this.ready)) return;
    const traits = view === "cut" ? ["text", "word"] : ["text", "apart", "merges"];
    const asked = Object.fromEntries(traits.map((name) => [name, get(name)]));
    try {
      const found = await this.engine.newest(view, asked);
      if (!found) return;
      this.told[view] = found;
      this.failed = "";
    } catch (reason) {
      this.failed = `It could not be computed: ${reason.message}. Change something to try again.`;
    }
    if (!this.stopped) this.show();
  }
  // Loads the fetched vocabularies.
  async open(files) {
    await this.engine.open(() => {
      const buffers = files.map((bytesOf) => bytesOf());
      return ["load", buffers, buffers];
    });
    this.ready = true;
    this.ask();
  }

  read() {
    const get = (name) => this.model.get(name);
    return { text: [cutAt(get("text"), LINKED)], cut: [Number(get("view") === "cut")], apart: [Number(get("apart"))],
      merges: [get("merges")], word: [get("word")], step: [get("step")], unfolded: [Number(get("unfolded"))] };
  }
  restore(given) {
    const [merges, word, step] = ["merges", "word", "step"].map((name) => Math.max(0, Math.trunc(given[name][0])));
    const [cut, apart, unfolded] = ["cut", "apart", "unfolded"].map((name) => given[name][0] > 0);
    const text = cutAt(given.text[0], LINKED);
    const view = cut ? "cut" : "learn";
    put(this.model, { text, view, apart, merges: within(merges, 0, 1000), word, step, unfolded });
    this.left = 0;
  }

  show() {
    const { model, told } = this, view = model.get("view"), text = model.get("text");
    if (this.text.value !== text && !this.left) this.text.value = text;
    const long = text.length > LINKED ? ` A link keeps its first ${grouped(LINKED)} characters.` : "";
    this.note.textContent = this.failed || (this.left
      ? `The first ${grouped(MOST)} characters are read, the other ${grouped(this.left)} are not.${long}`
      : long.trim());
    Object.keys(VIEWS).forEach((name, n) => this.views[n].setAttribute("aria-pressed", name === view));
    this.learn.node.hidden = view !== "learn";
    this.cutting.hidden = view !== "cut";
    if (view === "learn" && told.learn) this.learn.draw(told.learn, model.get("apart"));
    if (view === "cut" && told.cut && this.ready) this.cut.draw(told.cut, model.get("word"), model.get("step"));
    this.cut.node.hidden = !(told.cut && this.ready);
    const code = CODE[view].map((name) => model.get("code")[name]).join("\n\n\n");
    if (this.code.textContent !== code) this.code.firstChild.textContent = code;
  }
}

function render({ model, el }) {
  const bench = new Bench(model, el), { root, state, draw, status, engine } = bench;
  const names = model.get("weights"), files = new Map();
  const dismiss = fetchWeights({ model, root: bench.cutting, status, names, what: ["vocabulary", "vocabularies"],
    until: "", take: (name, bytesOf) => files.set(name, bytesOf),
    ready: () => bench.open(names.map((name) => files.get(name))) });
  const ask = () => {
    draw();
    bench.ask();
  };
  const asks = ["text", "view", "apart", "merges", "word"].map((name) => [name, ask]);
  bench.ask();
  const changes = { ...Object.fromEntries(asks), step: draw, unfolded: () => bench.unfold() };
  return live({ model, el, root, state, ask: draw, changes, leave: () => {
    bench.stopped = true;
    dismiss();
    engine.stop();
  } });
}

export default { render };
