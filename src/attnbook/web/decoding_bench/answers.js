// Answers for places of DecodingBench that are not stored, from a kernel or from the model if the page has loaded it.
import { exactly, told } from "./tree.js";

const PATIENCE = 4000, MOST = 40; // ms to wait for a kernel; most answers kept

// `changed` is called when an answer has come, or none came in time. Token names in an answer are added to `names`.
export class Answers {
  constructor(model, sizes, onPage, names, changed) {
    Object.assign(this, { model, sizes, onPage, names, changed });
    this.silent = onPage; // no kernel answers
    this.everyName = false;
    this.language = undefined; // the model, once it runs in the page
    this.ids = []; // of the beginning, which precedes each path
    this.known = new Map(); // places by path
    this.waiting = new Map(); // timers (0 without one) by the path that was asked for
    this.hear = this.hear.bind(this);
    model.on("msg:custom", this.hear);
  }

  at(path) {
    return this.known.get(path.join());
  }

  // From now on the model in the page answers, for texts that begin with these tokens.
  begin(language, ids) {
    this.forget();
    Object.assign(this, { language, ids, silent: !language });
    this.known.clear();
  }
  forget() {
    for (const timer of this.waiting.values()) clearTimeout(timer);
    this.waiting.clear();
  }

  ask(path) {
    const key = path.join();
    if (this.waiting.has(key)) return;
    if (this.language) {
      this.waiting.set(key, 0);
      this.compute(path, this.ids);
      return;
    }
    const missed = () => { this.silent = true; this.changed(); };
    this.waiting.set(key, this.onPage ? 0 : setTimeout(missed, PATIENCE));
    this.model.send({ path, names: !this.everyName });
  }
  async compute(path, ids) {
    const found = await this.language.next([...ids, ...path]);
    if (ids !== this.ids) return; // the reader has begun another text meanwhile
    if (found) this.keep(exactly(path, found));
    else this.waiting.delete(path.join()); // a newer question came; this one may be asked again
  }

  hear({ path, names } = {}, [bytes] = []) {
    const key = path?.join();
    if (!this.waiting.has(key) || this.known.has(key)) return;
    clearTimeout(this.waiting.get(key));
    this.silent = false;
    if (names) Object.assign(this.names, names), (this.everyName = true);
    const logp = Float32Array.from({ length: this.sizes.vocab }, (_, n) => bytes.getFloat32(4 * n, true));
    this.keep(told(path, logp));
  }
  keep(place) {
    this.known.set(place.path.join(), place);
    for (const old of [...this.known.keys()].slice(0, -MOST)) this.known.delete(old), this.waiting.delete(old);
    this.changed();
  }

  stop() {
    this.model.off("msg:custom", this.hear);
    this.forget();
  }
}
