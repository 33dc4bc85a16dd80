// The fields in which the reader writes a prompt for PromptBench. `change` receives each change at once.
import { hasHole, MOST } from "./prompt.js";
import { h } from "../shared/ui.js";

const TEXTS = { form: ["Prompt. {} stands for the text", 3], text: ["Text", 1], system: ["System prompt", 2],
  begin: ["The answer begins with (may be empty)", 1],
  candidates: ["Candidates, one a line, 8 at most; a space in front counts", 2] };
const lines = (text) => whole(text).split("\n").filter(Boolean).slice(0, MOST.candidates);

function field(name, change) {
  const [label, rows] = TEXTS[name];
  const area = h("textarea", { rows, maxLength: MOST.letters, spellcheck: false,
    oninput: () => change({ [name]: name === "candidates" ? lines(area.value) : whole(area.value) }) });
  return { node: h("label", { className: "attn-ask" }, h("span", {}, label), area), area };
}
// A text field can hold half a surrogate pair; U+FFFD replaces it.
export const whole = (text) => text.replace(/\p{Surrogate}/gu, "\uFFFD");

export function makeFields(change, { template }) {
  const all = Object.fromEntries(Object.keys(TEXTS).map((name) => [name, field(name, change)]));
  const box = h("input", { type: "checkbox", onchange: () => change({ chat: box.checked }) });
  const chat = h("label", { className: "attn-field attn-switch" }, box, h("span", {}, "Chat template"));
  chat.hidden = !template;

  // A field that already holds the text stays as it is, and keeps its cursor.
  function write({ area }, text) {
    if (area.value !== text) area.value = text;
  }
  function draw(asked) {
    for (const name of ["form", "text", "system", "begin"]) {
      if (whole(all[name].area.value) !== asked[name]) write(all[name], asked[name]);
    }
    if (String(lines(all.candidates.area.value)) !== String(asked.candidates)) {
      write(all.candidates, asked.candidates.join("\n"));
    }
    box.checked = asked.chat;
    all.text.node.hidden = !hasHole(asked);
    for (const name of ["system", "begin"]) all[name].node.hidden = !asked.chat;
  }
  const nodes = Object.fromEntries(Object.entries(all).map(([name, { node }]) => [name, node]));
  return { ...nodes, chat, draw };
}
