// Beyond the stored tree of DecodingBench: the reader loads the model itself, and begins a text of their own.
import { button, h } from "../shared/ui.js";

const LETTERS = 500; // of a beginning
const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

// Why the model can't be loaded here; "" if it can.
function hindrance(site) {
  if (location.protocol === "file:") return "This page was opened as a file: a page from a server can load the model.";
  if (!site) return "This copy of the book was built without the model's file, so only stored places can be shown.";
  if (!globalThis.caches || !globalThis.crypto?.subtle) return "The model needs a page that came by https.";
  return "";
}

// `begin` gets the text that the reader begins with, `write` is called when the reader lets the model write or stop.
export function makeOwn({ site, language, begin, write }) {
  const words = h("p", { className: "attn-note", role: "status", "aria-live": "polite" });
  const load = button("", () => language.load(), "attn-go");
  const bar = h("progress", { "aria-label": "Part of the model that has come" });
  const text = h("textarea", { rows: 2, maxLength: LETTERS, spellcheck: false, "aria-label": "Your beginning",
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      begin(text.value);
    } });
  const go = button("Write", write, "attn-go");
  const acts = (...nodes) => h("div", { className: "attn-row attn-act" }, ...nodes), row = acts(load, bar);
  const own = h("div", {}, text, acts(button("Begin with this", () => begin(text.value)), go));
  const node = h("div", { className: "attn-own" }, row, own, words);
  let kept = false;

  function said({ stage, came, reason }, size) {
    if (stage === "loading") return `${megabytes(came)} of ${size} have come.`;
    if (stage === "failed") return `The model could not start: ${reason}. What has come is kept.`;
    if (stage === "ready") return "The model runs in this page: no text ends where nothing is stored.";
    return kept ? "This browser has kept the model's file." : "With the model the text goes on beyond what is stored, "
      + "and you can begin it yourself. The browser keeps the file.";
  }
  function draw(writing) {
    const why = hindrance(site), stage = why ? "none" : language.stage, size = megabytes(site?.bytes ?? 0);
    row.hidden = stage === "none" || stage === "ready";
    own.hidden = stage !== "ready";
    load.hidden = stage === "loading";
    const ask = kept ? "Start the model" : `Load the model (${size}, once)`;
    load.textContent = stage === "failed" ? "Go on loading" : ask;
    bar.hidden = stage !== "loading";
    go.textContent = writing ? "Stop" : "Write";
    if (stage === "loading") Object.assign(bar, { max: site.bytes, value: language.came });
    words.textContent = why || said(language, size);
  }
  async function look(changed) {
    if (hindrance(site)) return;
    kept = await language.kept();
    if (kept) changed();
  }
  return { node, text, draw, look, offers: !hindrance(site) };
}
