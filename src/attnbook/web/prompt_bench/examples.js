// The examples in front of a prompt of PromptBench, each a text with its label, to write, move, remove and add.
import { whole } from "./fields.js";
import { MOST } from "./prompt.js";
import { button, disable, h } from "../shared/ui.js";

// `told` receives all examples after each change, and whether it was typed.
export function makeExamples(told) {
  const list = h("ol", { className: "attn-examples", role: "list" }), rows = [];
  const add = button("Add an example", () => {
    if (examples.length < MOST.examples) change([...examples, ["", first]], (fresh = true));
  });
  const title = h("p", { className: "attn-legend" }, "Examples in front");
  const node = h("div", { role: "group", "aria-label": "Examples in front" }, title, list, add);
  let examples = [], first = "", fresh = false; // fresh: an example was added and gets the focus

  // Further changes before the next drawing build on `examples`.
  function change(all, written = false) {
    examples = all;
    told(all, written);
  }
  function write(n, at, text) {
    change(examples.map((pair, i) => (i === n ? pair.map((old, j) => (j === at ? whole(text) : old)) : pair)), true);
  }
  function move(n, by) {
    const moved = [...examples];
    [moved[n], moved[n + by]] = [moved[n + by], moved[n]];
    change(moved);
    rows[n + by][by < 0 ? "up" : "down"].focus();
  }
  function remove(n) {
    (rows[n + 1] ? rows[n] : rows[n - 1])?.gone.focus();
    if (examples.length === 1) add.focus();
    change(examples.filter((_, i) => i !== n));
  }

  function row(n) {
    const field = (at, label) => h("textarea", { rows: 1, maxLength: MOST.letters, spellcheck: false,
      "aria-label": `${label} of example ${n + 1}`, oninput: (event) => write(n, at, event.target.value) });
    const sign = (text, label, act) => {
      const made = button(text, act);
      made.setAttribute("aria-label", label);
      return made;
    };
    const made = { texts: [field(0, "Text"), field(1, "Label")],
      up: sign("↑", `Move example ${n + 1} up`, () => move(n, -1)),
      down: sign("↓", `Move example ${n + 1} down`, () => move(n, 1)),
      gone: sign("×", `Remove example ${n + 1}`, () => remove(n)) };
    made.node = h("li", {}, ...made.texts, h("span", { className: "attn-order" }, made.up, made.down, made.gone));
    return made;
  }
  function draw(asked) {
    examples = asked.examples;
    first = asked.candidates[0] ?? "";
    for (; rows.length < examples.length; list.append(rows.at(-1).node)) rows.push(row(rows.length));
    while (rows.length > examples.length) rows.pop().node.remove();
    rows.forEach(({ texts, up, down }, n) => {
      texts.forEach((area, at) => { if (whole(area.value) !== examples[n][at]) area.value = examples[n][at]; });
      disable(up, n === 0);
      disable(down, n === examples.length - 1);
    });
    disable(add, examples.length >= MOST.examples);
    if (fresh) rows.at(-1).texts[0].focus();
    fresh = false;
  }
  return { node, draw };
}
