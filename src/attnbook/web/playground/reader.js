// The text of Playground as the model reads it; until the model has loaded, the stored answer. No DOM.
import { visible } from "../shared/math.js";
import { merged, outlook } from "./row.js";

const BRANCHES = 4; // most branches kept
const WINDOWS = 4; // the longest text, in windows of the model

export class Reader {
  // `changed` is called when the model has answered.
  constructor(model, changed) {
    const { ids, pieces, prompt, start, names } = (this.stored = model.get("answer"));
    this.model = model;
    this.changed = changed;
    this.row = { ids, pieces, prompt, start, places: [] };
    this.names = Object.fromEntries(ids.map((id, n) => [id, names[n]])); // of tokens, by id
    this.engine = this.config = this.end = undefined; // the model's, once it has loaded
    this.asked = this.pending = undefined;
    this.known = false; // whether the row is what this model has read
  }

  open(engine, { config, end, tokens }) {
    Object.assign(this, { engine, config, end, names: tokens });
  }
  // The row that was read stays until the next model has read the text.
  close() {
    this.engine = this.asked = this.pending = undefined;
    this.known = false;
  }

  // Whether the model has read the text, and whether the text has no room for another token.
  get live() {
    return this.row.places.length > 0;
  }
  get full() {
    return this.row.ids.length >= this.most;
  }
  get most() {
    return WINDOWS * (this.config?.max_len ?? 0);
  }

  // Asks the model about the current text, if that has changed; resolves to true when the answer has come.
  ask() {
    const text = this.model.get("text"), written = this.model.get("written"), key = JSON.stringify([text, written]);
    if (!this.engine || key === this.asked) return this.pending;
    this.asked = key;
    this.pending = this.read(text, written).catch(() => { this.asked = ""; }); // the status says why
    return this.pending;
  }
  // Reads one window after another, until the model has read the whole row: true, or false if asked about another one.
  async read(text, written) {
    const { engine } = this;
    for (let found = { rest: 1 }; found?.rest > 0;) {
      found = await engine.newest("answer", { text, written, known: this.known ? this.row.ids : [] });
      if (!found || this.engine !== engine) return false;
      this.known = true;
      this.row = merged(this.row, found);
      this.changed();
    }
    return true;
  }

  // What could come at a place.
  outlook(at, filters, seed) {
    return this.live ? outlook(this.row, this.names, at, filters, seed) : this.stored;
  }
}

// The texts that the reader left by taking another token, each with its last characters.
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
