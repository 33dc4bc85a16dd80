// The parts of PositionExplorer on the page: clocks, the picture of all vectors, one wave, inner products.
import { css, format } from "../shared/math.js";
import { axis, curve, dot, move, plot, trace } from "../shared/plot.js";
import { BLUE, ORANGE, pixels, products } from "../shared/positions.js";
import { h, svg } from "../shared/ui.js";
import { apart, binary, clockPairs, height, longWritten, wavePoints } from "./numbers.js";

const minus = (text) => String(text).replace("-", "−");

// Clock hands of some pairs. `choose` receives the pair of a pressed clock.
export function makeClocks(size, choose) {
  const clocks = clockPairs(size).map((pair) => {
    const hand = svg("path", { d: "M0 0H0.9M0.68 -0.14L0.9 0L0.68 0.14" }), numbers = h("span", {}, " ");
    const face = svg("svg", { viewBox: "-1.1 -1.1 2.2 2.2" }, svg("circle", { r: 1 }), hand);
    const node = h("div", { className: "attn-positions-clock", onclick: () => choose(pair) },
      face, h("b", {}, `hand ${pair}`), numbers);
    return { pair, node, hand, text: numbers.firstChild };
  });
  const node = h("div", { className: "attn-positions-clocks", "aria-hidden": "true" },
    ...clocks.map((clock) => clock.node));

  // `angle(pair)` is how far a hand has turned, in radians; `vector` is the vector of the position.
  function draw(vector, angle, chosen) {
    for (const clock of clocks) {
      const [sine, cosine] = vector.subarray(2 * clock.pair);
      clock.hand.setAttribute("transform", `rotate(${((-angle(clock.pair) * 180) / Math.PI).toFixed(2)})`);
      clock.text.data = [sine, cosine].map((value) => minus(format(value, 2))).join("\n");
      clock.node.classList.toggle("attn-positions-mine", clock.pair === chosen);
    }
  }
  return { node, draw };
}

// All vectors as one picture, with frames around the chosen position and pair.
export function makePicture(n, size) {
  const canvas = h("canvas", { width: n, height: size, "aria-hidden": "true" });
  const column = h("i", { className: "attn-positions-column" }), row = h("i", { className: "attn-positions-row" });
  const node = h("div", { className: "attn-picture", "aria-hidden": "true" }, canvas, row, column);
  const paint = (vectors) =>
    canvas.getContext("2d").putImageData(new ImageData(pixels(vectors, n), n), 0, 0);
  function draw(position, pair) {
    Object.assign(column.style, { left: `${(100 * position) / n}%`, width: `${100 / n}%` });
    Object.assign(row.style, { top: `${(200 * pair) / size}%`, height: `${200 / size}%` });
  }
  return { node, paint, draw };
}

export function colourKey() {
  const key = h("i", { className: "attn-key" });
  key.style.background = `linear-gradient(to right, ${css(ORANGE)}, transparent, ${css(BLUE)})`;
  return key;
}

// Sine and cosine of the chosen pair over all n positions.
export function makeWaves(n) {
  const sine = curve("attn-sine"), cosine = curve("attn-cosine"), middle = curve("attn-zero");
  const here = curve("attn-faint"), sineAt = dot("attn-sine"), cosineAt = dot("attn-cosine");
  const node = plot(middle, here, sine, cosine);
  node.append(sineAt, cosineAt);
  Object.assign(node.dataset, { high: "1", low: "−1" });
  trace(middle, [[0, 0.5], [1, 0.5]]);

  function draw(position, turn, [sineHere, cosineHere]) {
    const x = (position + 0.5) / n;
    trace(sine, wavePoints(n, turn, Math.sin));
    trace(cosine, wavePoints(n, turn, Math.cos));
    trace(here, [[x, 0], [x, 1]]);
    move(sineAt, x, 0.5 + sineHere / 2);
    move(cosineAt, x, 0.5 + cosineHere / 2);
  }
  return { node, draw };
}

// Inner products by distance: of the chosen position with all others, and of position 0, on whose curve all lie.
export function makeProducts(n, size) {
  const every = curve("attn-faint"), mine = curve("attn-mine"), zero = curve("attn-zero"), top = dot("");
  const node = plot(zero, every, mine);
  const labels = [-1, -0.5, 0, 0.5, 1].map((x) => Math.trunc(x * (n - 1)));
  const below = axis(labels.map((x) => [apart(x, n), x > 0 ? `+${x}` : minus(x)]));
  let low; // the least of all inner products, at the bottom
  node.append(top);

  function drawAll(vectors) {
    const first = products(vectors, n, 0);
    low = Math.min(0, ...first);
    Object.assign(node.dataset, { high: size / 2, low: format(low, 0) });
    const distances = Array.from({ length: 2 * n - 1 }, (_, x) => x - n + 1);
    trace(every, distances.map((x) => [apart(x, n), height(first[Math.abs(x)], low, size)]));
    trace(zero, [[0, height(0, low, size)], [1, height(0, low, size)]]);
  }
  function draw(position, values) {
    trace(mine, Array.from(values, (value, j) => [apart(j - position, n), height(value, low, size)]));
    move(top, apart(0, n), height(values[position], low, size));
  }
  return { node, below, drawAll, draw };
}

// A position in binary, with the digits that differ from the position before it in bold.
export function binaryLine(position, n) {
  const { same, changed } = binary(position, n);
  return [`Position ${position} in binary: ${same}`, h("b", {}, changed)];
}

export const pairLine = (pair) => [
  `Hand ${pair}: `, h("b", { className: "attn-sine" }, "sine"), ` (solid) is dimension ${2 * pair}, `,
  h("b", { className: "attn-cosine" }, "cosine"), ` (dashed) dimension ${2 * pair + 1}.`,
];

export const waveLine = (position, period, sine, cosine) => [
  "Wavelength ", h("b", {}, `${longWritten(period)} positions`), ` · at position ${position}: sine `,
  h("b", {}, sine), ", cosine ", h("b", {}, cosine),
];

export function productLine(position, values) {
  const far = [0, 1, 10].map((distance) => [distance, values[position + distance] ?? values[position - distance]]);
  const itself = ["p", h("sub", {}, position), " · p", h("sub", {}, position), " = "];
  return far.filter(([, value]) => value !== undefined).flatMap(([distance, value]) =>
    [...(distance ? [` · ${distance} away `] : itself), h("b", {}, format(value, 2))]);
}
