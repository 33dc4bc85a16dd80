// The panel of a widget that runs the published model: a button that loads it, the progress, and what went wrong.
import { button, h, write } from "./ui.js";

const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

// Why the model can't be loaded here; "" if it can.
function hindrance(site) {
  if (location.protocol === "file:") return "This page was opened as a file: a page from a server can load the model.";
  if (!site) return "This copy of the book was built without the model's file, so only what is stored can be shown.";
  if (!globalThis.caches || !globalThis.crypto?.subtle) return "The model needs a page that came by https.";
  return "";
}

// `offers` and `runs` are sentences on what the model is good for, before it is loaded and when it runs.
export function makeLoader({ site, language, offers, runs }) {
  const words = h("p", { className: "attn-note", role: "status", "aria-live": "polite" });
  const load = button("", () => language.load(), "attn-go");
  const bar = h("progress", { "aria-label": "Part of the model that has come" });
  const row = h("div", { className: "attn-row attn-act" }, load, bar);
  let kept = false;

  function said({ stage, came, reason }, size) {
    if (stage === "loading") return `${megabytes(came)} of ${size} have come.`;
    if (stage === "failed") return `The model could not start: ${reason}. What has come is kept.`;
    if (stage === "ready") return runs;
    return kept ? "This browser has kept the model's file." : `${offers} The browser keeps the file.`;
  }
  function draw() {
    const why = hindrance(site), stage = why ? "none" : language.stage, size = megabytes(site?.bytes ?? 0);
    row.hidden = stage === "none" || stage === "ready";
    load.hidden = stage === "loading";
    const ask = kept ? "Start the model" : `Load the model (${size}, once)`;
    write(load, stage === "failed" ? "Go on loading" : ask);
    bar.hidden = stage !== "loading";
    if (stage === "loading") Object.assign(bar, { max: site.bytes, value: language.came });
    write(words, why || said(language, size));
    return stage;
  }
  // Asks the browser whether it has the file; calls `changed` if so.
  async function look(changed) {
    if (hindrance(site)) return;
    kept = await language.kept();
    if (kept) changed();
  }
  return { row, words, draw, look, offers: !hindrance(site) };
}
