// TransformerMap: the drawing of a Transformer, in the shape and with the order of norms that the reader chooses.
// Pressing a part opens a small walk with a model's numbers.
import DRAWING from "../drawing/widget.js";
import { h, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { makeBoard, makeMap, makeSwitch, mark, reads } from "./map.js";

const ORDERS = [["pre", "pre-norm"], ["post", "post-norm"]];
const SHAPES = { "encoder-decoder": "encoder-decoder", decoder: "decoder alone", encoder: "encoder alone" };
const PARTS = {
  add: "Add", norm: "Norm", attention: "Self-attention", cross: "Cross-attention", "feed-forward": "Feed-forward",
};
const read = Object.entries(PARTS).map(([part, said]) => [`encoder ${part}`, `${said} in the encoder`]);
const SAID = { ...PARTS, ...Object.fromEntries(read) };
const SHAPED = {
  "encoder-decoder": "An encoder-decoder reads one text and writes another. ",
  decoder: "A decoder alone has no cross-attention. A word sees those before it: it writes, as GPT does. ",
  encoder: "In an encoder alone each word sees all words: it reads, as BERT does. ",
};
const RULE = {
  pre: "Press a part: it opens with one word's numbers.",
  post: "Post-norm, norm(x + layer(x)): each norm stands on the line itself. "
    + "(The numbers are those of a pre-norm model.)",
};

// ---- a walk, which is a Drawing with its own step
function makeWalk(walk, el) {
  const state = { ...walk, name: "", step: 1 }, heard = {};
  const model = {
    get: (trait) => state[trait],
    set: (trait, value) => {
      state[trait] = value;
      for (const react of heard[`change:${trait}`] ?? []) react();
    },
    save_changes() {}, on: (event, react) => (heard[event] ??= []).push(react),
    off: (event, react) => (heard[event] = (heard[event] ?? []).filter((other) => other !== react)),
  };
  return DRAWING.render({ model, el });
}

const namesOf = (model) => Object.keys(SAID).filter((part) => part in model.get("walks"));
const nameOf = (name, part) => (reads(part) ? `encoder ${name}` : name);
const keyOf = (model) => `${model.get("shape")} ${model.get("norm")}`;

// ---- elements
function build(model, { bar }, choose) {
  const names = namesOf(model), panel = h("div", { className: "attn-walked" }), shapes = model.get("shapes");
  const drawn = Object.entries(model.get("pictures")).map(([key, svg]) => [key, makeMap(svg, names, choose, nameOf)]);
  const maps = Object.fromEntries(drawn);
  const option = (trait, value, text) => [text, () => model.get(trait) === value, () => put(model, { [trait]: value })];
  const switches = [makeSwitch("Where the norm stands", ORDERS.map(([norm, text]) => option("norm", norm, text)))];
  const each = shapes.map((shape) => option("shape", shape, SHAPES[shape]));
  if (shapes.length > 1) switches.unshift(makeSwitch("Shape", each));
  const board = makeBoard(model.get("title"), switches, panel, bar);
  board.root.classList.add("attn-alone");
  return { ...board, maps, panel, shown: "", leave: () => {} };
}

function linkedState(model, el) {
  const shapes = model.get("shapes"), names = namesOf(model);
  return stateControls(el, model.get("name"), () => ({
    norm: [Number(model.get("norm") === "post")], part: [names.indexOf(model.get("part")) + 1],
    shape: [shapes.indexOf(model.get("shape"))],
  }), ({ norm: [post], part: [n], shape: [s] }) =>
    put(model, { norm: post ? "post" : "pre", part: names[n - 1] ?? "", shape: shapes[s] ?? shapes[0] }));
}

// ---- drawing
// The drawing is larger until the first part is opened; that part stays where it was on the screen.
function makeRoom({ root, pressed }) {
  const top = () => pressed?.getBoundingClientRect().top ?? 0, before = top();
  root.classList.remove("attn-alone");
  scrollBy(0, top() - before);
}

function draw(model, parts) {
  const norm = model.get("norm"), map = parts.maps[keyOf(model)];
  const chosen = model.get("part"); // this shape may lack it
  const part = map.querySelector(`[data-opens="${chosen}"]`) ? chosen : "";
  const walk = model.get("walks")[part];
  parts.show(map);
  parts.rule.textContent = (model.get("shapes").length > 1 ? SHAPED[model.get("shape")] : "") + RULE[norm];
  for (const map of Object.values(parts.maps)) mark(map, part);
  if (walk) makeRoom(parts);
  if (parts.shown === part) return;
  parts.leave();
  parts.shown = part;
  parts.leave = walk ? makeWalk({ ...walk, title: SAID[part] }, parts.panel) : () => {};
}

function render({ model, el }) {
  const link = linkedState(model, el), parts = build(model, link, choose);
  function choose(part, pressed) {
    parts.pressed = pressed;
    put(model, { part: model.get("part") === part ? "" : part });
  }
  const ask = onceAFrame(() => draw(model, parts));
  const changes = { norm: ask, part: ask, shape: ask, walks: (again) => again() };
  const leave = () => parts.leave();
  return live({ model, el, root: parts.root, state: link, ask, changes, sized() {}, render, leave });
}

export default { render };
