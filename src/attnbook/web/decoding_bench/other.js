// Continues the text of DecodingBench with its model, by a rule that its bars cannot show.
import { beams, draws, RULES } from "./rules.js";
import { textOf } from "../prompt_bench/prompt.js";
import { format, share } from "../shared/math.js";
import { button, disable, h, select } from "../shared/ui.js";

const MOST = 40; // tokens
const WORDS = "It goes on behind the text above, which stays as it is.";

// The share of distinct pairs among all pairs of adjacent tokens in a text.
function distinct(row) {
  const pairs = row.slice(1).map((id, n) => `${row[n]} ${id}`);
  return new Set(pairs).size / pairs.length;
}
function report(row, sum, end) {
  const bits = `${format(-sum / row.length / Math.LN2, 2)} bits a token by the model`;
  if (row[0] === end) return `The end token at once: the text is empty. ${bits}.`;
  const pairs = row.length > 2 ? `, ${share(distinct(row))} of the pairs of neighbours are different` : "";
  return `${row.length} tokens, ${bits}${pairs}.${row.at(-1) === end ? " It chose the end token." : ""}`;
}

export class Other {
  #running; // an object that identifies what is being written now

  constructor(bench) {
    Object.assign(this, { bench, of: undefined }); // of: the text that this continues
    this.rules = select("Another rule", RULES.map(([name]) => name), () => this.stop());
    this.go = button("Write by this rule", () => (this.#running ? this.stop("Stopped.") : this.write()));
    this.text = h("p", { className: "attn-continued", tabIndex: 0, role: "group",
      "aria-label": "What the other rule wrote", hidden: true });
    this.note = h("p", { className: "attn-note", role: "status" }, WORDS);
    const acts = h("div", { className: "attn-row attn-act" }, this.rules.node, this.go);
    this.node = h("div", {}, acts, this.text, this.note);
  }
  stop(words = WORDS) {
    this.#running = undefined;
    this.go.textContent = "Write by this rule";
    this.note.textContent = words;
  }
  // Called after the text above was drawn.
  draw() {
    const { bench } = this, text = [...bench.answers.ids, ...bench.path].join();
    // The model answers one question at a time: pressed now, the rule would drop the answer that is awaited above.
    disable(this.go, bench.over || !bench.view || bench.writer.busy);
    if (this.of === text) return;
    this.of = text;
    this.stop();
    this.text.hidden = true;
  }
  show(row) {
    const { names, sizes } = this.bench, special = new Set([names[sizes.end]]);
    this.text.hidden = !row.length;
    this.text.replaceChildren(...textOf(row.map((id) => names[id]), special).map(([piece]) => h("bdi", {}, piece)));
  }
  async write() {
    const { bench } = this, { end } = bench.sizes, mine = (this.#running = {});
    const [, rule] = RULES[this.rules.list.selectedIndex], run = rule.beam ? beams : draws;
    bench.writer.halt();
    this.go.textContent = "Stop the rule";
    this.note.textContent = "Writing …";
    this.show([]);
    const how = { ...rule, end, most: Math.min(MOST, bench.room - bench.path.length), seed: bench.model.get("seed"),
      at: bench.path.length };
    const next = (ids) => (this.#running === mine ? bench.language.next(ids) : undefined);
    const heard = (row) => { if (this.#running === mine) this.show(row); };
    const found = await run(next, [...bench.answers.ids, ...bench.path], how, heard);
    if (this.#running !== mine) return;
    if (!found) return this.stop("The model was asked something else meanwhile.");
    this.stop(report(found.row, found.sum, end));
  }
}
