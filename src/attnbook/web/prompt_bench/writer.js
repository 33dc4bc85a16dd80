// Lets the model of PromptBench continue the prompt, token by token, until it ends, is stopped or gets another prompt.
import { drawn, textOf } from "./prompt.js";
import { button, disable, h, put, select } from "../shared/ui.js";

const MOST = 200; // most tokens written in one go
const WAYS = [["the likeliest token (greedy)", 0], ["drawn, temperature 0.7", 0.7], ["drawn, temperature 1", 1]];

export class Writer {
  #running; // an object that identifies what is being written now

  constructor(model, asker, special, changed) {
    Object.assign(this, { model, asker, changed, special: new Set(special) });
    [this.names, this.words, this.of] = [[], "", undefined]; // of: the question that this continues
    this.go = button("Write", () => this.press(), "attn-go");
    this.another = button("With other numbers", () => this.press(1));
    this.ways = select("Each token", WAYS.map(([words]) => words), (n) => this.choose(WAYS[n][1]));
    const look = { className: "attn-continued", tabIndex: 0, role: "group", "aria-label": "What the model wrote" };
    this.text = h("p", look);
    this.note = h("p", { className: "attn-note", role: "status" });
    this.node = h("div", { className: "attn-write" }, h("p", { className: "attn-legend" }, "Let it write"),
      h("div", { className: "attn-row" }, this.ways.node, this.go, this.another), this.text, this.note);
  }
  get busy() {
    return this.#running !== undefined;
  }

  choose(temperature) {
    this.halt();
    put(this.model, { temperature });
  }
  press(more = 0) {
    if (this.busy && !more) return this.halt("Stopped.");
    if (more) put(this.model, { seed: (this.model.get("seed") + more) % 1e6 });
    this.write();
  }
  halt(words = "") {
    if (!this.busy) return;
    this.#running = undefined;
    this.words = words;
    this.changed();
  }
  stop() {
    this.#running = undefined;
  }
  show(names, words = "") {
    Object.assign(this, { names, words });
    this.changed();
  }

  // Shows a stored greedy text or else writes token by token.
  write() {
    const { asker, model } = this, stored = asker.preset(asker.asked), temperature = model.get("temperature");
    this.of = asker.asked;
    if (stored && !temperature && !asker.language) {
      return this.show(stored.answer.written, "Stored: the model's first tokens, each the likeliest.");
    }
    const mine = (this.#running = {});
    this.show([]);
    this.run(asker.language ? this.ofPage() : this.ofKernel(asker.asked), mine);
  }
  async run(next, mine) {
    const ids = [], names = [], end = this.model.get("sizes").end;
    try {
      while (ids.length < MOST && ids.at(-1) !== end) {
        const found = await (await next)(ids);
        if (this.#running !== mine) return;
        if (found.words) return this.halt(found.words);
        ids.push(found.id);
        names.push(found.name);
        this.show(names);
      }
      this.halt(ids.at(-1) === end ? "The model chose its end token." : `${MOST} tokens are written.`);
    } catch (error) {
      if (this.#running === mine) this.halt(`The model gave no answer: ${error.message}.`);
    }
  }
  // Both return a function that maps the ids written so far to the next token.
  async ofPage() {
    const { language } = this.asker, { names, sizes } = language.told, prompt = await this.asker.ids();
    const temperature = this.model.get("temperature"), seed = this.model.get("seed");
    return async (ids) => {
      if (prompt.length + ids.length >= sizes.room) return { words: `The model reads ${sizes.room} tokens at most.` };
      const found = await language.next([...prompt, ...ids]);
      if (!found) return { words: "The model was asked something else meanwhile." };
      const id = drawn(found, temperature, seed, ids.length);
      return { id, name: names[id] };
    };
  }
  async ofKernel(asked) {
    return (ids) => new Promise((done) => {
      const missed = () => done({ words: "No model is there to write: load it, or run the cell." });
      const take = ({ error, ...told }) => done(error ? { words: `${error}.` } : told);
      this.asker.send({ write: asked, written: [...ids] }, take, missed);
    });
  }

  // `able`: the question has an answer, so the model can continue it.
  draw(able) {
    const { asker, model, special } = this;
    if (this.of && this.of !== asker.asked) { // what is written continues another prompt
      [this.names, this.words, this.of] = [[], "", undefined];
      this.stop();
    }
    const temperature = model.get("temperature"), { busy } = this, n = WAYS.findIndex(([, t]) => t === temperature);
    this.ways.list.selectedIndex = n;
    this.go.textContent = busy ? "Stop" : "Write";
    disable(this.go, !busy && !able);
    this.another.hidden = !temperature;
    disable(this.another, !able);
    this.text.replaceChildren(...textOf(this.names, special).map(([piece, mark]) =>
      (mark ? h("bdi", { className: "attn-sent-token attn-special" }, piece) : piece)));
    this.text.hidden = !this.names.length;
    this.note.textContent = this.words;
  }
}
