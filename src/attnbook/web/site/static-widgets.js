// Draws a notebook's stored widgets without a kernel: each view gets an anywidget-like model with
// the stored state. A widget's source is registered by one classic script per class
// (`attnbookWidgets`), since a page opened as a file cannot import a module from its own folder.
// All this is in the page's head, and each view ends with a call of `attnbookDraw`: the first is
// drawn as soon as the parser reaches it, not when the rest of a long chapter has arrived and been
// laid out.
import { load as fetchScript, offer } from "./late-scripts.js";

const KIND = "application/vnd.jupyter.widget-";

const bytes = (text) => {
  if (Uint8Array.fromBase64) return new DataView(Uint8Array.fromBase64(text).buffer); // ten times as fast
  const raw = atob(text);
  const view = new DataView(new ArrayBuffer(raw.length));
  for (let i = 0; i < raw.length; i++) view.setUint8(i, raw.charCodeAt(i));
  return view;
};

// Weights that a widget requests from its kernel by message: here each is in a script of its own,
// fetched only then.
const weights = new Map();
async function fetchWeights(name) {
  const text = () => globalThis.attnbookWeights?.[name];
  if (!text()) await fetchScript(`weights/${name}.js`, text);
  if (!weights.has(name)) weights.set(name, bytes(text()));
  return weights.get(name);
}

class Model {
  #state;
  #listeners = new Map();

