// Controls that advance by themselves: a play button, and a slider with one.
import { h } from "./ui.js";

// Calls `step` every `pace` milliseconds until `step` returns false or the button is pressed again. `what` names the
// thing that plays, for screen readers.
export function playing(words, pace, step, what = "") {
  let timer = 0;
  const word = h("span", {}, words), heard = h("span", { className: "attn-heard" }, what && ` ${what}`);
  const node = h("button", { type: "button", onclick: () => (timer ? stop() : start()) }, word, heard);
  const onwards = () => (node.isConnected && step()) || stop();
  function start() {
    word.textContent = "Pause";
    timer = setInterval(onwards, pace);
    onwards();
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    word.textContent = words;
  }
  return { node, stop };
}

// A choice from ordered options: a slider that names the current one, and a button that plays through them.
export function player(label, options, onchange) {
  const last = options.length - 1, shown = h("b", { "aria-hidden": "true" });
  const list = h("input", {
    type: "range", min: 0, max: last, step: 1, "aria-label": label,
    oninput: () => { play.stop(); onchange(Number(list.value)); },
  });
  const play = playing("Play", 900, () => {
    const n = Number(list.value);
    onchange(n < last ? n + 1 : 0);
    return n !== last - 1;
  }, label);
  const node = h("div", { className: "attn-player" }, play.node,
    h("span", { className: "attn-field", "aria-hidden": "true" }, label, shown), list);
  const set = (n) => {
    list.value = n;
    list.setAttribute("aria-valuetext", shown.textContent = options[n]);
  };
  return { node, set, stop: play.stop };
}
