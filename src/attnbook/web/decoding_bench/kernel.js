// The kernel of a notebook as the model of DecodingBench, with what the bench needs of a `Language` (published.js).
import { inOrder } from "../engine/sampling.js";

export class Kernel {
  stage = "away"; // until the kernel has answered, then ready; failed if it has another model
  told = undefined; // names of all tokens, the start token, how many tokens the model reads, and the prompt's ids
  #number = Math.floor(Math.random() * 2 ** 40); // of the newest question; another view of the widget has others
  #waiting = new Map(); // what to do with answers, by question number
  #asked; // the newest question about ids
  #changed = () => {};

  constructor(model) {
    this.model = model;
    this.hear = this.hear.bind(this);
    model.on("msg:custom", this.hear);
  }
  // Calls `changed` whenever the stage changes.
  watch(changed) {
    this.#changed = changed;
    this.#call({ begin: true }).then(({ names, start, room, ids }) => {
      Object.assign(this, { stage: "ready", told: { names, start, sizes: { room }, ids } });
      changed();
    });
    return () => this.model.off("msg:custom", this.hear);
  }
  #call(what) {
    const number = ++this.#number;
    return new Promise((done) => {
      this.#waiting.set(number, done);
      try {
        this.model.send({ ...what, number });
      } catch {
        // The kernel is gone, so no answer comes.
      }
    });
  }
  fail() {
    this.stage = "failed";
    this.#changed();
  }
  hear({ number, ...told } = {}, buffers = []) {
    this.#waiting.get(number)?.({ ...told, buffers });
    this.#waiting.delete(number);
  }

  async encode(text) {
    return (await this.#call({ encode: text })).ids;
  }
  // What may follow ids, as the model in the page says it; undefined after a newer question.
  async next(ids) {
    const mine = (this.#asked = {}), { buffers: [bytes] } = await this.#call({ ids });
    if (this.#asked !== mine) return undefined;
    return inOrder(Float32Array.from({ length: bytes.byteLength / 4 }, (_, n) => bytes.getFloat32(4 * n, true)));
  }
}
