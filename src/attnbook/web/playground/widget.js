// Playground: a GPT in the page. It says what could come next, filters cut that, and a random number picks a token.
import { makeFilters } from "./filters.js";
import { makeCheckpoints } from "./checkpoints.js";
import { makeEffects, makeFolds } from "./folds.js";
import { makeInside, makePlaces } from "./inside.js";
import { Branches, Reader } from "./reader.js";
import { branch, surprises } from "./row.js";
import { LEAD, LETTERS, NUMBERS, PACES, checkpointsOf, chosenOf, readState, traitsOf, windowWritten } from "./state.js";
import { makeBars, makeDraw, makeText } from "./view.js";
import { share, visible, within } from "../shared/math.js";
import { summon } from "../shared/model.js";
import { button, disable, h, keepFocus, live, onceAFrame, put, select, stateControls, token } from "../shared/ui.js";

const REST = 80; // minimum milliseconds between drawings while it writes as fast as it can

class Playground {
  constructor(model, el) {
    this.model = model;
    this.writing = false;
    this.begun = 0; // tokens that were written before the last Write
    this.branches = new Branches();
    this.ask = onceAFrame(() => keepFocus(this.root, () => this.draw(), this.go));
    this.drawn = 0; // the time of the last drawing, in milliseconds
    this.shown = 0; // the place that was on view then
    this.reader = new Reader(model, () => this.answered());
    this.makeControls();
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => readState(model, this.begun), this.restore.bind(this));
    this.root = this.layOut(model.get("title"));
  }

  // ---- elements
  makeControls() {
    const { model } = this;
    this.text = h("textarea", {
      rows: 2, maxLength: LETTERS, spellcheck: false, "aria-label": "Your beginning", enterKeyHint: "go",
      oninput: () => this.edit(), onkeydown: (event) => {
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        this.write();
      },
    });
    this.go = button("Write", () => (this.writing ? this.halt() : this.write()), "attn-go");
    this.again = button("Again", () => this.write(true));
    this.one = button("Step", () => this.step());
    this.back = button("Back", () => this.undo());
    this.pace = select("pace", PACES.map(([name]) => name), () => {});
    this.pace.list.selectedIndex = 1;
    this.other = button("Another number", () => put(model, { seed: (model.get("seed") + 1) % 1e6 }));
    this.seed = h("input", { type: "number", min: 0, max: 1e6, step: 1, inputMode: "numeric",
      oninput: ({ target }) => {
        if (target.value !== "" && target.checkValidity()) put(model, { seed: Number(target.value) });
      } });
    this.training = makeCheckpoints(checkpointsOf(model), (checkpoint) => put(model, { checkpoint }));
    this.filters = makeFilters((traits) => put(model, traits));
  }

  makeParts() {
    const { model, reader } = this, note = (props) => h("p", { className: "attn-note", ...props });
    this.tokens = makeText((at) => put(model, { place: at >= reader.row.ids.length ? -1 : at }));
    this.tried = h("div", { className: "attn-row attn-branches" });
    this.note = note();
    this.status = note({ role: "status", "aria-live": "polite" });
    this.could = h("p", { className: "attn-legend" });
    this.bars = makeBars((id) => this.take(id));
    this.fell = makeDraw(this.other);
    this.effects = makeEffects(this.filters);
    this.places = makePlaces();
    this.inner = h("div");
    this.inside = undefined; // the heads, once the model has loaded
    const seeded = h("label", { className: "attn-field" }, h("span", {}, "seed of the numbers"), this.seed);
    const bodies = { filters: [...this.effects.nodes, seeded], places: [this.places.node], inside: [this.inner] };
    this.folds = makeFolds(bodies, () => model.get("unfolded"), (unfolded) => put(model, { unfolded }));
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  }

  layOut(title) {
    return h("div", { className: "attn attn-playground", role: "group", "aria-label": title || "Playground" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []), h("p", { className: "attn-lead" }, LEAD),
      this.text, h("div", { className: "attn-row attn-act" }, this.go, this.one, this.back, this.again,
        this.pace.node), this.training.node,
      this.tokens.node, this.tried, this.note, this.status, this.could, this.bars.node, this.fell.node,
      ...this.folds.nodes, this.heard, this.state.bar);
  }

  // ---- writing
  // Writes one more token: the one that the next place's random number falls on.
  async step(save = true) {
    const { model, reader } = this;
    if (!reader.engine || reader.full) return;
    if (model.get("place") >= 0) model.set("place", -1);
    if (!(await reader.ask())) return this.halt();
    const { drawn } = reader.outlook(reader.row.ids.length, this.settings(), model.get("seed"));
    model.set("written", [...model.get("written"), drawn.which]);
    if (save) model.save_changes();
    await reader.ask();
    if (save) this.heard.textContent = `${visible(drawn.name)}, ${share(drawn.p)}`;
    if (drawn.which === reader.end) this.halt();
  }
  // Continues the text with a new seed or, if `again`, with the last one, from where it began then.
  async write(again = false) {
    const { model, reader } = this, written = model.get("written");
    if (this.writing || !reader.engine) return;
    const mine = (this.turn = {}); // a stop followed by a new start ends this turn
    this.writing = true;
    if (again) model.set("written", written.slice(0, this.begun));
    else model.set("seed", Math.floor(1e6 * Math.random()));
    this.begun = model.get("written").length;
    await reader.ask();
    this.draw();
    try {
      while (this.writing && this.turn === mine && !this.reader.full) {
        const began = performance.now();
        await this.step(false);
        const rest = 1000 / this.tempo - (performance.now() - began);
        if (rest > 0) await new Promise((done) => setTimeout(done, rest));
      }
    } finally {
      if (this.turn === mine) this.halt();
    }
  }
  get tempo() { // tokens per second
    return PACES[this.pace.list.selectedIndex][1];
  }
  // Drawing a long text takes longer than writing a token: at full speed, not every token is drawn at once.
  answered() {
    const rest = this.writing && this.tempo === Infinity ? this.drawn + REST - performance.now() : 0;
    clearTimeout(this.later);
    if (rest > 0) this.later = setTimeout(this.ask, rest);
    else this.ask();
  }
  halt() {
    const { row } = this.reader;
    if (!this.writing) return;
    this.draw(); // what is not drawn yet, scrolled to its end
    this.writing = false;
    this.model.save_changes();
    this.heard.textContent = row.pieces.slice(row.prompt).join("");
    this.ask();
  }

  // ---- what the reader does
  edit() {
    const { value } = this.text;
    this.halt();
    this.branches.clear();
    this.begun = 0;
    put(this.model, { text: value.toWellFormed?.() ?? value, written: [], place: -1 });
  }
  undo() {
    this.halt();
    put(this.model, { written: this.model.get("written").slice(0, -1), place: -1 });
  }
  // Puts a token at the place on view. The text with the old token and all after it is kept as a branch.
  take(id) {
    const { row } = this.reader, at = Math.min(this.shown, row.ids.length);
    this.halt();
    if (at < row.ids.length) this.keep();
    put(this.model, { ...branch(row, this.model.get("text"), at, id), place: -1 });
  }
  keep() {
    this.branches.keep(this.model.get("text"), this.model.get("written"), this.reader.row.pieces);
  }
  goBack(left) {
    this.keep();
    this.branches.take(left);
    put(this.model, { text: left.text, written: left.written, place: -1 });
  }
  restore(given) {
    this.halt();
    this.branches.clear();
    this.begun = Math.max(0, Math.trunc(given.begun[0]));
    put(this.model, traitsOf(given, this.reader.stored, this.model));
  }
  ready(engine, told) {
    const { model, reader } = this, { n_layers: layers, n_heads: heads } = told.config;
    reader.open(engine, told);
    this.inside = makeInside(layers, heads, (n) => put(model, { head: n === model.get("head") ? -1 : n }));
    this.inner.replaceChildren(this.inside.node);
    return reader.ask();
  }
  // Stops until another checkpoint has loaded.
  wait() {
    this.halt();
    this.reader.close();
    this.ask();
  }

  // ---- drawing
  settings() {
    const [temperature, topK, topP, minP] = NUMBERS.map((name) => this.model.get(name));
    return { temperature, topK, topP, minP };
  }
  // The place on view: the place of the next token, unless the reader pressed another one.
  seen() {
    const place = this.model.get("place"), next = this.reader.row.ids.length;
    return place < 0 ? next : within(place, 1, next);
  }
  draw() {
    const { model, reader } = this, { row, names } = reader, unfolded = model.get("unfolded");
    const at = reader.live ? this.seen() : reader.stored.at, here = row.ids[at];
    const view = reader.outlook(at, this.settings(), model.get("seed"));
    const bits = reader.live && unfolded.includes("places") ? surprises(row) : null;
    this.drawControls();
    const start = reader.live ? row.places[at - 1].start : row.start;
    this.tokens.draw(row, names, at, bits?.map((each) => each.bits), start);
    this.drawNotes(row, at, here, start);
    this.bars.draw(view, here, reader.live);
    this.fell.draw(view);
    this.effects.draw(view, this.settings());
    if (bits) this.places.draw(bits, names);
    if (reader.live && unfolded.includes("inside")) this.inside.draw(row, names, at - 1, model.get("head"));
    if (this.writing) this.tokens.node.scrollTop = this.tokens.node.scrollHeight; // last, since it forces a layout
    this.drawn = performance.now();
    this.shown = at;
  }
  drawControls() {
    const { model, text, seed, writing } = this, { full, engine } = this.reader, live = this.reader.live && engine;
    if (text.value !== model.get("text")) text.value = model.get("text");
    this.training.draw(chosenOf(model), this.reader.live);
    this.go.textContent = writing ? "Stop" : "Write";
    text.disabled = this.other.disabled = seed.disabled = !live;
    if (!seed.matches(":focus")) seed.value = model.get("seed");
    disable(this.go, !live || (full && !writing));
    this.again.textContent = `Again with seed ${model.get("seed")}`;
    disable(this.again, !live || writing || model.get("written").length <= this.begun);
    disable(this.one, !live || writing || full);
    disable(this.back, !live || !model.get("written").length);
    for (const { node } of Object.values(this.filters)) node.querySelector("input").disabled = !live;
  }
  // Writes what the model no longer reads, the branches that were left, and which place is on view.
  drawNotes(row, at, here, start) {
    const { names } = this.reader, { left } = this.branches, named = (id) => token(visible(names[id]));
    this.note.textContent = windowWritten(this.reader, start);
    this.tried.replaceChildren(...(left.length ? [h("span", { className: "attn-note" }, "Left: ")] : []),
      ...left.map((each) => button(`… ${each.shown}`, () => this.goBack(each))));
    const before = named(row.ids[at - 1]);
    this.could.replaceChildren(...(here === undefined ? ["What could come next, after ", before]
      : ["What could have stood after ", before, " instead of ", named(here)]));
  }
}

function render({ model, el }) {
  const playground = new Playground(model, el), { root, state, ask, status, reader } = playground;
  const wonder = onceAFrame(() => reader.ask());
  let dismiss = () => {};
  function call() {
    const { name } = checkpointsOf(model)[chosenOf(model)];
    dismiss();
    playground.wait();
    dismiss = summon({ model, root, status, name, ready: (engine, told) => playground.ready(engine, told) });
  }
  const drawn = Object.fromEntries(NUMBERS.map((name) => [name, ask]));
  function unfold() {
    playground.folds.draw();
    ask();
  }
  const changes = { text: wonder, written: wonder, ...drawn, unfolded: unfold, checkpoint: call };
  const stop = live({ model, el, root, state, ask, changes, themed: ask });
  call();
  return () => {
    playground.writing = false;
    clearTimeout(playground.later);
    for (const end of [dismiss, wonder.cancel, stop]) end();
  };
}

export default { render };
