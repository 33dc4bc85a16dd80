// A walk beside a map, which is a Drawing with its own step.
import DRAWING from "../drawing/widget.js";

export function makeWalk(walk, el) {
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

// A place for one walk at a time: shows the walk with this title, or none.
export function makeWalks() {
  const node = document.createElement("div");
  let shown = "", leave = () => {};
  node.className = "attn-walked";
  return { node, leave: () => leave(), show(walk, title) {
    if (shown === (walk ? title : "")) return;
    leave();
    shown = walk ? title : "";
    leave = walk ? makeWalk({ ...walk, title }, node) : () => {};
  } };
}
