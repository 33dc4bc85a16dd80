// Laboratory: the reader trains a small Transformer in the page, takes parts away, bets, and compares runs.
import { looksOf, makeCurves, VIEWS } from "./curves.js";
import { Kept } from "./kept.js";
import { judged, rival, since } from "./ledger.js";
import { endWritten, faultOf, progressWritten } from "./sentences.js";
import { choices, ITEMS, settled, warning } from "./settings.js";
import { makeBets, makeControls, makeLedger } from "./table.js";
import { Training } from "./training.js";
import { drawAnswer, makeMaps } from "./view.js";
import { operationsWritten } from "./compute.js";
import { hash } from "../engine/random.js";
import { sizes } from "../engine/sizes.js";
import { makeTask } from "../engine/tasks.js";
import { grouped } from "../shared/math.js";
import { button, disable, h, keepFocus, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const LOOKS = 300, SEEDS = 5; // ms between two looks into the model; seeds of a band

const note = (...words) => h("p", { className: "attn-note" }, ...words);
const fold = (summary, ...inside) => h("details", {}, h("summary", {}, summary), ...inside);

class Laboratory {
  constructor(model, el) {
    this.model = model;
    this.items = { ...ITEMS }; // what the reader asks the model, by task
    [this.start, this.linked, this.measured] = [this.settings, [], new Map()]; // linked: names set by a link
    this.runs = model.get("runs").map((run, n) => {
      const settings = settled(run.settings);
      return { ...run, settings, number: n + 1, stored: true, bet: null, sizes: this.measure(settings) };
    });
    [this.seen, this.looked, this.chosen] = [null, 0, 0]; // the last look into a model, and its time; the opened head
    this.ask = onceAFrame(() => keepFocus(this.root, () => this.draw(), this.go));
    this.kept = new Kept({ runs: this.runs, name: model.get("name"), changed: this.ask });
    this.training = new Training(this.runs, {
      changed: this.ask, learnt: () => this.look(), tested: (run) => this.kept.put(run),
      ended: (run, stopped) => this.tellEnd(run, stopped),
    });
    this.kept.busy = (run) => this.training.running && run === this.training.active.run;
    this.makeControls();
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.write(state));
    this.root = this.layOut(model.get("title"));
  }

  get settings() {
    return this.model.get("settings");
  }
  get view() {
    return this.model.get("view") ?? VIEWS[0];
  }
  // The settings as the ledger compares them: with the hash of the text to learn.
  get compared() {
    const { settings } = this;
    return settings.task === "text" ? { ...settings, text: hash(this.model.get("text")) } : settings;
  }
  // The size of a model with these settings, and the cost of a step.
  measure(settings) {
    const text = this.model.get("text"), key = JSON.stringify([settings, text]);
    if (!this.measured.has(key)) {
      if (this.measured.size > 50) this.measured.clear(); // each letter typed makes a new key
      this.measured.set(key, sizes(settings, makeTask(settings.task, { text, table: this.model.get("table") })));
    }
    return this.measured.get(key);
  }

  // ---- elements
  makeControls() {
    const { training } = this;
    this.controls = makeControls((given) => this.choose(given));
    this.bets = makeBets();
    const press = () => (training.running ? training.pause(!training.active.paused) : this.play(1));
    this.go = button("Run", press, "attn-go");
    this.step = button("One step", () => this.play(1, true));
    this.five = button(`${SEEDS} seeds`, () => this.play(SEEDS));
    this.halt = button("Stop", () => training.finish(true));
    this.item = h("input", { type: "text", maxLength: 120, spellcheck: false, autocomplete: "off", oninput: () => {
      this.items[this.settings.task] = this.item.value;
      this.look(true);
    } });
    this.text = h("textarea", {
      rows: 4, spellcheck: false, value: this.model.get("text"), "aria-label": "The text to learn",
      oninput: () => this.takeText(),
    });
  }

  makeParts() {
    this.lead = h("p", { className: "attn-lead" });
    this.next = h("p", { className: "attn-next" });
    this.fault = h("p", { className: "attn-fault", role: "status" });
    this.progress = h("p", { className: "attn-note attn-progress" });
    this.verdict = h("p", { className: "attn-judged" });
    this.curves = makeCurves((view) => put(this.model, { view }));
    this.answer = h("div", { className: "attn-said" });
    [this.note, this.warned] = [note(), h("p", { className: "attn-warned" })];
    this.maps = makeMaps((n) => { this.chosen = n; this.drawMaps(); });
    this.heads = fold("Where it looks, head by head", this.maps.node);
    this.heads.addEventListener("toggle", () => this.drawMaps());
    this.ledger = makeLedger((given) => this.change(given), (run) => this.kept.remove([run]));
    this.listed = fold("Your runs", this.ledger.node, note("They stay in this browser until you delete them, and leave "
      + "it in your file or link alone. A seed's score is what is right on average over the steps, so that learning "
      + "sooner counts. Two runs are compared over the steps that both made. One is better if its seeds all lie above "
      + "all those of the other; otherwise one cannot tell."), this.kept.bar);
    this.heard = h("p", { className: "attn-heard", role: "status", "aria-live": "polite" });
  }

  layOut(title) {
    return h("div", { className: "attn attn-laboratory", role: "group", "aria-label": title || "Laboratory" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []), this.lead,
      h("div", { className: "attn-row" }, this.controls.task, this.go, this.step, this.five, this.halt),
      this.text, this.fault, this.next, this.warned, this.bets.node, this.progress, this.verdict, ...this.curves.nodes,
      h("label", { className: "attn-field attn-item" }, h("span", {}, "ask it"), this.item), this.answer,
      fold("Change the model", this.controls.model, this.note), fold("Change the training", this.controls.training),
      this.heads, this.listed, this.heard, this.state.bar);
  }

  // ---- what the reader does
  change(given) { // a run in progress continues: settings apply to the next one
    const now = this.settings;
    if (given.task && given.task !== now.task) this.seen = null;
    put(this.model, { settings: settled(given, now) });
  }
  // If the reader chooses another task, what a link has set is taken back.
  choose(given) {
    const back = given.task ? Object.fromEntries(this.linked.map((name) => [name, this.start[name]])) : {};
    this.linked = given.task ? [] : this.linked.filter((name) => !(name in given));
    this.change({ ...back, ...given });
  }
  read() {
    const settings = Object.entries(this.settings).map(([name, value]) => [name, [value]]);
    return { ...Object.fromEntries(settings), view: [this.view], runs: [""] };
  }
  write(state) {
    const given = Object.fromEntries(choices.map(({ name }) => [name, state[name]?.[0]])), { start } = this;
    this.change(given);
    this.linked = Object.keys(given).filter((name) => name !== "task" && this.settings[name] !== start[name]);
    if (VIEWS.includes(state.view?.[0])) put(this.model, { view: state.view[0] });
    if (state.runs?.[0]) this.kept.follow(state.runs[0]);
  }
  takeText() {
    const text = this.text.value.toWellFormed?.() ?? this.text.value;
    if (!faultOf(text)) put(this.model, { text });
    this.ask();
  }

  // Continues the run in progress, or begins one with `count` seeds; `single` makes one step of it and waits.
  async play(count, single = false) {
    const { model, training } = this;
    if (!training.running) {
      if (this.refused) return this.text.focus();
      const given = { text: model.get("text"), table: model.get("table") }, settings = this.compared;
      await training.begin({ ...this.kept.next(), count, settings, given, takeBet: () => this.bets.taken() });
      if (!training.running) return;
    }
    if (!single) return training.pause(false);
    await training.step();
    this.keep();
    this.look(true);
    this.ask();
  }
  // Stores the run in progress, or the last one, as far as it has come.
  keep() {
    const { active } = this.training;
    if (active && !active.dropped && this.runs.includes(active.run)) this.kept.put(active.run, true);
  }
  tellEnd(ended, stopped) {
    const { run } = ended;
    if (ended.dropped) this.bets.put(run.bet);
    else {
      this.kept.put(run, true);
      this.heard.textContent = endWritten(ended, stopped);
      if (run.bet) this.listed.open = true;
    }
    this.look(true);
    this.ask();
  }

  // Fetches the model's answer and weights, at most once in LOOKS ms unless `must`.
  async look(must = false) {
    const { active } = this.training;
    if (!active?.run.sizes || (!must && performance.now() - this.looked < LOOKS)) return;
    this.looked = performance.now();
    const seen = await this.training.look(this.item.value);
    if (!seen || active.run.settings.task !== this.settings.task) return;
    this.seen = seen;
    drawAnswer(this.answer, seen);
    this.drawMaps();
  }

  // ---- drawing
  get refused() {
    return this.settings.task === "text" ? faultOf(this.text.value) : "";
  }
  draw() {
    const { runs, settings, training: { active, running } } = this, looks = looksOf(runs, settings);
    this.drawControls(settings, active, running);
    this.lead.textContent = runs.some((run) => !run.stored && run !== active?.run) || active?.over
      ? "Now change one thing, bet on what it does, and run again."
      : "Press Run: a small Transformer learns here, in your page, from examples alone.";
    this.bets.draw(running ? null : rival(runs, this.compared));
    const set = since(this.compared, runs);
    this.next.textContent = set ? `Set for the next run: ${set}.` : "";
    this.progress.textContent = progressWritten(active, runs, settings.task);
    const other = active?.over && runs.find(({ number }) => number === active.run.beside);
    this.verdict.textContent = other && active.verdict ? judged(active.run, other, active.verdict) : "";
    this.curves.draw(runs, settings, looks, running ? active.run : null, this.view);
    this.ledger.draw(runs, looks.look, running ? active.run : null);
    this.kept.draw();
    const { size, body, length, operations } = this.measure(settings);
    this.note.textContent = `${grouped(size)} parameters, ${grouped(body)} of them in the blocks. Rows of ${length} `
      + `tokens; a step costs ${operationsWritten(operations)} operations.`;
    this.warned.textContent = warning(settings);
    drawAnswer(this.answer, this.seen);
  }
  drawControls(settings, active, running) {
    const { text, item } = this, focused = document.activeElement;
    this.controls.draw(settings);
    this.go.textContent = !running ? "Run" : active.paused ? "Continue" : "Pause";
    disable(this.step, running && (!active.paused || active.students.length > 1));
    disable(this.five, running);
    this.halt.hidden = !running;
    text.hidden = settings.task !== "text";
    this.listed.hidden = !this.runs.length && !this.kept.deleted.length;
    if (text !== focused && !faultOf(text.value)) text.value = this.model.get("text");
    if (item !== focused) item.value = this.items[settings.task];
    this.fault.textContent = this.refused;
  }
  drawMaps() {
    if (this.heads.open && this.seen?.weights) this.maps.draw(this.seen, this.chosen);
  }
}

function render({ model, el }) {
  const laboratory = new Laboratory(model, el), { root, state, ask, training } = laboratory;
  const wake = () => training.wake(), drawMaps = () => laboratory.drawMaps(), keep = () => laboratory.keep();
  document.addEventListener("visibilitychange", wake);
  addEventListener("pagehide", keep);
  const stop = live({
    model, el, root, state, ask, changes: { settings: ask, text: ask, view: ask }, themed: () => { ask(); drawMaps(); },
    box: laboratory.maps.node, sized: drawMaps, render,
  });
  return () => {
    document.removeEventListener("visibilitychange", wake);
    removeEventListener("pagehide", keep);
    keep();
    training.close();
    stop();
  };
}

export default { render };
