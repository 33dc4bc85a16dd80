// Answers for places of DecodingBench that are not stored, from a kernel or from the model if the page has loaded it.
import { exactly } from "./tree.js";

const PATIENCE = 4000, MOST = 40; // ms to wait for a kernel; most answers kept

// `changed` is called when an answer has come, `missed` if none came in time.
export class Answers {
  constructor(onPage, changed, missed) {
    Object.assign(this, { onPage, changed, missed });
    this.silent = onPage; // nobody answers
    this.language = undefined; // what answers, once it is there
    this.ids = []; // of the beginning, which precedes each path
    this.known = new Map(); // places by path
    this.waiting = new Map(); // timers (0 without one) by the path that was asked for
  }

  at(path) {
    return this.known.get(path.join());
  }

  // From now on the language answers, for texts that begin with these tokens.
  begin(language, ids) {
    this.stop();
    Object.assign(this, { language, ids, silent: !language });
    this.known.clear();
  }
  stop() {
    for (const timer of this.waiting.values()) clearTimeout(timer);
    this.waiting.clear();
  }
  #forget(key) {
    clearTimeout(this.waiting.get(key));
    this.waiting.delete(key);
  }

  ask(path) {
    const key = path.join();
    if (this.waiting.has(key)) return;
    const missed = () => { this.silent = true; this.missed(); };
    this.waiting.set(key, this.onPage ? 0 : setTimeout(missed, PATIENCE));
    if (this.language) this.compute(path, this.ids);
  }
  async compute(path, ids) {
    const found = await this.language.next([...ids, ...path]);
    if (ids !== this.ids) return; // the reader has begun another text meanwhile
    if (found) this.keep(exactly(path, found));
    else this.#forget(path.join()); // a newer question came; this one may be asked again
  }
  keep(place) {
    const key = place.path.join();
    clearTimeout(this.waiting.get(key));
    this.silent = false;
    this.known.set(key, place);
    for (const old of [...this.known.keys()].slice(0, -MOST)) this.known.delete(old), this.#forget(old);
    this.changed();
  }
}
