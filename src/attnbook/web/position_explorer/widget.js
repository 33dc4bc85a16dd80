// PositionExplorer: sinusoidal position vectors as clock hands and as a picture, one wave, and inner products.
import { format, grouped, within } from "../shared/math.js";
import { playing } from "../shared/play.js";
import { axis, follow, slider } from "../shared/plot.js";
import { fromBaseSlider, products, sinusoidal, speed, toBaseSlider, wavelength } from "../shared/positions.js";
import { h, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { longWritten } from "./numbers.js";
import {
  binaryLine, colourKey, makeClocks, makePicture, makeProducts, makeWaves, pairLine, productLine, waveLine,
} from "./view.js";

const PACE = 450; // milliseconds per position
const whole = (x, count) => within(Math.trunc(x), 0, count - 1);

class PositionExplorer {
  constructor(model, el) {
    this.model = model;
    this.size = model.get("d_model");
    this.n = model.get("max_len");
    this.base = undefined; // the base that `vectors`, [n x size], were made for
    this.vectors = undefined;
    this.play = playing("Play", PACE, () => this.next());
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.makeParts();
    this.root = this.layOut(model.get("title"));
    follow(this.picture.node, (x, y) => {
      this.go(whole(x * this.n, this.n));
      put(model, { pair: whole((y * this.size) / 2, this.size / 2) });
    });
    follow(this.waves.node, (x) => this.go(whole(x * this.n, this.n)));
  }

  makeParts() {
    const { model, n, size } = this, choosePair = (pair) => put(model, { pair });
    this.sliders = {
      position: slider("position i", { min: 0, max: n - 1, step: 1 }, (i) => this.go(i)),
      pair: slider("hand m", { min: 0, max: size / 2 - 1, step: 1 }, choosePair),
      base: slider("base", { min: 0, max: 1, step: 0.01 }, (x) => put(model, { base: fromBaseSlider(x) })),
    };
    this.clocks = makeClocks(size, choosePair);
    this.picture = makePicture(n, size);
    this.waves = makeWaves(n);
    this.distances = makeProducts(n, size);
    this.text = {
      binary: h("p", { className: "attn-legend" }), pair: h("p", { className: "attn-legend" }),
      wave: h("p", { className: "attn-readout" }), product: h("p", { className: "attn-readout" }),
    };
  }

  layOut(title) {
    const { n, size, sliders, text } = this, legend = (...words) => h("p", { className: "attn-legend" }, ...words);
    const labelled = [0, 1 / 3, 2 / 3, 1].map((x) => Math.round(x * (n - 1)));
    return h("div", { className: "attn attn-positions", role: "group", "aria-label": title || "Sinusoidal positions" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []),
      sliders.position.node, h("div", { className: "attn-row" }, this.play.node, text.binary), this.clocks.node,
      legend("Below each hand: its sine (how far up), its cosine (how far right)."),
      legend("Inner product p", h("sub", {}, "i"), " · p", h("sub", {}, "j"),
        " by distance j − i. Thick: from the chosen i; thin: from any other."),
      this.distances.node, this.distances.below, text.product, sliders.pair.node, sliders.base.node,
      legend(`Each column is the vector of one position, dimension 0 on top, ${size - 1} below. −1 `,
        colourKey(), " 1"),
      this.picture.node, axis(labelled.map((i) => [i / (n - 1), i === n - 1 ? `position ${i}` : String(i)])),
      text.pair, this.waves.node, text.wave, this.state.bar);
  }

  read() {
    return Object.fromEntries(["position", "pair", "base"].map((name) => [name, [this.model.get(name)]]));
  }

  restore({ position: [i], pair: [m], base: [b] }) {
    this.play.stop();
    put(this.model, { position: whole(i, this.n), pair: whole(m, this.size / 2), base: Math.max(1, b) });
  }

  go(position) {
    this.play.stop();
    put(this.model, { position });
  }

  // During play, moves on by one position, from the last back to the first. Returns whether there is more to play.
  next() {
    const i = this.model.get("position");
    put(this.model, { position: i < this.n - 1 ? i + 1 : 0 });
    return i !== this.n - 2;
  }

  // Computes what depends only on the base.
  makeVectors(base) {
    this.base = base;
    this.vectors = sinusoidal(this.n, this.size, base);
    this.picture.paint(this.vectors);
    this.distances.drawAll(this.vectors);
  }

  draw() {
    const { model, n, size, text } = this, base = model.get("base");
    if (this.base !== base) this.makeVectors(base);
    const i = model.get("position"), m = model.get("pair"), period = wavelength(m, size, base);
    const vector = this.vectors.subarray(i * size), values = products(this.vectors, n, i);
    const [sine, cosine] = vector.subarray(2 * m), [s, c] = [sine, cosine].map((value) => format(value));
    this.sliders.position.set(i, String(i), `${i}, sine ${s}, cosine ${c}`);
    this.sliders.pair.set(m, String(m), `${m}, wavelength ${longWritten(period)} positions`);
    this.sliders.base.set(toBaseSlider(base), Number.isInteger(base) ? grouped(base) : String(base));
    this.clocks.draw(vector, (pair) => i * speed(pair, size, base), m);
    this.picture.draw(i, m);
    this.waves.draw(i, speed(m, size, base), [sine, cosine]);
    this.distances.draw(i, values);
    text.binary.replaceChildren(...binaryLine(i, n));
    text.pair.replaceChildren(...pairLine(m));
    text.wave.replaceChildren(...waveLine(i, period, s, c));
    text.product.replaceChildren(...productLine(i, values));
  }
}

function render({ model, el }) {
  const explorer = new PositionExplorer(model, el), ask = onceAFrame(() => explorer.draw());
  const { root, state } = explorer, changes = { position: ask, pair: ask, base: ask };
  return live({ model, el, root, state, ask, changes });
}

export default { render };
