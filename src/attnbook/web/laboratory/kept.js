// The reader's runs on the page: what the browser stores, and the buttons that save, open, share and delete.
import { csv, settle } from "./ledger.js";
import { packed, parse, same, Shelf, unpacked, written } from "./keep.js";
import { writeLink } from "../shared/math.js";
import { button, disable, h } from "../shared/ui.js";

const OFTEN = 1000; // ms between two writes of a run in progress
const counted = (n) => (n === 1 ? "1 run" : `${n} runs`);

// If a browser forbids storage, even asking for it throws.
function storage() {
  try {
    return globalThis.localStorage;
  } catch {
    return null;
  }
}

export class Kept {
  // `runs` holds all of the laboratory's runs, in order; `changed` is called when they change.
  constructor({ runs, name, changed }) {
    const shelf = new Shelf(name ?? "nameless", storage());
    Object.assign(this, { runs, name, changed, shelf, deleted: [], wrote: null });
    this.last = Math.max(this.shelf.read().last, ...runs.map(({ number }) => number), 0);
    this.status = h("span", { className: "attn-status", role: "status" });
    this.makeBar();
    for (const run of this.shelf.read().runs) this.take(run);
    for (const run of this.mine) if (!run.result) settle(run, runs); // a reload interrupted it
  }

  get mine() {
    return this.runs.filter(({ stored }) => !stored);
  }
  next() {
    this.last = Math.max(this.last, this.shelf.read().last) + 1;
    const id = crypto.randomUUID?.() ?? String(Math.random());
    return { number: this.last, id };
  }

  makeBar() {
    const onchange = () => this.open(file), accept = ".json,application/json";
    const file = h("input", { type: "file", accept, hidden: true, onchange });
    this.undo = button("Undo", () => this.putBack());
    this.all = button("Delete all my runs", () => this.remove(this.mine.filter((run) => !this.busy?.(run))));
    this.save = button("Save to a file", () => download("laboratory.json", written(this.mine), "application/json"));
    this.give = button("Copy link with these runs", () => this.share());
    this.bar = h("div", { className: "attn-row attn-keep" }, this.save, button("Open a file", () => file.click()), file,
      this.give, button("Download as CSV", () => download("laboratory.csv", csv(this.runs), "text/csv")),
      this.all, this.undo,
      this.status);
    this.draw();
  }
  draw() {
    for (const each of [this.save, this.give, this.all]) disable(each, !this.mine.length);
    this.undo.hidden = !this.deleted.length;
  }
  say(text) {
    this.status.textContent = text;
    this.draw();
    this.changed();
  }

  // Adds a run that the browser stored, with its own number unless another run has it.
  take(run) {
    const taken = this.runs.some(({ number }) => number === run.number);
    this.runs.push(taken ? { ...run, number: (this.last += 1) } : run);
  }
  // Adds runs from a file or a link: those that are not here yet get new numbers and are stored.
  add(found, where) {
    const fresh = found.filter((run) => !this.runs.some((other) => same(run, other)));
    const given = fresh.map(() => this.next()), numbers = new Map(fresh.map((run, n) => [run.number, given[n].number]));
    for (const [n, run] of fresh.entries()) {
      const mine = { ...run, ...given[n], beside: numbers.get(run.beside) ?? null };
      this.runs.push(mine);
      this.put(mine, true);
    }
    const known = found.length - fresh.length;
    const before = known ? `; ${counted(known)} of it stood here before` : "";
    this.say(`${counted(fresh.length)} came from the ${where}${before}.`);
  }

  // Stores a run; with `must` now, otherwise at most once in OFTEN ms.
  put(run, must = false) {
    const now = performance.now();
    if (!must && this.wrote?.run === run && now - this.wrote.now < OFTEN) return;
    this.wrote = { run, now };
    if (!this.shelf.put(run)) this.say("This browser keeps nothing here: save your runs to a file before you leave.");
  }
  remove(some) {
    this.deleted = some;
    for (const run of some) this.runs.splice(this.runs.indexOf(run), 1);
    this.shelf.remove(some.map(({ id }) => id));
    this.say(`${some.length === 1 ? `Run ${some[0].number} is` : `${counted(some.length)} are`} deleted.`);
  }
  putBack() {
    for (const run of this.deleted) {
      this.runs.push(run);
      this.put(run, true);
    }
    this.runs.sort((a, b) => a.number - b.number);
    const count = this.deleted.length;
    this.deleted = [];
    this.say(`${counted(count)} ${count === 1 ? "is" : "are"} back.`);
  }

  async open(file) {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      this.add(parse(await chosen.text()), "file");
    } catch (error) {
      this.say(error.message);
    }
    file.value = "";
  }
  // Adds the runs in the page's address and removes them from it, since they are stored now.
  follow(text) {
    try {
      this.add(unpacked(text), "link");
    } catch (error) {
      this.say(error.message);
    }
    history.replaceState(history.state, "", location.href.split("#")[0] + writeLink(location.hash, this.name, {}));
  }
  async share() {
    const runs = packed(this.mine);
    if (!runs) return this.say("These runs are too long for a link: save them to a file.");
    const url = location.href.split("#")[0] + writeLink("", this.name, { runs: [runs] });
    const copied = navigator.clipboard?.writeText(url) ?? Promise.reject(); // over plain http there is no clipboard
    this.say(await copied.then(() => `Link copied, ${url.length} characters long`,
      () => "This browser gives no link away here: save to a file"));
  }
}

// Downloads a text as a file.
function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
