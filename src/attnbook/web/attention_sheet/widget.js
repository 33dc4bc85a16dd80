// AttentionSheet: a whole self-attention as cells; touch one to see what made it, change one to see what follows.
import { format } from "../shared/math.js";
import { INPUTS, cellOf, compute, kept, madeOf, written } from "../shared/sheet.js";
import { h, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { FAR, LOOKS, called, drawLabels, drawNumbers, labelNode, makeBlock, markCells } from "./cells.js";
import {
  STEP, cellChosen, cellKey, change, choose, edit, listenToDrags, listenToField, swap, valueChosen,
} from "./reader.js";

const SWITCHES = ["mask", "root"];
const SHINE = 1200; // milliseconds for which a changed number shines

const given = (model) => Object.fromEntries([...INPUTS, ...SWITCHES].map((name) => [name, model.get(name)]));
const scaleText = (model) => `√${model.get("w_q")[0].length}`;

// ---- elements
function makeSide(sheet, block, text, i) { // a row's label; in x a list, if the word can be changed
  const { model, parts } = sheet, words = model.get("words"), known = Object.keys(words);
  if (block !== "x" || !known.length) return labelNode(text);
  const list = h("select", { className: "attn-word-list", "aria-label": `word ${i + 1}`, onchange: () => {
    const word = known[list.selectedIndex];
    change(sheet, { tokens: swap(model.get("tokens"), i, word), x: swap(model.get("x"), i, words[word]) });
    parts.heard.textContent = `word ${i + 1} is ${word}. ${parts.panel.textContent}`;
  } }, ...known.map((word) => h("option", {}, word)));
  return list;
}

function makeTable(sheet, block) {
  const made = (sheet.blocks[block] = makeBlock(sheet, block, {
    side: (text, i) => makeSide(sheet, block, text, i), touch: (i, j) => choose(sheet, block, i, j),
  }));
  made.node.addEventListener("keydown", (event) => cellKey(sheet, block, event));
  if (!block.startsWith("w_")) return made.node;
  const letter = h("sub", {}, block.at(-1).toUpperCase());
  const name = h("span", { className: "attn-matrix-name", "aria-hidden": "true" }, "W", letter);
  return h("div", { className: `attn-matrix attn-${LOOKS[block]}` }, name, made.node);
}

function makeSections(sheet, scaled) {
  const arrow = () => h("span", { className: "attn-to", "aria-hidden": "true" }, "→");
  const sub = (text, below) => [text, h("sub", {}, below)];
  const section = (look, head, formula, ...names) => h("div", { className: `attn-part attn-part-${look}` },
    h("p", { className: "attn-topic" }, h("b", { className: `attn-${LOOKS[names.at(-1)]}` }, head), " ", ...formula),
    h("div", { className: "attn-pair" },
      ...names.flatMap((name, at) => [...(at ? [arrow()] : []), makeTable(sheet, name)])));
  return h("div", { className: "attn-parts" },
    section("x", "words", ["x"], "x"),
    section("q", "queries", ["q = x ", ...sub("W", "Q")], "w_q", "q"),
    section("k", "keys", ["k = x ", ...sub("W", "K")], "w_k", "k"),
    section("v", "values", ["v = x ", ...sub("W", "V")], "w_v", "v"),
    section("scores", "scores", ["q · k", scaled], "scores"),
    section("weights", "weights", ["softmax of each of these rows"], "weights"),
    section("out", "output", ["weights × values, summed"], "out"),
    h("p", { className: "attn-note" }, "The words and the matrices W are given: touch one of their numbers and "
      + "change it, and the rest follows. The larger a number, the stronger its colour. Shown with two decimals at "
      + "most, computed with all."));
}

// The chosen cell: its name, its arithmetic and, for an input, the controls that change it.
function makePanel(sheet) {
  const which = h("p", { className: "attn-which" }), sum = h("p", { className: "attn-sum" });
  const small = (text, name, step) => h("button", { type: "button", "aria-label": name,
    onclick: () => edit(sheet, valueChosen(sheet) + step) }, text);
  const slide = h("input", { type: "range", min: -FAR, max: FAR, step: STEP, "aria-label": "the number",
    oninput: () => edit(sheet, Number(slide.value)) });
  const field = h("input", { type: "number", step: "any", inputMode: "decimal", "aria-label": "the number, typed",
    oninput: () => field.value !== "" && edit(sheet, Number(field.value), true) });
  const editor = h("div", { className: "attn-edit" },
    small("−", "less by 0.1", -STEP), slide, small("+", "more by 0.1", STEP), field);
  return { which, sum, slide, field, editor, panel: h("div", { className: "attn-panel" }, which, sum, editor) };
}

function build(sheet, { bar }) {
  const { model, parts } = sheet, title = model.get("title");
  const switches = SWITCHES.map((name) => h("button", { type: "button", className: "attn-switch",
    onclick: () => change(sheet, { [name]: !model.get(name) }) },
  name === "mask" ? "Mask later words" : `Divide by ${scaleText(model)}`));
  const scaled = h("span"), heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  Object.assign(parts, { switches, scaled, heard }, makePanel(sheet));
  parts.root = h("div", { className: "attn attn-sheet", role: "group", "aria-label": title || "Sheet of attention" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, ...switches), makeSections(sheet, scaled), parts.panel, heard, bar);
}

// ---- a link to the state
function linkedState(sheet, el) {
  const { model } = sheet, tokens = () => model.get("tokens");
  const read = () => ({
    ...Object.fromEntries(INPUTS.map((name) => [name, model.get(name).flat()])), mask: [Number(model.get("mask"))],
    root: [Number(model.get("root"))], tokens: tokens(), cell: [model.get("cell")],
  });
  const known = (text, i) => text === tokens()[i] || text in model.get("words");
  const write = ({ mask: [mask], root: [root], tokens: to, cell: [at], ...rest }) => {
    const inputs = INPUTS.map((name) => [name, reshaped(rest[name], model.get(name))]);
    put(model, { ...Object.fromEntries(inputs), mask: mask > 0, root: root > 0,
      tokens: to.length === tokens().length && to.every(known) ? to : tokens(),
      cell: cellOf(sheet.all, at) ? at : "" });
  };
  return stateControls(el, model.get("name"), read, write);
}
// A list of numbers in the shape of `old`; `old` itself if the sizes differ.
function reshaped(values, old) {
  const wide = old[0].length;
  if (values.length !== old.length * wide) return old;
  return old.map((_, i) => values.slice(i * wide, (i + 1) * wide).map(kept));
}

// ---- drawing
function shine(sheet, nodes) {
  if (!nodes.length) return;
  const { root } = sheet.parts;
  const fade = () => root.querySelectorAll(".attn-new").forEach((node) => node.classList.remove("attn-new"));
  fade();
  nodes.forEach((node) => node.classList.add("attn-new"));
  clearTimeout(sheet.flash);
  sheet.flash = setTimeout(fade, SHINE);
}

function drawPanel(sheet, at) {
  const { model, all, parts: { editor, which, sum, slide, field } } = sheet;
  editor.hidden = !at || !INPUTS.includes(at[0]);
  which.replaceChildren(at ? called(sheet, at) : "Touch a number: what was it made of?",
    h("span", { className: "attn-from" }, at ? madeOf(at, model.get("tokens"), model.get("outputs")) : ""));
  const pieces = at && editor.hidden ? written(all, given(model), ...at) : [];
  sum.replaceChildren(...pieces.map(([text, block, raised]) =>
    h(raised ? "sup" : "span", { className: block && `attn-${LOOKS[block]}` }, text)));
  if (!at) sum.textContent = "Or change one of x or W, and see what follows.";
  if (editor.hidden) return;
  sum.textContent = "Drag, slide or type. Dotted cells are made of it.";
  slide.value = valueChosen(sheet);
  slide.setAttribute("aria-valuetext", format(valueChosen(sheet), 2));
  if (!field.matches(":focus")) field.value = format(valueChosen(sheet), 2);
}

function draw(sheet) {
  const { model, parts: { switches, scaled } } = sheet;
  Object.assign(sheet, { fresh: true, all: compute(given(model)) });
  const at = cellChosen(sheet);
  shine(sheet, drawNumbers(sheet));
  drawLabels(sheet);
  markCells(sheet, at);
  drawPanel(sheet, at);
  switches.forEach((node, k) => node.setAttribute("aria-pressed", String(model.get(SWITCHES[k]))));
  scaled.textContent = model.get("root") ? ` / ${scaleText(model)}: scaled scores` : "";
}

function render({ model, el }) {
  const sheet = {
    model, all: compute(given(model)), blocks: {}, parts: {}, draw: () => draw(sheet),
    fresh: false, // whether it was drawn since the last change
    flash: 0, // the timer that ends the shine
  };
  const link = linkedState(sheet, el);
  build(sheet, link);
  listenToField(sheet);
  for (const block of INPUTS) listenToDrags(sheet, block);
  const ask = onceAFrame(() => sheet.fresh || draw(sheet));
  const stale = () => { sheet.fresh = false; ask(); }, again = (rebuild) => rebuild();
  const traits = [...INPUTS, ...SWITCHES, "tokens", "cell"];
  const changes = { ...Object.fromEntries(traits.map((name) => [name, stale])), words: again, outputs: again };
  const end = live({ model, el, root: sheet.parts.root, state: link, ask, changes, render });
  return () => (clearTimeout(sheet.flash), end());
}

export default { render };
