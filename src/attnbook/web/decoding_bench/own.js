// Beyond the stored tree of DecodingBench: the reader can begin a text of their own, once a model is there.
import { makeLoader } from "../shared/loader.js";
import { button, h, write as say } from "../shared/ui.js";

const LETTERS = 500; // of a beginning
const WORDS = {
  offers: "With the model the text goes on beyond what is stored, and you can begin it yourself.",
  runs: "The model runs in this page: no text ends where nothing is stored.",
};

// Stands for the loader in a notebook, whose kernel has its model.
function ofKernel(language) {
  const words = h("p", { className: "attn-note", role: "status" });
  function draw(silent) {
    say(words, silent ? "The kernel does not answer."
      : "The kernel runs the model: no text ends where nothing is stored.");
    return language.stage;
  }
  return { row: "", words, draw, look() {}, offers: false };
}

// `site` is what the site says about the model, null in a notebook. `begin` receives the reader's beginning; `write` is
// called when the reader lets the model write, or stops it; `other` is a node shown below.
export function makeOwn({ site, language, begin, write, other }) {
  const loader = site === null ? ofKernel(language) : makeLoader({ site, language, ...WORDS });
  const text = h("textarea", { rows: 2, maxLength: LETTERS, spellcheck: false, "aria-label": "Your beginning",
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      begin(text.value);
    } });
  const go = button("Write", write, "attn-go");
  const acts = h("div", { className: "attn-row attn-act" }, button("Begin with this", () => begin(text.value)), go);
  const own = h("div", {}, text, acts, other);
  const node = h("div", { className: "attn-own" }, loader.row, own, loader.words);

  // `silent`: a kernel has not answered.
  function draw(writing, silent) {
    own.hidden = loader.draw(silent) !== "ready";
    node.hidden = own.hidden && site === null;
    go.textContent = writing ? "Stop" : "Write";
  }
  return { node, text, draw, look: loader.look, offers: loader.offers };
}