  constructor(state, buffers) {
    this.#state = { ...state };
    for (const { path, view } of buffers) {
      const parent = path.slice(0, -1).reduce((part, key) => part[key], this.#state);
      parent[path[path.length - 1]] = view;
    }
  }
  get(name) {
    return this.#state[name];
  }
  set(name, value) {
    const changes = typeof name === "object" ? name : { [name]: value };
    const changed = Object.keys(changes).filter((key) => this.#state[key] !== changes[key]);
    for (const key of changed) this.#state[key] = changes[key];
    for (const key of changed) this.#fire(`change:${key}`, this, changes[key]);
    if (changed.length) this.#fire("change", this);
  }
  save_changes() {}
  send({ weights: name } = {}) {
    if (!name) return;
    fetchWeights(name).then(
      (view) => this.#fire("msg:custom", { weights: name }, [view]),
      ({ message }) => this.#fire("msg:custom", { weights: name, error: message }, []),
    );
  }
  on(names, listener) {
    for (const name of names.split(/\s+/)) {
      if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
      this.#listeners.get(name).add(listener);
    }
  }
  off(names, listener) {
    for (const name of names ? names.split(/\s+/) : [...this.#listeners.keys()]) {
      if (listener) this.#listeners.get(name)?.delete(listener);
      else this.#listeners.delete(name);
    }
  }
  #fire(name, ...details) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(...details);
  }
}

const sourceOf = (name) => globalThis.attnbookWidgets?.[name];
const modules = new Map();
function definition(name) {
  if (!modules.has(name)) {
    modules.set(name, load(name));
    modules.get(name).catch(() => sourceOf(name) || modules.delete(name));
  }
  return modules.get(name);
}
async function load(name) {
  if (!sourceOf(name)) await fetchScript(`widgets/${name}.js`, () => sourceOf(name));
  const source = sourceOf(name);
  const style = document.createElement("style");
  style.textContent = source.css;
  document.head.append(style);
  const address = URL.createObjectURL(new Blob([source.esm], { type: "text/javascript" }));
  try {
    const { default: exported } = await import(address);
    return typeof exported === "function" ? await exported() : exported;
  } finally {
    URL.revokeObjectURL(address);
  }
}

// Loaded now, so that drawing waits for no import, and a new style has no elements to match yet.
// Errors are reported where the widget should be.
for (const name of Object.keys(globalThis.attnbookWidgets ?? {})) definition(name).catch(() => {});

let records; // they precede the first view
const recordOf = (id) =>
  (records ??= JSON.parse(document.querySelector(`script[type="${KIND}state+json"]`).textContent)
    .state)[id];
const models = new Map(); // views of one model share its state
function modelOf(id, widget) {
  if (!models.has(id)) {
    models.set(id, start(recordOf(id), widget));
    models.get(id).catch(() => models.delete(id));
  }
  return models.get(id);
}
async function start({ state, buffers = [] }, widget) {
  const filled = async ({ path, data, late }) => ({ path, view: late ? await fetchWeights(late) : bytes(data) });
  const model = new Model(state, await Promise.all(buffers.map(filled)));
  await widget.initialize?.({ model });
  return model;
}

// What replaces a widget that cannot start: an explanation, and the stored picture.
function apology(host, error) {
  console.warn("attnbook:", error);
  const note = document.createElement("p");
  note.className = "widget-failed";
  note.setAttribute("role", "status");
  const reason = error instanceof Error ? error.message : String(error);
  note.textContent =
    "This interactive figure could not start in your browser, so here is a picture of it. " +
    (error?.lost ? "" : "Reloading the page or a newer browser may help. ") +
    `(The browser says: ${reason})`;
  const spare = document.createElement("div");
  spare.innerHTML = host.querySelector("noscript")?.textContent ?? "";
  return [note, ...spare.childNodes];
}

async function show(host, instead = []) {
  const el = document.createElement("div");
  el.className = "attnbook-widget";
  el.dataset.attnbookPage = ""; // here a widget may offer a link to its current state
  const clear = () => instead.forEach((node) => node.remove());
  try {
    const view = host.querySelector(`script[type="${KIND}view+json"]`);
    const { model_id: id } = JSON.parse(view.textContent);
    if (!recordOf(id)) throw new Error("its stored state is not on this page");
    const widget = await definition(host.dataset.widget);
    const model = await modelOf(id, widget);
    clear();
    host.append(el);
    await widget.render({ model, el });
  } catch (error) {
    clear();
    el.remove();
    const [note, ...picture] = apology(host, error);
    host.append(note, ...picture);
    if (error?.lost) offer(note, () => show(host, [note, ...picture]));
  }
  host.dataset.ready = "";
}

// The first view is drawn at once. The rest follow when the page is complete, since each makes the
// browser lay out everything there is, and one after another, so that the reader can use the first
// meanwhile. A link to a widget's state scrolls to it, which needs the complete page, too.
const whole = new Promise((done) => addEventListener("DOMContentLoaded", done));
const linked = location.hash.startsWith("#w.");
let last = linked ? whole : Promise.resolve();
globalThis.attnbookDraw = () => {
  const host = document.currentScript.parentElement;
  const pause = () => new Promise((done) => setTimeout(done));
  const draw = () => (last = last.then(() => show(host)).then(() => whole).then(pause));
  if ("late" in host.dataset) whole.then(() => wanted(host)).then(draw);
  else draw();
};

// A heavy view's data are in a script of their own, which is fetched when the view is near, or when
// the reader starts to use the page: then all the data are there before they are searched for,
// linked to or printed.
const begun = new Promise((done) => {
  for (const event of ["scroll", "wheel", "keydown", "pointerdown", "hashchange", "beforeprint"])
    addEventListener(event, done, { once: true, passive: true });
  if (linked) done();
});
function wanted(host) {
  return new Promise((done) => {
    const near = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && done(), {
      rootMargin: "400px 0px",
    });
    near.observe(host);
    begun.then(done).then(() => near.disconnect());
  });
}

// Printing does not wait for a frame: what a widget redraws for it, since paper is light, is drawn
// at once. A frame requested while drawing, as an animation does, comes later.
const later = globalThis.requestAnimationFrame;
addEventListener("beforeprint", () => {
  let drawing = false;
  globalThis.requestAnimationFrame = (draw) => {
    if (drawing) return later(draw);
    drawing = true;
    try {
      draw(performance.now());
    } finally {
      drawing = false;
    }
    return 0;
  };
  addEventListener("afterprint", () => (globalThis.requestAnimationFrame = later), { once: true });
});
