// The text of Playground as the model reads it; until the model is there, the stored answer. No DOM.
import { visible } from "../shared/math.js";
import { merged, outlook } from "./row.js";

const BRANCHES = 4; // that are kept

export class Reader {
  // `changed` is called when the model has answered.
  constructor(model, changed) {
    const { ids, pieces, prompt, cut, names } = (this.stored = model.get("answer"));
    this.model = model;
    this.changed = changed;
    this.row = { ids, pieces, prompt, cut, places: [] };
    this.names = Object.fromEntries(ids.map((id, n) => [id, names[n]])); // of tokens
    this.engine = this.config = this.end = undefined; // of the model, once it is there
    this.asked = this.pending = undefined;
  }

  open(engine, { config, end, tokens }) {
    Object.assign(this, { engine, config, end, names: tokens });
  }

  // Whether the model has read the text, and whether the text has no room for another token.
  get live() {
    return this.row.places.length > 0;
  }
  get full() {
    return this.row.ids.length >= (this.config?.max_len ?? 0);
  }

  // Asks the model about the present text, if that has changed; true when the answer has come.
  ask() {
    const text = this.model.get("text"), written = this.model.get("written"), key = JSON.stringify([text, written]);
    if (!this.engine || key === this.asked) return this.pending;
    this.asked = key;
    const known = this.live ? this.row.ids : [];
    this.pending = this.engine.newest("answer", { text, written, known }).then((found) => {
      if (found) {
        this.row = merged(this.row, found);
        this.changed();
      }
      return true;
    }, () => { this.asked = ""; }); // the status says why
    return this.pending;
  }

  // What could stand at a place.
  outlook(at, filters, seed) {
    return this.live ? outlook(this.row, this.names, at, filters, seed) : this.stored;
  }
}

// Other texts that the reader left by taking another token, each with how it ended.
export class Branches {
  constructor() {
    this.clear();
  }
  clear() {
    this.left = [];
  }
  keep(text, written, pieces) {
    const others = this.left.filter((each) => String(each.written) !== String(written));
    this.left = [{ text, written, shown: pieces.join("").slice(-28) }, ...others].slice(0, BRANCHES);
  }
  take(branch) {
    this.left = this.left.filter((each) => each !== branch);
  }
}
