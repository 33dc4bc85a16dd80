// TransformerMap: the whole Transformer as a drawing; a part that is pressed opens a small walk with a model's numbers.
import DRAWING from "../drawing/widget.js";
import { h, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const ORDERS = [["pre", "pre-norm"], ["post", "post-norm"]];
const SAID = {
  add: "Add", norm: "Norm", attention: "Self-attention", cross: "Cross-attention", "feed-forward": "Feed-forward",
};
const RULE = {
  pre: "Pre-norm, x + layer(norm(x)): the line past a layer meets no norm. "
    + "Press a part: it opens with the model's numbers.",
  post: "Post-norm, norm(x + layer(x)): each norm stands on the line itself. "
    + "(The numbers are those of a pre-norm model.)",
};

// ---- the drawing of an order of norms, whose parts with a walk are buttons
function makeMap(svg, names, press) {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  const node = document.importNode(parsed.documentElement, true), seen = new Set();
  node.setAttribute("role", "group");
  for (const part of node.querySelectorAll("[data-part]")) {
    const name = part.dataset.part;
    if (!names.includes(name)) continue;
    part.classList.add("attn-press");
    part.addEventListener("click", () => press(name));
    if (seen.has(name)) continue; // the same walk: the keys need one place only
    seen.add(name);
    for (const [key, value] of [["role", "button"], ["tabindex", 0]]) part.setAttribute(key, value);
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      press(name);
    });
  }
  return node;
}
function mark(map, part) {
  for (const node of map.querySelectorAll(".attn-press")) {
    node.classList.toggle("attn-open", node.dataset.part === part);
    if (node.hasAttribute("role")) node.setAttribute("aria-pressed", String(node.dataset.part === part));
  }
}

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

// ---- elements
function build(model, { bar }, choose, turn) {
  const names = namesOf(model), pictures = model.get("pictures"), title = model.get("title");
  const maps = Object.fromEntries(ORDERS.map(([order]) => [order, makeMap(pictures[order], names, choose)]));
  const turns = ORDERS.map(([order, text]) => h("button", { type: "button", onclick: () => turn(order) }, text));
  const rule = h("p", { className: "attn-rule", "aria-live": "polite" });
  const panel = h("div", { className: "attn-walked" }), stage = h("div", { className: "attn-towers" });
  const root = h("div", { className: "attn attn-machine", role: "group", "aria-label": title || "Transformer" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-orders", role: "group", "aria-label": "Where the norm stands" }, ...turns), rule,
    h("div", { className: "attn-both" }, stage, panel), bar);
  return { root, maps, turns, rule, panel, stage, shown: null, leave: () => {} };
}

const linkedState = (model, el) => stateControls(el, model.get("name"),
  () => ({ norm: [Number(model.get("norm") === "post")], part: [namesOf(model).indexOf(model.get("part")) + 1] }),
  ({ norm: [post], part: [n] }) => put(model, { norm: post ? "post" : "pre", part: namesOf(model)[n - 1] ?? "" }));

// ---- drawing
function draw(model, parts) {
  const norm = model.get("norm"), part = model.get("part"), walk = model.get("walks")[part];
  ORDERS.forEach(([order], n) => parts.turns[n].setAttribute("aria-pressed", String(order === norm)));
  if (parts.stage.firstChild !== parts.maps[norm]) parts.stage.replaceChildren(parts.maps[norm]);
  parts.rule.textContent = RULE[norm];
  for (const map of Object.values(parts.maps)) mark(map, part);
  if (parts.shown === part) return;
  parts.leave();
  parts.shown = part;
  parts.leave = walk ? makeWalk({ ...walk, title: SAID[part] }, parts.panel) : () => {};
}

function render({ model, el }) {
  const link = linkedState(model, el), parts = build(model, link, choose, (norm) => put(model, { norm }));
  function choose(part) { put(model, { part: model.get("part") === part ? "" : part }); }
  const ask = onceAFrame(() => draw(model, parts));
  const changes = { norm: ask, part: ask, walks: (again) => again() };
  const leave = () => parts.leave();
  return live({ model, el, root: parts.root, state: link, ask, changes, sized() {}, render, leave });
}

export default { render };
