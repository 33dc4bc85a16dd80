// Laboratory: the reader trains a small Transformer in the page, takes parts away, bets, and compares runs.
import { looksOf, makeCurves } from "./curves.js";
import { csv, lastStep, percent, progressOf, rival, since, told } from "./ledger.js";
import { choices, settled, TASKS } from "./settings.js";
import { download, makeBets, makeControls, makeLedger } from "./table.js";
import { Training } from "./training.js";
import { drawAnswer, makeMaps } from "./view.js";
import { format, grouped } from "../shared/math.js";
import { button, disable, h, keepFocus, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const LOOKS = 300, SEEDS = 5; // ms between two looks into the model; seeds of a band
const LETTERS = 20000, LEAST = 200; // of a text
const LEAK = "Without the mask a place sees the token that it should predict: training finds it there; "
  + "writing, where nothing stands there yet, does not.";
const ITEMS = {
  sort: "h c a d b e", reverse: "h c a d b e", copy: "h c a d b e", add: "48+75", add_reversed: "48+75",
  words: "three hundred and forty two", text: "that nation",
};

const note = (...words) => h("p", { className: "attn-note" }, ...words);
const fold = (summary, ...inside) => h("details", {}, h("summary", {}, summary), ...inside);

// How a run ended, for those who hear the page.
function endWritten({ run, other }, stopped) {
  const bet = run.bet ? ` Your bet: ${run.bet}; it is ${run.result} beside run ${other.number}.` : "";
  return `Run ${run.number} ${stopped ? "stopped" : "is over"}: ${percent(told(run).right)} right.${bet}`;
}

// Where the run under way, or the last one, has got to.
function progressWritten(active, runs, task) {
  if (!active) return `Task: ${TASKS[task]}. Nothing has been trained yet.`;
  const { run, ms, over, paused, error } = active;
  if (error) return `The training stopped: ${error}.`;
  return `${progressOf(run, runs)}, ${format(ms / 1000, 1)} s${over ? ". Over." : paused ? ". Paused." : "."}`;
}

class Laboratory {
  constructor(model, el) {
    this.model = model;
    this.items = { ...ITEMS }; // what the reader asks the model, by task
    this.runs = model.get("runs").map((run, n) => ({ ...run, number: n + 1, stored: true, bet: null }));
    [this.seen, this.looked, this.chosen] = [null, 0, 0]; // the last look into a model, when that was; the opened head
    this.ask = onceAFrame(() => keepFocus(this.root, () => this.draw(), this.go));
    this.training = new Training(this.runs, {
      changed: this.ask, learnt: () => this.look(), ended: (run, stopped) => this.tellEnd(run, stopped),
    });
    this.makeControls();
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.write(state));
    this.root = this.layOut(model.get("title"));
  }

  get settings() {
    return this.model.get("settings");
  }

  // ---- elements
  makeControls() {
    const { training } = this;
    this.controls = makeControls((given) => this.change(given));
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
      rows: 4, maxLength: LETTERS, spellcheck: false, "aria-label": "The text to learn",
      onchange: () => this.takeText(),
    });
  }

  makeParts() {
    this.lead = h("p", { className: "attn-lead" });
    this.next = h("p", { className: "attn-next" });
    this.progress = h("p", { className: "attn-note attn-progress" });
    this.curves = makeCurves();
    this.answer = h("div", { className: "attn-said" });
    this.note = note();
    this.maps = makeMaps((n) => { this.chosen = n; this.drawMaps(); });
    this.heads = fold("Where it looks, head by head", this.maps.node);
    this.heads.addEventListener("toggle", () => this.drawMaps());
    this.ledger = makeLedger((given) => this.change(given));
    this.kept = fold("Your runs", this.ledger.node, note("Right on average: over the whole run, so that learning "
      + "sooner counts. It settles a bet; within 3 % is the same."),
    button("Download as CSV", () => download("laboratory.csv", csv(this.runs))));
    this.heard = h("p", { className: "attn-heard", role: "status", "aria-live": "polite" });
  }

  layOut(title) {
    return h("div", { className: "attn attn-laboratory", role: "group", "aria-label": title || "Laboratory" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []), this.lead,
      h("div", { className: "attn-row" }, this.controls.task, this.go, this.step, this.five, this.halt),
      this.text, this.next, this.bets.node, this.progress, ...this.curves.nodes,
      h("label", { className: "attn-field attn-item" }, h("span", {}, "ask it"), this.item), this.answer,
      fold("Change the model", this.controls.node, this.note), this.heads, this.kept, this.heard, this.state.bar);
  }

  // ---- what the reader does
  change(given) {
    const now = this.settings;
    this.training.finish(true);
    if (given.task && given.task !== now.task) this.seen = null;
    put(this.model, { settings: settled(given, now) });
  }
  read() {
    return Object.fromEntries(Object.entries(this.settings).map(([name, value]) => [name, [value]]));
  }
  write(state) {
    this.change(Object.fromEntries(choices.map(({ name }) => [name, state[name]?.[0]])));
  }
  takeText() {
    const { text, model } = this;
    if (text.value.length < LEAST) {
      const short = `A text to learn has ${LEAST} characters at least: this one has not.`;
      this.heard.textContent = this.progress.textContent = short;
      text.value = model.get("text");
      return;
    }
    this.training.finish(true);
    put(model, { text: text.value.toWellFormed?.() ?? text.value });
  }

  // Goes on with the run under way, or begins one with so many seeds; `single` makes one step of it and waits.
  async play(count, single = false) {
    const { model, training } = this;
    if (!training.running) {
      const given = { text: model.get("text"), table: model.get("table") };
      await training.begin(count, this.settings, given, () => this.bets.taken());
      if (!training.running) return;
    }
    if (!single) return training.pause(false);
    await training.step();
    this.look(true);
    this.ask();
  }
  tellEnd(ended, stopped) {
    if (lastStep(ended.run)) {
      this.heard.textContent = endWritten(ended, stopped);
      if (ended.run.bet) this.kept.open = true;
    }
    this.look(true);
    this.ask();
  }

  // What the model now answers, and where it looks.
  async look(must = false) {
    const { active } = this.training;
    if (!active?.size || (!must && performance.now() - this.looked < LOOKS)) return;
    this.looked = performance.now();
    const seen = await this.training.look(this.item.value);
    if (!seen || active.run.settings.task !== this.settings.task) return;
    this.seen = seen;
    drawAnswer(this.answer, seen);
    this.drawMaps();
  }

  // ---- drawing
  draw() {
    const { runs, settings, training: { active, running } } = this, looks = looksOf(runs, settings);
    this.drawControls(settings, active, running);
    this.lead.textContent = runs.some((run) => !run.stored && run !== active?.run) || active?.over
      ? "Now change one thing, bet on what it does, and run again."
      : "Press Run: a small Transformer learns here, in your page, from examples alone.";
    this.bets.draw(running ? null : rival(runs, settings));
    const set = running ? "" : since(settings, runs);
    this.next.textContent = set ? `Set for the next run: ${set}.` : "";
    this.progress.textContent = progressWritten(active, runs, settings.task);
    this.curves.draw(runs, settings, looks, running ? active.run : null);
    this.ledger.draw(runs, looks.look);
    const made = active?.run.settings === settings && active.size;
    this.note.textContent = (made ? `${grouped(made)} parameters, rows of ${active.length} tokens. ` : "")
      + (settings.causal ? "" : LEAK);
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
    this.kept.hidden = !this.runs.length;
    if (text !== focused && text.value !== this.model.get("text")) text.value = this.model.get("text");
    if (item !== focused) item.value = this.items[settings.task];
  }
  drawMaps() {
    if (this.heads.open && this.seen?.weights) this.maps.draw(this.seen, this.chosen);
  }
}

function render({ model, el }) {
  const laboratory = new Laboratory(model, el), { root, state, ask, training } = laboratory;
  const wake = () => training.wake(), drawMaps = () => laboratory.drawMaps();
  document.addEventListener("visibilitychange", wake);
  const stop = live({
    model, el, root, state, ask, changes: { settings: ask, text: ask }, themed: () => { ask(); drawMaps(); },
    box: laboratory.maps.node, sized: drawMaps, render,
  });
  return () => {
    document.removeEventListener("visibilitychange", wake);
    training.close();
    stop();
  };
}

export default { render };
