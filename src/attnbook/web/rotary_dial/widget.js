// RotaryDial: a query and a key in the plane, changed by their positions, and their score by distance.
import MODES from "./modes.json" with { type: "json" };
import { format, within } from "../shared/math.js";
import { playing } from "../shared/play.js";
import { axis, curve, dot, move, plot, slider, trace } from "../shared/plot.js";
import { inner, positioned, spread } from "../shared/positions.js";
import { button, disable, h, isTheirs, live, onceAFrame, put, select, stateControls, svg } from "../shared/ui.js";

const LAST = 64, LONGEST = 2, EDGE = 3.05; // positions 0..64; the longest q or k; how far the plane goes
const PACE = 450; // milliseconds a position
const lower = (n) => String(n).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const signed = (text) => (text.startsWith("-") ? `− ${text.slice(1)}` : `+ ${text}`);
const degrees = (angle) => `${format((angle * 180) / Math.PI, 0)}°`;

function render({ model, el }) {
  const title = model.get("title"), words = model.get("words");
  const named = (n) => "qk"[n] + (words[n] && ` (${words[n]})`);
  const vectors = () => [model.get("q"), model.get("k")];
  const positions = () => [model.get("i"), model.get("j")];

  // ---- elements
  const shapes = ["q", "k"].map((name) => ({
    orbit: svg("circle", { class: "attn-orbit" }),
    start: svg("path", { class: `attn-arrow attn-start attn-${name}` }),
    now: svg("path", { class: `attn-arrow attn-${name}` }),
    label: svg("text", { class: `attn-name attn-${name}` }),
    handle: h("button", { type: "button", className: `attn-handle attn-${name}` }, name),
  }));
  const angle = svg("path", { class: "attn-angle" });
  const axes = svg("path", { class: "attn-cross", d: `M${-EDGE} 0H${EDGE}M0 ${-EDGE}V${EDGE}` });
  const plane = h("div", { className: "attn-plane" },
    svg("svg", { viewBox: `${-EDGE} ${-EDGE} ${2 * EDGE} ${2 * EDGE}`, "aria-hidden": "true" }, axes, angle,
      ...shapes.flatMap(({ orbit, start, now, label }) => [orbit, start, now, label])),
    ...shapes.map(({ handle }) => handle));
  const mode = select("a position", ["rotates its vector", "is added to its vector"], (n) => tell({ mode: MODES[n] }));
  const places = ["i", "j"].map((name, n) => slider(`${name}, of ${"qk"[n]}`, { min: 0, max: LAST, step: 1 }, (to) => {
    play.stop();
    put(model, { [name]: to });
  }));
  const theta = slider("angle θ", { min: 0, max: 1, step: 0.01 }, (to) => put(model, { theta: to }));
  const together = [1, -1].map((step) => button(step > 0 ? "Move both by one" : "… and back", () => {
    const [i, j] = positions();
    play.stop();
    tell({ i: i + step, j: j + step });
  }));
  const play = playing("Play", PACE, () => {
    const [i, j] = positions(), by = Math.max(i, j) < LAST ? 1 : -Math.min(i, j); // from the end back to the start
    put(model, { i: i + by, j: j + by });
    return by < 0 || Math.max(i, j) + by < LAST;
  });
  const readout = h("p", { className: "attn-readout" }), pairs = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const band = svg("polygon", { class: "attn-band" }), zero = curve("attn-zero"), present = dot("");
  const scores = plot(zero, band);
  scores.append(present);
  trace(zero, [[0, 0.5], [1, 0.5]]);
  const state = stateControls(el, model.get("name"),
    () => ({ q: model.get("q"), k: model.get("k"), i: [model.get("i")], j: [model.get("j")],
      theta: [model.get("theta")], mode: [MODES.indexOf(model.get("mode"))] }),
    ({ q, k, i: [i], j: [j], theta: [angle], mode: [n] }) => {
      play.stop();
      put(model, {
        q: clip(q), k: clip(k), i: within(Math.trunc(i), 0, LAST), j: within(Math.trunc(j), 0, LAST),
        theta: within(angle, 0, Math.PI), mode: MODES[n] ?? MODES[0],
      });
    });
  const root = h("div", { className: "attn attn-dial", role: "group", "aria-label": title || "Rotary positions" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-sides" },
      plane, h("div", {},
        h("p", { className: "attn-legend" },
          `Dashed: ${named(0)} and ${named(1)}, to be dragged. Solid: what their positions make of them.`),
        h("div", { className: "attn-row" }, mode.node), places[0].node, places[1].node, theta.node,
        h("div", { className: "attn-row" }, ...together, play.node), readout)),
    h("p", { className: "attn-legend" }, `Score by distance i − j, from all pairs of positions 0 to ${LAST}`),
    scores,
    axis([-LAST, -LAST / 2, 0, LAST / 2, LAST].map((x) => [along(x), x > 0 ? `+${x}` : String(x).replace("-", "−")])),
    pairs, heard, state.bar);

  // ---- what the reader does
  function clip([x = 0, y = 0]) {
    const length = Math.hypot(x, y);
    return length <= LONGEST ? [x, y] : [x, y].map((part) => Math.trunc((100 * part * LONGEST) / length) / 100);
  }
  const rounded = (vector) => clip(vector.map((part) => Math.round(100 * part) / 100));
  function tell(traits) {
    put(model, traits);
    draw();
    heard.textContent = readout.textContent;
  }
  shapes.forEach(({ handle }, n) => {
    const name = "qk"[n];
    handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
    handle.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      const box = plane.getBoundingClientRect(), scale = (2 * EDGE) / box.width;
      const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((pixels) => pixels * scale - EDGE);
      put(model, { [name]: rounded([x, -y]) });
    });
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (!step || isTheirs(event)) return;
      event.preventDefault();
      tell({ [name]: rounded(model.get(name).map((part, side) => part + step[side])) });
    });
  });

  // ---- drawing
  function along(distance) {
    return 0.5 + distance / (2 * LAST);
  }
  function drawArrow(path, [x, y]) {
    const length = Math.hypot(x, y), size = Math.min(0.2, length / 2);
    const [a, b] = [x, y].map((part) => (size * part) / length || 0);
    const barb = (side) => `M${x} ${-y}L${x - a - 0.5 * side * b} ${-(y - b + 0.5 * side * a)}`;
    path.setAttribute("d", `M0 0L${x} ${-y}${barb(1)}${barb(-1)}`);
  }
  function drawAngle([[x, y], [u, v]]) { // from k to q, the short way round
    const from = Math.atan2(v, u), by = Math.atan2(inner([-v, u], [x, y]), inner([u, v], [x, y]));
    const at = (t) => `${0.45 * Math.cos(from + t)} ${-0.45 * Math.sin(from + t)}`;
    angle.setAttribute("d", `M${at(0)}A0.45 0.45 0 0 ${by > 0 ? 0 : 1} ${at(by)}`);
  }

  function draw() {
    const way = model.get("mode"), turn = model.get("theta"), adds = way === "add";
    const [q, k] = vectors(), [i, j] = positions();
    const now = [positioned(q, i, turn, way), positioned(k, j, turn, way)], score = inner(...now);
    mode.list.selectedIndex = MODES.indexOf(way);
    places.forEach((place, n) => place.set(positions()[n], String(positions()[n])));
    theta.set(turn, `${format(turn, 2)} rad`, `${format(turn, 2)} radians, ${degrees(turn)} a position`);
    disable(together[0], Math.max(i, j) === LAST);
    disable(together[1], Math.min(i, j) === 0);
    play.node.disabled = Math.abs(i - j) === LAST;
    drawAngle(now);
    const apart = Math.sign(inner([-now[1][1], now[1][0]], now[0])) || 1; // labels lie apart, on either side
    const set = (node, attributes) =>
      Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
    shapes.forEach(({ orbit, start, now: arrow, label, handle }, n) => {
      const v = vectors()[n], [x, y] = now[n];
      const out = 0.26 / (Math.hypot(x, y) || 1), aside = n ? -apart * out : apart * out;
      set(orbit, adds ? { cx: v[0], cy: -v[1], r: 1 } : { cx: 0, cy: 0, r: Math.hypot(...v) });
      drawArrow(start, v);
      drawArrow(arrow, now[n]);
      label.textContent = `${"qk"[n]}${lower(positions()[n])} ${words[n]}`.trim();
      const half = words[n] ? 0.08 * label.textContent.length : 0, edge = EDGE - half; // half of its width
      const far = words[n] ? 1.9 : 1; // words stand clear of the handle
      const across = x + x * out * (far + 3 * half) - y * aside;
      set(label, { x: within(across, -edge, edge), y: -y - far * y * out - x * aside });
      move(handle, 0.5 + v[0] / (2 * EDGE), 0.5 + v[1] / (2 * EDGE));
      const here = v.map((part) => format(part, 2)).join(", ");
      handle.setAttribute("aria-label", `${"qk"[n]} at ${here}; arrow keys move it`);
    });
    const bold = h("b", {}, format(score)), two = (number) => format(number, 2);
    if (adds) {
      const waves = [i, j].map((position) => positioned([0, 0], position, turn, way));
      const [pi, pj] = [`p${lower(i)}`, `p${lower(j)}`];
      readout.replaceChildren(`Score (q + ${pi})·(k + ${pj}): q·k ${two(inner(q, k))}`
        + ` + q·${pj} ${two(inner(q, waves[1]))} + ${pi}·k ${two(inner(waves[0], k))}`
        + ` + ${pi}·${pj} ${two(inner(...waves))} = `, bold);
    } else {
      const between = Math.atan2(inner([-k[1], k[0]], q), inner(k, q));
      readout.replaceChildren(`Score |q| |k| cos(φ ${signed(`${i - j}θ`)}): `
        + `${two(Math.hypot(...q))} · ${two(Math.hypot(...k))}`
        + ` · cos(${degrees(between)} ${signed(degrees((i - j) * turn))}) = `, bold);
    }
    const most = vectors().reduce((product, v) => product * (Math.hypot(...v) + (adds ? 1 : 0)), 1) || 1;
    const { low, high } = spread(q, k, turn, way, LAST), height = (value) => 0.5 + value / (2 * most);
    const edge = (values) => Array.from(values, (value, n) => [along(n - LAST), height(value)]);
    trace(band, [...edge(high), ...edge(low).reverse()]);
    move(present, along(i - j), height(score));
    Object.assign(scores.dataset, { high: two(most), low: two(-most).replace("-", "−") });
    const [least, greatest] = [low, high].map((values) => format(values[i - j + LAST]));
    const many = LAST + 1 - Math.abs(i - j), which = many > 1 ? `All ${many} pairs` : "The one pair";
    pairs.replaceChildren(`${which} with i − j = ${i - j}: `,
      ...(least === greatest ? [many > 1 ? "the same score, " : "score ", h("b", {}, least)]
        : ["scores from ", h("b", {}, least), " to ", h("b", {}, greatest)]));
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = { q: ask, k: ask, i: ask, j: ask, theta: ask, mode: ask };
  return live({ model, el, root, state, ask, changes });
}

export default { render };
