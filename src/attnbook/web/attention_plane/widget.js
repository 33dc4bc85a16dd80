// AttentionPlane: a query and keys as arrows to drag; their products, weights and the output follow.
import { format, within } from "../shared/math.js";
import { h, isTheirs, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";
import { compute, kept, point, productWritten, reshaped, swap, written } from "./numbers.js";
import { makeGrip, makePlane, makeRows, nameGrip, shape } from "./view.js";

const STEP = 0.1; // per arrow key; five times that with Shift
const TURNS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const HIDDEN = "attn-qkv-none";

class AttentionPlane {
  constructor(model, el) {
    this.model = model;
    this.words = model.get("words");
    this.askers = model.get("askers");
    [this.edge, this.far] = model.get("edges");
    this.makePlanes(model.get("v")[0].length === 2, model.get("outputs"));
    this.makeRows();
    this.product = h("p", { className: "attn-readout" });
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
    this.who = select("query of", this.askers, (n) => this.tell({ query: n }));
    this.divide = h("button", { type: "button", className: "attn-qkv-switch",
      onclick: () => this.tell({ root: !model.get("root") }) }, "Divide by √2");
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
  }

  get given() {
    return Object.fromEntries(["q", "k", "v", "query", "root"].map((name) => [name, this.model.get(name)]));
  }

  makePlanes(two, outputs) {
    const each = (look) => this.words.map(() => shape(look));
    this.asked = shape("query");
    this.others = this.askers.map(() => shape("other"));
    this.ray = shape("ray");
    [this.keys, this.drops, this.shadows] = ["key", "drop", "shadow"].map(each);
    this.plane = makePlane(this.edge,
      [this.ray, ...this.drops, ...this.others, ...this.keys, ...this.shadows, this.asked]);
    this.grips = { k: this.words.map(() => makeGrip(this.plane, "key")), q: [makeGrip(this.plane, "query")] };
    if (two) {
      [this.values, this.pieces] = ["value", "piece"].map(each);
      this.chain = shape("chain");
      this.sum = shape("sum");
      this.second = makePlane(this.far, [...this.values, ...this.pieces, this.chain, this.sum], outputs);
      this.grips.v = this.words.map(() => makeGrip(this.second, "value"));
    }
    for (const [kind, all] of Object.entries(this.grips)) all.forEach(({ node }, n) => this.listen(node, kind, n));
  }

  makeRows() {
    const outputs = this.model.get("outputs"), wide = this.model.get("v")[0].length;
    const names = outputs.length ? outputs : Array.from({ length: wide }, (_, m) => `number ${m + 1}`);
    this.scores = makeRows("scores", ["key of", "q · k", "score", "weight"], this.words, false);
    this.out = makeRows("out", ["output", ""], names, true);
  }

  layOut(title) {
    const legend = (...text) => h("p", { className: "attn-legend" }, ...text);
    const role = (name, text) => h("b", { className: `attn-qkv-${name}` }, text);
    this.outLegend = h("span", {});
    const shadows = [legend("Drag the ", role("query", "query"), " (diamond, “?”) or a ", role("key", "key"),
      " (circle); pale: the other queries. The dotted line is the query's line. From each key a dashed line at a right "
      + "angle to this line cuts off the key's ",
      role("weight", "shadow"), ". The longer the shadow, the larger q · k; behind the origin q · k is negative."),
    this.product, this.scores.node];
    const sums = [legend(this.outLegend, "Each ", role("value", "value"), ", times its weight, goes into the ",
      role("state", "output"), this.second ? ": the thick pieces, head to tail." : "."), this.out.node];
    const sides = (plane, ...parts) => h("div", { className: "attn-qkv-sides" }, plane.node, h("div", {}, ...parts));
    return h("div", { className: "attn attn-qkv", role: "group", "aria-label": title || "Plane of queries and keys" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []),
      h("div", { className: "attn-row" }, this.who.node, this.divide),
      ...(this.second ? [sides(this.plane, ...shadows), sides(this.second, ...sums)]
        : [sides(this.plane, ...shadows, ...sums)]),
      this.heard, this.state.bar);
  }

  // Lets the reader drag a vector by its grip, or move it with the arrow keys.
  listen(node, kind, n) {
    const plane = kind === "v" ? this.second : this.plane;
    const at = () => (kind === "q" ? this.model.get("query") : n);
    let from = null; // from the pointer to the tip when the drag began
    node.addEventListener("focus", () => kind === "k" && this.model.get("key") !== n && put(this.model, { key: n }));
    node.addEventListener("pointerdown", (event) => {
      node.setPointerCapture(event.pointerId);
      const [x, y] = plane.pointAt(event), [u, v] = this.model.get(kind)[at()];
      from = [u - x, v - y];
    });
    node.addEventListener("pointermove", (event) => {
      if (!from || !event.buttons) return;
      const shown = (part) => Math.round(100 * part) / 100; // a drag sets what is displayed, two decimals
      this.move(kind, at(), plane.pointAt(event).map((part, side) => shown(part + from[side])));
    });
    const release = () => from && ((from = null), this.say());
    for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, release);
    node.addEventListener("keydown", (event) => {
      const turn = TURNS[event.key], step = STEP * (event.shiftKey ? 5 : 1);
      if (!turn || isTheirs(event)) return;
      event.preventDefault();
      this.move(kind, at(), this.model.get(kind)[at()].map((part, side) => part + step * turn[side]));
      this.say();
    });
  }

  move(kind, n, to) {
    const edge = kind === "v" ? this.far : this.edge, old = this.model.get(kind);
    put(this.model, { [kind]: swap(old, n, kept(to, edge)), ...(kind === "k" ? { key: n } : {}) });
  }

  tell(traits) {
    put(this.model, traits);
    this.say();
  }

  say() {
    this.draw();
    const { weights, out } = compute(this.given), shares = this.words.map((word, j) => `${word} ${format(weights[j])}`);
    this.heard.textContent = `${this.product.textContent}. Weights: ${shares.join(", ")}. Output: ${point(out)}`;
  }

  read() {
    const { q, k, v, query, root } = this.given;
    const key = [this.model.get("key")];
    return { q: q.flat(), k: k.flat(), v: v.flat(), query: [query], key, root: [Number(root)] };
  }

  restore({ q, k, v, query: [query], key: [key], root: [root] }) {
    const { model } = this;
    put(model, {
      q: reshaped(q, model.get("q"), this.edge), k: reshaped(k, model.get("k"), this.edge),
      v: reshaped(v, model.get("v"), this.far), root: root > 0,
      query: within(Math.trunc(query), 0, this.askers.length - 1),
      key: within(Math.trunc(key), -1, this.words.length - 1),
    });
  }

  draw() {
    const { given } = this, { query, root } = given, all = compute(given), { weights } = all;
    const chosen = this.model.get("key"), j = chosen < 0 ? weights.indexOf(Math.max(...weights)) : chosen;
    this.who.list.selectedIndex = query;
    this.divide.setAttribute("aria-pressed", String(root));
    this.drawKeys(given, all, j);
    if (this.second) this.drawValues(given, all);
    const [numbers, lengths] = productWritten(given, j, all);
    this.product.replaceChildren(h("b", { className: "attn-qkv-query" }, "q"), " of “", this.askers[query], "” · ",
      h("b", { className: "attn-qkv-key" }, "k"), " of “", this.words[j],
      `” = ${numbers}, and also ${lengths} (computed with all decimals)`);
    this.words.forEach((_, n) => this.scores.draw(n, [all.products[n], all.scores[n]], weights[n], format(weights[n])));
    this.scores.head.children[2].textContent = root ? "/ √2" : "score";
    this.scores.mark(j);
    all.out.forEach((x, m) => this.out.draw(m, [], x / this.far, written(x)));
    this.outLegend.textContent = `What “${this.askers[query]}” reads. `;
  }

  drawKeys({ q, k, query }, { weights, feet }, j) {
    const { plane } = this;
    plane.through(this.ray, q[query]);
    plane.arrow(this.asked, q[query]);
    this.others.forEach((path, n) => {
      path.classList.toggle(HIDDEN, n === query);
      plane.arrow(path, q[n]);
    });
    k.forEach((key, n) => {
      plane.arrow(this.keys[n], key);
      plane.line(this.drops[n], key, feet[n]);
      plane.line(this.shadows[n], [0, 0], feet[n]);
      this.shadows[n].classList.toggle(HIDDEN, n !== j);
      this.drops[n].classList.toggle("attn-qkv-chosen", n === j);
      this.keys[n].style.strokeWidth = `${1.5 + 3.5 * weights[n]}px`;
      nameGrip(this.grips.k[n], `key of “${this.words[n]}”`, key);
    });
    nameGrip(this.grips.q[0], `query of “${this.askers[query]}”`, q[query]);
    plane.label([...k.map((vector, n) => ({ ...this.grips.k[n], vector, text: this.words[n] })),
      { ...this.grips.q[0], vector: q[query], text: `${this.askers[query]}?` }]);
  }

  drawValues({ v }, { parts, out }) {
    const { second } = this, ends = [[0, 0]];
    for (const [x, y] of parts) ends.push([ends.at(-1)[0] + x, ends.at(-1)[1] + y]);
    v.forEach((value, n) => {
      second.arrow(this.values[n], value);
      second.line(this.pieces[n], [0, 0], parts[n]);
      nameGrip(this.grips.v[n], `value of “${this.words[n]}”`, value);
    });
    second.line(this.chain, ...ends);
    second.arrow(this.sum, out);
    second.label(v.map((vector, n) => ({ ...this.grips.v[n], vector, text: this.words[n] })));
  }
}

function render({ model, el }) {
  const widget = new AttentionPlane(model, el), { root, state } = widget, ask = onceAFrame(() => widget.draw());
  const again = (rebuild) => rebuild();
  const changes = {
    ...Object.fromEntries(["q", "k", "v", "query", "key", "root"].map((name) => [name, ask])),
    words: again, askers: again, outputs: again, edges: again,
  };
  return live({ model, el, root, state, ask, changes, render });
}

export default { render };
