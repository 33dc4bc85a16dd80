// PositionExplorer: sinusoidal position vectors as clock hands and as a picture, one wave, and inner products.
import { css, format, grouped, within } from "../shared/math.js";
import { playing } from "../shared/play.js";
import { axis, curve, dot, follow, move, plot, slider, trace } from "../shared/plot.js";
import {
  BLUE, ORANGE, fromBaseSlider, pixels, products, sinusoidal, speed, toBaseSlider, wavelength,
} from "../shared/positions.js";
import { h, live, onceAFrame, put, stateControls, svg } from "../shared/ui.js";

const POINTS = 600; // of a drawn wave
const HANDS = 8, PACE = 450; // at most so many clocks; milliseconds a position
const whole = (x, count) => within(Math.trunc(x), 0, count - 1);
const long = (x) => (x < 1000 ? format(x, 1) : grouped(Math.round(x)));

function render({ model, el }) {
  const size = model.get("d_model"), n = model.get("max_len"), title = model.get("title");
  let made, vectors, low; // the base that `vectors` and the picture were made for; the least inner product

  // ---- elements
  const go = (i) => {
    play.stop();
    put(model, { position: i });
  };
  const play = playing("Play", PACE, () => {
    const i = model.get("position");
    put(model, { position: i < n - 1 ? i + 1 : 0 });
    return i !== n - 2;
  });
  const position = slider("position i", { min: 0, max: n - 1, step: 1 }, go);
  const pair = slider("pair m", { min: 0, max: size / 2 - 1, step: 1 }, (m) => put(model, { pair: m }));
  const base = slider("base", { min: 0, max: 1, step: 0.01 }, (x) => put(model, { base: fromBaseSlider(x) }));
  const many = Math.min(HANDS, size / 2);
  const clocks = Array.from({ length: many }, (_, c) => {
    const m = Math.round((c * (size / 2 - 1)) / Math.max(1, many - 1));
    const hand = svg("path", { d: "M0 0V-0.9M-0.14 -0.68L0 -0.9L0.14 -0.68" }), numbers = h("span", {}, " ");
    const face = svg("svg", { viewBox: "-1.1 -1.1 2.2 2.2" }, svg("circle", { r: 1 }), hand);
    const node = h("div", { className: "attn-positions-clock", onclick: () => put(model, { pair: m }) },
      face, h("b", {}, `pair ${m}`), numbers);
    return { m, node, hand, numbers: numbers.firstChild };
  });
  const bits = h("p", { className: "attn-legend" });
  const canvas = h("canvas", { width: n, height: size, "aria-hidden": "true" });
  const column = h("i", { className: "attn-positions-column" }), row = h("i", { className: "attn-positions-row" });
  const picture = h("div", { className: "attn-picture", "aria-hidden": "true" }, canvas, row, column);
  const key = h("i", { className: "attn-key" });
  key.style.background = `linear-gradient(to right, ${css(ORANGE)}, transparent, ${css(BLUE)})`;
  const sine = curve("attn-sine"), cosine = curve("attn-cosine"), middle = curve("attn-zero");
  const here = curve("attn-faint"), sineAt = dot("attn-sine"), cosineAt = dot("attn-cosine");
  const waves = plot(middle, here, sine, cosine);
  waves.append(sineAt, cosineAt);
  Object.assign(waves.dataset, { high: "1", low: "−1" });
  trace(middle, [[0, 0.5], [1, 0.5]]);
  const every = curve("attn-faint"), mine = curve("attn-mine"), zero = curve("attn-zero"), top = dot("");
  const distances = plot(zero, every, mine);
  distances.append(top);
  const pairText = h("p", { className: "attn-legend" }), waveText = h("p", { className: "attn-readout" });
  const productText = h("p", { className: "attn-readout" });
  const along = [0, 1 / 3, 2 / 3, 1].map((x) => Math.round(x * (n - 1)));
  const apart = [-1, -0.5, 0, 0.5, 1].map((x) => Math.trunc(x * (n - 1)));
  const state = stateControls(el, model.get("name"),
    () => ({ position: [model.get("position")], pair: [model.get("pair")], base: [model.get("base")] }),
    ({ position: [i], pair: [m], base: [b] }) => {
      play.stop();
      put(model, { position: whole(i, n), pair: whole(m, size / 2), base: Math.max(1, b) });
    });
  const root = h("div", {
    className: "attn attn-positions", role: "group", "aria-label": title || "Sinusoidal positions",
  }, ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    position.node, h("div", { className: "attn-row" }, play.node, bits),
    h("div", { className: "attn-positions-clocks", "aria-hidden": "true" }, ...clocks.map(({ node }) => node)),
    h("p", { className: "attn-legend" }, "Below each hand: its sine (how far right), its cosine (how far up)."),
    pair.node, base.node, h("p", { className: "attn-legend" },
      `Each column is the vector of one position, dimension 0 on top, ${size - 1} below. −1 `, key, " 1"),
    picture, axis(along.map((i) => [i / (n - 1), i === n - 1 ? `position ${i}` : String(i)])),
    pairText, waves, waveText,
    h("p", { className: "attn-legend" }, "Inner product p", h("sub", {}, "i"), " · p", h("sub", {}, "j"),
      " by distance j − i. Thick: from the chosen i; thin: from any other."),
    distances, axis(apart.map((x) => [place(x), x > 0 ? `+${x}` : String(x).replace("-", "−")])),
    productText, state.bar);

  // Where things lie, as fractions of a plot: positions as columns of the picture, distances from end to end.
  function place(distance) {
    return 0.5 + distance / (2 * (n - 1));
  }
  const height = (product) => (product - low) / (size / 2 - low);

  follow(picture, (x, y) => (go(whole(x * n, n)), put(model, { pair: whole((y * size) / 2, size / 2) })));
  follow(waves, (x) => go(whole(x * n, n)));

  // ---- drawing
  function make() {
    made = model.get("base");
    vectors = sinusoidal(n, size, made);
    canvas.getContext("2d").putImageData(new ImageData(pixels(vectors, n), n), 0, 0);
    const first = products(vectors, n, 0);
    low = Math.min(0, ...first);
    Object.assign(distances.dataset, { high: size / 2, low: format(low, 0) });
    const all = Array.from({ length: 2 * n - 1 }, (_, x) => x - n + 1);
    trace(every, all.map((distance) => [place(distance), height(first[Math.abs(distance)])]));
    trace(zero, [[0, height(0)], [1, height(0)]]);
  }

  function draw() {
    if (made !== model.get("base")) make();
    const i = model.get("position"), m = model.get("pair");
    const turn = speed(m, size, made), period = wavelength(m, size, made);
    const at = vectors.subarray(i * size + 2 * m), x = (i + 0.5) / n;
    const [s, c] = [at[0], at[1]].map((value) => format(value));
    position.set(i, String(i), `${i}, sine ${s}, cosine ${c}`);
    for (const { m: own, node, hand, numbers } of clocks) {
      const angle = i * speed(own, size, made), [right, up] = vectors.subarray(i * size + 2 * own);
      hand.setAttribute("transform", `rotate(${((angle * 180) / Math.PI).toFixed(2)})`);
      numbers.data = [right, up].map((value) => format(value, 2).replace("-", "−")).join("\n");
      node.classList.toggle("attn-positions-mine", own === m);
    }
    const binary = i.toString(2).padStart((n - 1).toString(2).length, "0"), flipped = (i ^ (i - 1)).toString(2).length;
    const same = i ? Math.max(0, binary.length - flipped) : binary.length;
    bits.replaceChildren(`Position ${i} in binary: ${binary.slice(0, same)}`, h("b", {}, binary.slice(same)));
    pair.set(m, String(m), `${m}, wavelength ${long(period)} positions`);
    base.set(toBaseSlider(made), Number.isInteger(made) ? grouped(made) : String(made));
    Object.assign(column.style, { left: `${(100 * i) / n}%`, width: `${100 / n}%` });
    Object.assign(row.style, { top: `${(200 * m) / size}%`, height: `${200 / size}%` });
    const steps = Array.from({ length: POINTS + 1 }, (_, k) => [k / POINTS, ((k / POINTS) * n - 0.5) * turn]);
    trace(sine, steps.map(([at, angle]) => [at, 0.5 + Math.sin(angle) / 2]));
    trace(cosine, steps.map(([at, angle]) => [at, 0.5 + Math.cos(angle) / 2]));
    trace(here, [[x, 0], [x, 1]]);
    move(sineAt, x, 0.5 + at[0] / 2);
    move(cosineAt, x, 0.5 + at[1] / 2);
    pairText.replaceChildren(
      `Pair ${m}: `, h("b", { className: "attn-sine" }, "sine"), ` (solid) is dimension ${2 * m}, `,
      h("b", { className: "attn-cosine" }, "cosine"), ` (dashed) dimension ${2 * m + 1}.`);
    waveText.replaceChildren("Wavelength ", h("b", {}, `${long(period)} positions`), ` · at position ${i}: sine `,
      h("b", {}, s), ", cosine ", h("b", {}, c));
    const all = products(vectors, n, i);
    trace(mine, Array.from(all, (value, j) => [place(j - i), height(value)]));
    move(top, place(0), height(all[i]));
    const far = [0, 1, 10].map((distance) => [distance, all[i + distance] ?? all[i - distance]]);
    const itself = ["p", h("sub", {}, i), " · p", h("sub", {}, i), " = "];
    productText.replaceChildren(...far.filter(([, value]) => value !== undefined).flatMap(([distance, value]) =>
      [...(distance ? [` · ${distance} away `] : itself), h("b", {}, format(value, 2))]));
  }
  const ask = onceAFrame(draw);

  // ---- life
  return live({ model, el, root, state, ask, changes: { position: ask, pair: ask, base: ask } });
}

export default { render };
