// DecodingBench: a real model's distributions, a tree of them. Filters cut, a number draws, the reader goes on.
import { branches, nearest, prospect, told, unpack } from "./tree.js";
import { makeLines } from "./view.js";
import { format, fromSlider, grouped, share, toSlider, visible, within } from "../shared/math.js";
import { LAST_STEP, kAt, stepOf } from "../playground/row.js";
import { makeDraw, makeText } from "../playground/view.js";
import { slider } from "../shared/plot.js";
import { button, disable, h, keepFocus, live, onceAFrame, put, stateControls, token } from "../shared/ui.js";

const FILTERS = ["temperature", "top_k", "top_p", "min_p"], PATIENCE = 4000, MOST = 40; // ms for a kernel; its answers

function render({ model, el }) {
  const title = model.get("title"), sizes = model.get("sizes"), prompt = model.get("prompt");
  const methods = model.get("methods"), tree = unpack(model.get("tree"), sizes), answers = new Map();
  const onPage = Boolean(el.closest("[data-attnbook-page]")), waiting = new Map(); // timers, of what a kernel was asked
  const names = Object.fromEntries(model.get("tokens").map((name, n) => [tree.ids[n], name]));
  let everyName = false, silent = onPage, view; // silent: no kernel answers; view: what is shown of the place
  const path = () => model.get("written"), place = () => answers.get(path().join()) ?? tree.get(path());
  prompt.forEach((name, n) => (names[-1 - n] = name));

  // ---- elements
  const text = makeText((at) => go(path().slice(0, Math.max(0, at - prompt.length))));
  const take = button("Take it", () => follow(view.drawn.which), "attn-go");
  const again = button("Draw again", () => { put(model, { seed: (model.get("seed") + 1) % 1e6 }); say(true); });
  const back = button("Back", () => go(path().slice(0, -1))), anew = button("Start anew", () => go([]));
  const ways = methods.map(({ name, ...how }) => button(name, () => put(model, how)));
  const filters = {
    temperature: slider("temperature", { min: 0, max: 1, step: 0.01 }, (x) => put(model,
      { temperature: fromSlider(x) })),
    top_k: slider("top-k", { min: 0, max: LAST_STEP, step: 1 }, (n) => put(model, { top_k: kAt(n) })),
    top_p: slider("top-p", { min: 0.05, max: 1, step: 0.01 }, (p) => put(model, { top_p: p })),
    min_p: slider("min-p", { min: 0, max: 0.5, step: 0.01 }, (p) => put(model, { min_p: p })),
  };
  const readout = h("p", { className: "attn-readout" }), bars = makeLines(follow);
  const fell = makeDraw(h("span", { className: "attn-row attn-act" }, take, again));
  const said = fell.node.querySelector(".attn-fell");
  const panel = h("div", { className: "attn-beyond" });
  const shown = h("div", {}, h("div", { className: "attn-row attn-methods", role: "group", "aria-label": "Method" },
    ...ways), ...Object.values(filters).map(({ node }) => node), readout, bars.node, fell.node);
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const precision = `Stored: what the model says at ${grouped(sizes.nodes)} places. The ${sizes.keep} likeliest tokens`
    + " of each are exact, the others are counted in ranges: a number that needs them says “about”.";
  const state = stateControls(el, model.get("name"), read, restore);
  const root = h("div", { className: "attn attn-playground attn-bench", role: "group", "aria-label": title
    || "Decoding bench" }, ...(title ? [h("p", { className: "attn-title" }, title)] : []),
  h("p", { className: "attn-lead" }, "What the model says comes next, and what a method leaves of that. Take the token "
    + "that the number falls on, or press any other; press a token of the text to go back to its place."),
  text.node, h("div", { className: "attn-row attn-act" }, back, anew), panel, shown,
  h("p", { className: "attn-note" }, precision), heard, state.bar);

  // ---- what the reader does
  const ended = () => path().at(-1) === sizes.end, full = () => path().length >= sizes.room;
  function go(written) {
    if (String(written) !== String(path())) put(model, { written });
    say();
  }
  function follow(id) {
    if (id !== undefined) go([...path(), id]);
  }
  function say(draw = false) {
    ask.now();
    const text = [...prompt, ...path().map((id) => names[id])].slice(-8).join("");
    heard.textContent = draw ? said.textContent : `… ${text}. ${panel.textContent || readout.textContent}`;
  }
  function read() {
    const numbers = Object.fromEntries([...FILTERS, "seed"].map((name) => [name, [model.get(name)]]));
    return { ...numbers, written: path().length ? path() : [-1] };
  }
  function restore({ temperature: [t], top_k: [k], top_p: [p], min_p: [m], seed: [s], written }) {
    const ids = written.filter((id) => Number.isInteger(id) && id >= 0 && id < sizes.vocab);
    put(model, {
      temperature: Math.max(0, t), top_k: Math.max(0, Math.trunc(k)), top_p: within(p, 0.01, 1), min_p: within(m, 0, 1),
      seed: within(Math.trunc(s), 0, 1e6), written: ids.slice(0, sizes.room),
    });
  }

  // ---- a kernel, where there is one
  function wonder() {
    const key = path().join();
    if (waiting.has(key)) return;
    const missed = () => { silent = true; say(); };
    waiting.set(key, onPage ? 0 : setTimeout(missed, PATIENCE));
    model.send({ path: path(), names: !everyName });
  }
  function hear({ path: where, names: all } = {}, [bytes] = []) {
    const key = where?.join();
    if (!waiting.has(key) || answers.has(key)) return;
    clearTimeout(waiting.get(key));
    silent = false;
    if (all) Object.assign(names, all), (everyName = true);
    const logp = Float32Array.from({ length: sizes.vocab }, (_, n) => bytes.getFloat32(4 * n, true));
    answers.set(key, told(where, logp));
    for (const old of [...answers.keys()].slice(0, -MOST)) answers.delete(old), waiting.delete(old);
    say();
  }

  // ---- drawing
  const nameOf = (id) => names[id] ?? `token ${id}`;
  function draw() {
    const here = path(), known = !ended() && !full() && place();
    const ids = [...prompt.map((_, n) => -1 - n), ...here];
    for (const id of here) names[id] ??= `⟨${id}⟩`;
    text.draw({ ids, pieces: ids.map((id) => (nameOf(id).startsWith("\\x") ? "" : nameOf(id))), prompt: prompt.length },
      names, ids.length);
    for (const node of [back, anew]) disable(node, !here.length);
    shown.hidden = !known;
    if (known) drawPlace(known);
    else view = null;
    drawPanel(known);
  }
  function drawPlace(known) {
    const [temperature, topK, topP, minP] = FILTERS.map((name) => model.get(name));
    view = prospect(known, sizes, { temperature, topK, topP, minP }, model.get("seed"), path().length);
    const { drawn, best, mass, bits, size, near } = view, about = (is) => (is ? "about " : "");
    for (const each of [...best, drawn]) {
      each.name = each.which === undefined ? "one of the others" : nameOf(each.which);
    }
    const stored = known.exact ? null : new Set(branches(tree, path()));
    bars.draw(view, stored);
    fell.draw(view);
    disable(take, drawn.which === undefined);
    if (drawn.which === undefined) {
      wonder();
      said.textContent = `The number ${format(view.number)} falls among the ${grouped(size - sizes.keep)} others: `
        + (silent ? "which one is not stored. Draw again, or press a token." : "asking the model which …");
    }
    ways.forEach((way, n) => {
      const on = FILTERS.every((name) => methods[n][name] === model.get(name));
      way.setAttribute("aria-pressed", on);
    });
    filters.temperature.set(temperature ? toSlider(temperature) : 0, temperature ? format(temperature, 2) : "0");
    filters.top_k.set(stepOf(topK), topK ? String(topK) : "all");
    filters.top_p.set(topP, topP < 1 ? format(topP, 2) : "all");
    filters.min_p.set(minP, format(minP, 2));
    const strong = (words) => h("b", {}, words);
    readout.replaceChildren("Left: ", strong(about(near.count) + grouped(view.count)), ` of ${grouped(size)} tokens, `,
      "which have ", strong(about(near.mass) + share(mass)), " of the probability. Entropy: ",
      strong(`${format(bits[0], 2)} bits`), " as the model says, ",
      strong(`${format(bits[1], 2)} bits`), " as it is drawn.");
  }
  function drawPanel(known) {
    panel.hidden = Boolean(known);
    if (known) return panel.replaceChildren();
    if (ended()) return panel.replaceChildren("The text ends here: the model chose its end token.");
    if (full()) return panel.replaceChildren("The model reads no more tokens than these.");
    wonder();
    if (!silent) return panel.replaceChildren("Asking the model …");
    const { path: from, next } = nearest(tree, path()), last = from.length ? nameOf(from.at(-1)) : prompt.at(-1);
    panel.replaceChildren(h("p", {}, "What the model says here is not stored, and no kernel is there to ask it. "
      + "Go back, or take a branch that is stored after ", token(visible(last)), ":"),
    h("div", { className: "attn-row attn-branches" }, ...next.map((id) => button(visible(nameOf(id)),
      () => go([...from, id]))), ...(next.length ? [] : [button("Back to it", () => go(from))])));
  }
  const ask = onceAFrame(() => keepFocus(root, draw, back));

  // ---- life
  model.on("msg:custom", hear);
  const changes = Object.fromEntries([...FILTERS, "seed", "written"].map((name) => [name, ask]));
  const stop = live({ model, el, root, state, ask, changes, render });
  return () => {
    model.off("msg:custom", hear);
    for (const timer of waiting.values()) clearTimeout(timer);
    stop();
  };
}

export default { render };
