// RotaryDial: a query and a key in the plane, changed by their positions, and their score by distance.
import MODES from "./modes.json" with { type: "json" };
import { format, within } from "../shared/math.js";
import { playing } from "../shared/play.js";
import { slider } from "../shared/plot.js";
import { inner, positioned, spread } from "../shared/positions.js";
import { button, disable, h, isTheirs, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";
import { clip, degrees, LAST, largestScore, rounded, scoreWritten } from "./numbers.js";
import { makePlane, makeScores } from "./view.js";

const PACE = 450; // milliseconds per position
const STEPS = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };

// The scores of all pairs of positions at the current distance.
function pairsLine({ low, high }, distance) {
  const [least, greatest] = [low, high].map((values) => format(values[distance + LAST]));
  const many = LAST + 1 - Math.abs(distance), which = many > 1 ? `All ${many} pairs` : "The one pair";
  const same = [many > 1 ? "the same score, " : "score ", h("b", {}, least)];
  return [`${which} with i − j = ${distance}: `,
    ...(least === greatest ? same : ["scores from ", h("b", {}, least), " to ", h("b", {}, greatest)])];
}

class RotaryDial {
  constructor(model, el) {
    this.model = model;
    this.plane = makePlane(model.get("words"));
    this.scores = makeScores();
    this.readout = h("p", { className: "attn-readout" });
    this.pairs = h("p", { className: "attn-readout" });
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
    this.play = playing("Play", PACE, () => this.next());
    this.makeControls();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"), model.get("words"));
    this.plane.handles.forEach((handle, n) => this.listen(handle, "qk"[n]));
  }

  get positions() {
    return [this.model.get("i"), this.model.get("j")];
  }

  makeControls() {
    const { model } = this, range = { min: 0, max: LAST, step: 1 };
    this.mode = select("a position", ["rotates its vector", "is added to its vector"],
      (n) => this.tell({ mode: MODES[n] }));
    this.places = ["i", "j"].map((name, n) => slider(`${name}, of ${"qk"[n]}`, range, (to) => {
      this.play.stop();
      put(model, { [name]: to });
    }));
    this.theta = slider("angle θ", { min: 0, max: 1, step: 0.01 }, (to) => put(model, { theta: to }));
    this.forth = button("Move both by one", () => this.moveBoth(1));
    this.back = button("… and back", () => this.moveBoth(-1));
  }

  layOut(title, words) {
    const [q, k] = ["q", "k"].map((name, n) => name + (words[n] && ` (${words[n]})`));
    const legend = (text) => h("p", { className: "attn-legend" }, text);
    return h("div", { className: "attn attn-dial", role: "group", "aria-label": title || "Rotary positions" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []),
      h("div", { className: "attn-sides" },
        this.plane.node, h("div", {},
          legend(`Dashed: ${q} and ${k}, to be dragged. Solid: what their positions make of them.`),
          h("div", { className: "attn-row" }, this.mode.node), ...this.places.map(({ node }) => node), this.theta.node,
          h("div", { className: "attn-row" }, this.forth, this.back, this.play.node), this.readout)),
      legend(`Score by distance i − j, from all pairs of positions 0 to ${LAST}`),
      this.scores.node, this.scores.below, this.pairs, this.heard, this.state.bar);
  }

  // Lets the reader drag a vector by its handle, or move it with the arrow keys.
  listen(handle, name) {
    handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
    handle.addEventListener("pointermove", (event) => {
      if (event.buttons) put(this.model, { [name]: rounded(this.plane.pointAt(event)) });
    });
    handle.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step || isTheirs(event)) return;
      event.preventDefault();
      this.tell({ [name]: rounded(this.model.get(name).map((part, side) => part + step[side])) });
    });
  }

  read() {
    const { model } = this;
    return { q: model.get("q"), k: model.get("k"), i: [model.get("i")], j: [model.get("j")],
      theta: [model.get("theta")], mode: [MODES.indexOf(model.get("mode"))] };
  }

  restore({ q, k, i: [i], j: [j], theta: [angle], mode: [n] }) {
    this.play.stop();
    put(this.model, {
      q: clip(q), k: clip(k), i: within(Math.trunc(i), 0, LAST), j: within(Math.trunc(j), 0, LAST),
      theta: within(angle, 0, Math.PI), mode: MODES[n] ?? MODES[0],
    });
  }

  tell(traits) {
    put(this.model, traits);
    this.draw();
    this.heard.textContent = this.readout.textContent;
  }

  moveBoth(step) {
    const [i, j] = this.positions;
    this.play.stop();
    this.tell({ i: i + step, j: j + step });
  }

  // During play, moves both by one position, from the end back to the start. Returns whether there is more to play.
  next() {
    const [i, j] = this.positions, by = Math.max(i, j) < LAST ? 1 : -Math.min(i, j);
    put(this.model, { i: i + by, j: j + by });
    return by < 0 || Math.max(i, j) + by < LAST;
  }

  draw() {
    const { model, positions } = this, [i, j] = positions;
    const [q, k, theta, mode] = ["q", "k", "theta", "mode"].map((name) => model.get(name)), adds = mode === "add";
    const now = [positioned(q, i, theta, mode), positioned(k, j, theta, mode)], score = inner(...now);
    const range = spread(q, k, theta, mode, LAST);
    this.drawControls(i, j, theta, mode);
    this.plane.draw({ given: [q, k], now, positions, adds });
    this.readout.replaceChildren(scoreWritten(q, k, i, j, theta, mode), h("b", {}, format(score)));
    this.scores.draw(range, i - j, score, largestScore([q, k], adds));
    this.pairs.replaceChildren(...pairsLine(range, i - j));
  }

  drawControls(i, j, theta, mode) {
    this.mode.list.selectedIndex = MODES.indexOf(mode);
    this.places.forEach((place, n) => place.set([i, j][n], String([i, j][n])));
    this.theta.set(theta, `${format(theta, 2)} rad`, `${format(theta, 2)} radians, ${degrees(theta)} a position`);
    disable(this.forth, Math.max(i, j) === LAST);
    disable(this.back, Math.min(i, j) === 0);
    this.play.node.disabled = Math.abs(i - j) === LAST;
  }
}

function render({ model, el }) {
  const dial = new RotaryDial(model, el), { root, state } = dial, ask = onceAFrame(() => dial.draw());
  return live({ model, el, root, state, ask, changes: { q: ask, k: ask, i: ask, j: ask, theta: ask, mode: ask } });
}

export default { render };
