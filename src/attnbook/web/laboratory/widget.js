// Laboratory: the reader trains a small Transformer in the page, takes parts away, bets, and compares runs.
import ENGINE from "../engine/laboratory.js" with { type: "text" };
import { start } from "../engine/client.js";
import {
  csv, end, lastStep, percent, progressOf, rightOf, rival, since, told, verdict,
} from "./ledger.js";
import { choices, settled, TASKS } from "./settings.js";
import { download, makeBets, makeControls, makeLedger } from "./table.js";
import { drawAnswer, makeChart, makeMaps } from "./view.js";
import { format, grouped } from "../shared/math.js";
import { button, disable, h, keepFocus, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const SLICE = 80, LOOKS = 300; // ms of training between two answers of a worker, and between two looks into the model
const SEEDS = 5, SHOWN = 4; // of a band; earlier runs in the chart
const LETTERS = 20000, LEAST = 200; // of a text
const LEAK = "Without the mask a place sees the token that it should predict: training finds it there; "
  + "writing, where nothing stands there yet, does not.";
const ITEMS = {
  sort: "h c a d b e", reverse: "h c a d b e", copy: "h c a d b e", add: "48+75", add_reversed: "48+75",
  words: "three hundred and forty two", text: "that nation",
};

function render({ model, el }) {
  const title = model.get("title"), items = { ...ITEMS };
  const runs = model.get("runs").map((run, n) => ({ ...run, number: n + 1, stored: true, bet: null }));
  let active = null, seen = null, looked = 0, chosen = 0; // active: the run under way; seen: the last look into a model
  const now = () => model.get("settings");

  // ---- elements
  const controls = makeControls(change), bets = makeBets(), ledger = makeLedger(change);
  const go = button("Run", () => (active && !active.over ? pause(!active.paused) : play(1)));
  const step = button("One step", () => play(1, true)), five = button(`${SEEDS} seeds`, () => play(SEEDS));
  const halt = button("Stop", () => finish(true)), progress = h("p", { className: "attn-note attn-progress" });
  go.classList.add("attn-go");
  const loss = makeChart("loss on held-out items, nats a token", (test) => test.loss);
  const right = makeChart("held-out items that are right", rightOf, (x) => x);
  const lead = h("p", { className: "attn-lead" }), next = h("p", { className: "attn-next" });
  const key = h("p", { className: "attn-note attn-keys" });
  const item = h("input", { type: "text", maxLength: 120, spellcheck: false, autocomplete: "off", oninput: () => {
    items[now().task] = item.value;
    look(true);
  } });
  const answer = h("div", { className: "attn-said" }), note = h("p", { className: "attn-note" });
  const text = h("textarea", {
    rows: 4, maxLength: LETTERS, spellcheck: false, "aria-label": "The text to learn", onchange: take,
  });
  const maps = makeMaps((n) => { chosen = n; drawMaps(); });
  const fold = (summary, ...inside) => h("details", {}, h("summary", {}, summary), ...inside);
  const parts = fold("Change the model", controls.node, note), heads = fold("Where it looks, head by head", maps.node);
  const kept = fold("Your runs", ledger.node, h("p", { className: "attn-note" },
    "Right on average: over the whole run, so that learning sooner counts. It settles a bet; within 3 % is the same."),
  button("Download as CSV", () => download("laboratory.csv", csv(runs))));
  heads.addEventListener("toggle", drawMaps);
  const heard = h("p", { className: "attn-heard", role: "status", "aria-live": "polite" });
  const state = stateControls(el, model.get("name"), read, write);
  const root = h("div", { className: "attn attn-laboratory", role: "group", "aria-label": title || "Laboratory" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    lead, h("div", { className: "attn-row" }, controls.task, go, step, five, halt), text, next, bets.node, progress,
    h("div", { className: "attn-charts" }, loss.node, right.node), key,
    h("label", { className: "attn-field attn-item" }, h("span", {}, "ask it"), item), answer,
    parts, heads, kept, heard, state.bar);

  // ---- what the reader does
  function change(given) {
    finish(true);
    if (given.task && given.task !== now().task) seen = null;
    put(model, { settings: settled(given, now()) });
  }
  function read() {
    return Object.fromEntries(Object.entries(now()).map(([name, value]) => [name, [value]]));
  }
  function write(state) {
    change(Object.fromEntries(choices.map(({ name }) => [name, state[name]?.[0]])));
  }
  function take() {
    if (text.value.length < LEAST) {
      heard.textContent = progress.textContent = `A text to learn has ${LEAST} characters at least: this one has not.`;
      return void (text.value = model.get("text"));
    }
    finish(true);
    put(model, { text: text.value.toWellFormed?.() ?? text.value });
  }
  function pause(paused) {
    active.paused = paused;
    if (!paused) resume();
    ask();
  }

  // ---- training
  // A run with so many seeds, each in a worker of its own; `single` makes one step of it and waits.
  async function play(count, single = false) {
    if (!active || active.over) {
      await begin(count);
      if (!active || active.over) return;
    }
    if (!single) return pause(false);
    active.paused = true;
    await Promise.all(active.students.map((student) => teach(student, active, { steps: 1 })));
    look(true);
    ask();
  }
  async function begin(count) {
    close();
    const settings = now(), other = rival(runs, settings);
    const students = Array.from({ length: count }, (_, n) => (
      { client: start(ENGINE), busy: false, record: { seed: settings.seed + n, losses: [], tests: [] } }));
    const seeds = students.map(({ record }) => record), bet = other ? bets.taken() : null;
    const run = { number: runs.length + 1, settings, seeds, bet };
    const mine = (active = { run, other, students, paused: true, over: false, ms: 0, size: 0, length: 0, error: "" });
    runs.push(run);
    try {
      const given = { ...settings, text: model.get("text"), table: model.get("table") };
      const made = students.map(({ client, record: { seed } }) => client.call("begin", { ...given, seed }));
      Object.assign(mine, (await Promise.all(made))[0]);
    } catch (error) {
      fail(mine, error);
    }
    ask();
  }
  function resume() {
    for (const student of active.students) follow(student, active);
  }
  async function follow(student, mine) {
    if (student.busy) return;
    student.busy = true;
    const { steps } = mine.run.settings, goes = () => mine === active && !mine.over && !mine.paused && !document.hidden;
    while (goes() && student.record.losses.length < steps) {
      await teach(student, mine, { ms: SLICE, steps: steps - student.record.losses.length });
      if (student === mine.students[0]) look();
    }
    student.busy = false;
    if (mine === active && mine.students.every(({ record }) => record.losses.length >= steps)) finish();
  }
  async function teach({ client, record }, mine, given) {
    const began = performance.now();
    try {
      const { losses, tests } = await client.call("train", given);
      record.losses.push(...losses);
      record.tests.push(...tests);
      if (record === mine.run.seeds[0]) mine.ms += performance.now() - began;
    } catch (error) {
      fail(mine, error);
    }
    ask();
  }
  // The run is over: what its bet was worth. Its first model stays, and can be asked.
  function finish(early = false) {
    if (!active || active.over) return;
    const { run, other, students } = active;
    active.over = true;
    for (const { client } of students.slice(1)) client.stop();
    if (!lastStep(run)) {
      runs.splice(runs.indexOf(run), 1);
    } else {
      if (other) run.result = verdict(run, other);
      const bet = run.bet ? ` Your bet: ${run.bet}; it is ${run.result} beside run ${other.number}.` : "";
      const how = early ? "stopped" : "is over";
      heard.textContent = `Run ${run.number} ${how}: ${percent(told(run).right)} right.${bet}`;
      if (run.bet) kept.open = true;
    }
    look(true);
    ask();
  }
  function fail(mine, error) {
    if (mine !== active || mine.over) return;
    mine.error = error.message;
    finish(true);
  }
  function close() {
    for (const { client } of active?.students ?? []) client.stop();
    active = null;
  }

  // What the model now answers, and where it looks.
  async function look(must = false) {
    const mine = active;
    if (!mine?.size || (!must && performance.now() - looked < LOOKS)) return;
    looked = performance.now();
    const found = await mine.students[0].client.newest("look", { text: item.value }).catch(() => undefined);
    if (!found || mine !== active || mine.run.settings.task !== now().task) return;
    seen = found;
    drawAnswer(answer, seen);
    drawMaps();
  }

  // ---- drawing
  const lookOf = (run) => run === latest() ? "attn-now" : run === compared() ? "attn-last" : "attn-faint";
  const latest = () => runs.findLast((run) => run.settings.task === now().task && !run.stored);
  const compared = () => rival(runs.filter((run) => run !== latest()), latest()?.settings ?? now());
  function draw() {
    const settings = now(), running = Boolean(active && !active.over);
    lead.textContent = runs.some((run) => !run.stored && run !== active?.run) || active?.over
      ? "Now change one thing, bet on what it does, and run again."
      : "Press Run: a small Transformer learns here, in your page, from examples alone.";
    controls.draw(settings);
    go.textContent = !running ? "Run" : active.paused ? "Continue" : "Pause";
    disable(step, running && (!active.paused || active.students.length > 1));
    disable(five, running);
    [halt.hidden, text.hidden, kept.hidden] = [!running, settings.task !== "text", !runs.length];
    if (text !== document.activeElement && text.value !== model.get("text")) text.value = model.get("text");
    if (item !== document.activeElement) item.value = items[settings.task];
    bets.draw(running ? null : rival(runs, settings));
    const set = running ? "" : since(settings, runs);
    next.textContent = set ? `Set for the next run: ${set}.` : "";
    progress.textContent = line();
    drawCurves(settings, running);
    ledger.draw(runs, lookOf);
    const made = active?.run.settings === settings && active.size;
    note.textContent = (made ? `${grouped(made)} parameters, rows of ${active.length} tokens. ` : "")
      + (settings.causal ? "" : LEAK);
    drawAnswer(answer, seen);
  }
  function drawCurves({ task, steps }, running) {
    const shown = runs.filter((run) => run.settings.task === task).slice(-1 - SHOWN);
    const longest = Math.max(steps, ...shown.map(lastStep)), noisy = latest()?.seeds[0].losses ?? [];
    const curves = shown.map((run) => ({ seeds: run.seeds, look: lookOf(run) }));
    const said = shown.map((run) => `Run ${run.number}: ${end(run)}`).join(". ");
    loss.draw(curves.map((each, n) => (shown[n] === latest() ? { ...each, noise: noisy } : each)), longest, said);
    right.draw(curves, longest, said);
    const named = (run) => h("span", {}, h("i", { className: `attn-swatch ${lookOf(run)}` }),
      `run ${run.number}${run.stored ? ", made before" : running && run === active.run ? ", now" : ""}`);
    const many = shown.some(({ seeds }) => seeds.length > 1);
    key.replaceChildren(...shown.map(named), h("span", {}, noisy.length ? "Thin: the loss of each step." : ""),
      h("span", {}, many ? "A band: from the least to the largest of its seeds." : ""));
  }
  function line() {
    if (!active) return `Task: ${TASKS[now().task]}. Nothing has been trained yet.`;
    const { run, ms, over, paused, error } = active;
    if (error) return `The training stopped: ${error}.`;
    return `${progressOf(run, runs)}, ${format(ms / 1000, 1)} s${over ? ". Over." : paused ? ". Paused." : "."}`;
  }
  function drawMaps() {
    if (heads.open && seen?.weights) maps.draw(seen, chosen);
  }

  // ---- life
  const ask = onceAFrame(() => keepFocus(root, draw, go));
  const wake = () => active && !active.over && !active.paused && resume();
  document.addEventListener("visibilitychange", wake);
  const themed = () => (ask(), drawMaps());
  const changed = { settings: ask, text: ask };
  const stop = live({ model, el, root, state, ask, changes: changed, themed, box: maps.node, sized: drawMaps, render });
  return () => {
    document.removeEventListener("visibilitychange", wake);
    close();
    stop();
  };
}

export default { render };
