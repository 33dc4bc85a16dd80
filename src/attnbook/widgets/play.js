// A button that moves something on by itself.
import { h } from "./ui.js";

// Calls `step` every `pace` milliseconds, until that says there is no more, or it is pressed again.
export function playing(words, pace, step) {
  let timer = 0;
  const node = h("button", { type: "button", onclick: () => (timer ? stop() : start()) }, words);
  const onwards = () => (node.isConnected && step()) || stop();
  function start() {
    node.textContent = "Pause";
    timer = setInterval(onwards, pace);
    onwards();
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    node.textContent = words;
  }
  return { node, stop };
}
