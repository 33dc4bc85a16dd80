// Playground: a GPT in the page. It says what could come next, filters cut that, and a number picks from the rest.
import { format, fromSlider, grouped, share, toSlider, visible, within } from "../shared/math.js";
import { summon } from "../shared/model.js";
import { LAST_STEP, branch, kAt, merged, outlook, stepOf, surprises } from "./row.js";
import { makeInside, makePlaces } from "./inside.js";
import { makeBars, makeDraw, makeText } from "./view.js";
import { slider } from "../shared/plot.js";
import { button, disable, h, keepFocus, live, onceAFrame, put, select, stateControls, token } from "../shared/ui.js";

const LETTERS = 500, BRANCHES = 4; // of a prompt; that are kept
const PACES = [["4 tokens a second", 4], ["15 a second", 15], ["as fast as it can", Infinity]];
const FOLDS = { filters: "Filters", places: "Every place", inside: "Inside" };
const NUMBERS = ["temperature", "top_k", "top_p", "min_p", "seed", "place", "head"];

function render({ model, el }) {
  const title = model.get("title"), stored = model.get("answer");
  const get = (...names) => names.map((name) => model.get(name));
  let row = { ids: stored.ids, pieces: stored.pieces, prompt: stored.prompt, cut: stored.cut, places: [] };
  let engine, config, names, end, asked, pending, writing = false, left = []; // left: branches that were left
  const storedNames = Object.fromEntries(stored.ids.map((id, n) => [id, stored.names[n]]));

  // ---- elements
  const text = h("textarea", {
    rows: 2, maxLength: LETTERS, spellcheck: false, "aria-label": "Your beginning", enterKeyHint: "go", oninput: edit,
    onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); write(); } },
  });
  const go = button("Write", () => (writing ? halt() : write()), "attn-go");
  const one = button("Step", () => step()), back = button("Back", undo);
  const pace = select("pace", PACES.map(([name]) => name), () => {});
  pace.list.selectedIndex = 1;
  const tokens = makeText((at) => put(model, { place: at >= row.ids.length ? -1 : at }));
  const status = h("p", { className: "attn-note", role: "status", "aria-live": "polite" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" }), note = h("p", { className: "attn-note" });
  const could = h("p", { className: "attn-legend" }), bars = makeBars(take);
  const other = button("Another number", () => put(model, { seed: (model.get("seed") + 1) % 1e6 }));
  const fell = makeDraw(other);
  const seed = h("input", { type: "number", min: 0, max: 1e6, step: 1, inputMode: "numeric",
    oninput: () => { if (seed.value !== "" && seed.checkValidity()) put(model, { seed: Number(seed.value) }); } });
  const tried = h("div", { className: "attn-row attn-branches" });
  const filters = {
    temperature: slider("temperature", { min: 0, max: 1, step: 0.01 },
      (x) => put(model, { temperature: fromSlider(x) })),
    top_k: slider("top-k", { min: 0, max: LAST_STEP, step: 1 }, (n) => put(model, { top_k: kAt(n) })),
    top_p: slider("top-p", { min: 0.05, max: 1, step: 0.01 }, (p) => put(model, { top_p: p })),
    min_p: slider("min-p", { min: 0, max: 0.5, step: 0.01 }, (p) => put(model, { min_p: p })),
  };
  const after = Object.fromEntries(Object.keys(filters).map((name) => [name, h("p", { className: "attn-after" })]));
  const every = makePlaces(), folds = {}, inner = h("div");
  let inside;
  const seeded = h("label", { className: "attn-field" }, h("span", {}, "seed of the numbers"), seed);
  const sliders = Object.keys(filters).flatMap((name) => [filters[name].node, after[name]]);
  const bodies = { filters: [...sliders, seeded], places: [every.node], inside: [inner] };
  for (const [name, label] of Object.entries(FOLDS)) {
    const ontoggle = () => {
      const open = Object.keys(FOLDS).filter((each) => folds[each].open);
      if (String(open) !== String(model.get("unfolded"))) put(model, { unfolded: open });
    };
    const onclick = (event) => { // `ontoggle` comes later: a drawing between would fold it again
      const open = model.get("unfolded");
      event.preventDefault();
      put(model, { unfolded: Object.keys(FOLDS).filter((each) => open.includes(each) !== (each === name)) });
    };
    folds[name] = h("details", { className: "attn-fold", ontoggle }, h("summary", { onclick }, label), ...bodies[name]);
  }
  const state = stateControls(el, model.get("name"), read, restore);
  const root = h("div", { className: "attn attn-playground", role: "group", "aria-label": title || "Playground" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("p", { className: "attn-lead" }, "Begin a text. The model says what could come next; a random number picks one. "
      + "Press any token to see what else could have stood there, and any bar to take that instead."),
    text, h("div", { className: "attn-row attn-act" }, go, one, back, pace.node), tokens.node, tried, note, status,
    could, bars.node, fell.node, ...Object.values(folds), heard, state.bar);

  // ---- what the reader does
  function edit() {
    halt();
    left = [];
    put(model, { text: text.value.toWellFormed?.() ?? text.value, written: [], place: -1 });
  }
  const full = () => row.ids.length >= (config?.max_len ?? 0);
  const now = () => outlook(row, names, row.ids.length, settings(), model.get("seed"));
  async function step(save = true) {
    if (!names || full()) return;
    if (model.get("place") >= 0) model.set("place", -1);
    if (!(await question())) return halt();
    const { drawn } = now();
    model.set("written", [...model.get("written"), drawn.which]);
    if (save) model.save_changes();
    await question();
    if (save) heard.textContent = `${visible(drawn.name)}, ${share(drawn.p)}`;
    if (drawn.which === end) halt();
  }
  async function write() {
    if (writing || !names) return;
    writing = true;
    draw();
    try {
      while (writing && !full()) {
        const began = performance.now();
        await step(false);
        const rest = 1000 / PACES[pace.list.selectedIndex][1] - (performance.now() - began);
        if (rest > 0) await new Promise((done) => setTimeout(done, rest));
      }
    } finally {
      halt();
    }
  }
  function halt() {
    if (!writing) return;
    writing = false;
    model.save_changes();
    heard.textContent = row.pieces.slice(row.prompt).join("");
    ask();
  }
  function undo() {
    halt();
    put(model, { written: model.get("written").slice(0, -1), place: -1 });
  }
  // Takes a token at the place on view. What stood there and behind it stays as a branch.
  function take(id) {
    halt();
    const at = seen();
    if (at < row.ids.length) keep();
    put(model, { ...branch(row, model.get("text"), at, id), place: -1 });
  }
  function keep() {
    const [words, written] = get("text", "written"), shown = row.pieces.join("").slice(-28);
    const others = left.filter((each) => String(each.written) !== String(written));
    left = [{ words, written, shown }, ...others].slice(0, BRANCHES);
  }
  function goBack(branched) {
    keep();
    left = left.filter((each) => each !== branched);
    put(model, { text: branched.words, written: branched.written, place: -1 });
  }
  function read() {
    const some = (list) => (list.length ? list : [-1]);
    const numbers = Object.fromEntries(NUMBERS.map((name) => [name, [Number(model.get(name))]]));
    const open = Object.keys(FOLDS).map((name, n) => (model.get("unfolded").includes(name) ? 2 ** n : 0));
    const unfolded = [open.reduce((sum, bit) => sum + bit)];
    return { text: [model.get("text")], written: some(model.get("written")), ...numbers, unfolded };
  }
  function restore(given) {
    const [t, k, p, m, seed, place, head] = NUMBERS.map((name) => given[name][0]);
    const whole = (x, low, high = Infinity) => within(Math.trunc(x), low, high);
    halt();
    left = [];
    put(model, {
      text: given.text[0].slice(0, LETTERS).replace(/[\ud800-\udbff]$/, ""),
      written: given.written.filter((id) => Number.isInteger(id) && id >= 0 && id < stored.size),
      temperature: Math.max(0, t), top_k: whole(k, 0), top_p: within(p, 0.01, 1), min_p: within(m, 0, 1),
      seed: whole(seed, 0, 1e6), place: whole(place, -1), head: whole(head, -1, stored.layers * stored.heads - 1),
      unfolded: Object.keys(FOLDS).filter((_, n) => (given.unfolded[0] >> n) & 1),
    });
  }

  // ---- the model
  function ready(worker, said) {
    engine = worker;
    ({ config, end } = said);
    names = said.tokens;
    inside = makeInside(config.n_layers, config.n_heads, (n) => put(model, { head: n === model.get("head") ? -1 : n }));
    inner.append(inside.node);
    return question();
  }
  function question() {
    const [words, written] = get("text", "written"), key = JSON.stringify([words, written]);
    if (!engine || key === asked) return pending;
    asked = key;
    const known = row.places.length ? row.ids : [];
    pending = engine.newest("answer", { text: words, written, known }).then((found) => {
      if (found) { row = merged(row, found); ask(); }
      return true;
    }, () => { asked = ""; }); // the status says why
    return pending;
  }

  // ---- drawing
  const settings = () => {
    const [temperature, topK, topP, minP] = get("temperature", "top_k", "top_p", "min_p");
    return { temperature, topK, topP, minP };
  };
  const seen = () => {
    const place = model.get("place");
    return place < 0 ? row.ids.length : within(place, 1, row.ids.length);
  };
  function draw() {
    const live = row.places.length > 0, at = live ? seen() : stored.at, here = row.ids[at];
    const view = live ? outlook(row, names, at, settings(), model.get("seed")) : stored;
    if (text.value !== model.get("text")) text.value = model.get("text");
    go.textContent = writing ? "Stop" : "Write";
    text.disabled = other.disabled = seed.disabled = !live;
    if (!seed.matches(":focus")) seed.value = model.get("seed");
    disable(go, !live || (full() && !writing));
    disable(one, !live || writing || full());
    disable(back, !live || !model.get("written").length);
    for (const { node } of Object.values(filters)) node.querySelector("input").disabled = !live;
    const open = model.get("unfolded"), bits = live && open.includes("places") ? surprises(row) : null;
    for (const name of Object.keys(FOLDS)) folds[name].open = open.includes(name);
    tokens.draw(row, names ?? storedNames, at, bits?.map((each) => each.bits));
    if (writing) tokens.node.scrollTop = tokens.node.scrollHeight;
    note.textContent = row.cut ? `Not read: the last ${row.cut} tokens, as ${config.max_len} are the most that fit.`
      : live && full() ? `${config.max_len} tokens are the most that the model reads: take some back to go on.` : "";
    tried.replaceChildren(...(left.length ? [h("span", { className: "attn-note" }, "Left: "),
      ...left.map((each) => button(`… ${each.shown}`, () => goBack(each)))] : []));
    const before = token(visible((names ?? storedNames)[row.ids[at - 1]]));
    could.replaceChildren(...(here === undefined ? ["What could come next, after ", before]
      : ["What could have stood after ", before, " instead of ", token(visible((names ?? storedNames)[here]))]));
    bars.draw(view, here, live);
    fell.draw(view);
    drawFilters(view);
    if (bits) every.draw(bits, names);
    if (live && open.includes("inside")) inside.draw(row, names, at - 1, model.get("head"));
  }
  function drawFilters({ stages, size }) {
    const [t, k, p, m] = get("temperature", "top_k", "top_p", "min_p");
    filters.temperature.set(toSlider(t), format(t, 2));
    filters.top_k.set(stepOf(k), k ? String(k) : "all");
    filters.top_p.set(p, p < 1 ? format(p, 2) : "all");
    filters.min_p.set(m, m > 0 ? format(m, 2) : "0");
    after.temperature.textContent = t < 1 ? "Below 1: the likely become likelier."
      : t > 1 ? "Above 1: the unlikely get a chance." : "At 1 as the model says.";
    for (const [name, stage, on] of [["top_k", "topK", k > 0], ["top_p", "topP", p < 1], ["min_p", "minP", m > 0]]) {
      const { count: n, mass } = stages[stage];
      const told = `leaves ${grouped(n)} of ${grouped(size)}, ${format(mass)} of the probability`;
      after[name].textContent = on ? told : "off";
    }
  }

  // ---- life
  const ask = onceAFrame(() => keepFocus(root, draw, go)), wonder = onceAFrame(question);
  const dismiss = summon({ model, root, status, ready });
  const shown = Object.fromEntries([...NUMBERS, "unfolded"].map((name) => [name, ask]));
  const changes = { text: wonder, written: wonder, ...shown };
  const stop = live({ model, el, root, state, ask, changes, themed: ask });
  return () => {
    writing = false;
    dismiss();
    wonder.cancel();
    stop();
  };
}

export default { render };
