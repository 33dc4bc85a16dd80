// LossSurface: losses over a plane through trained parameters, as surfaces that turn together.
import { readTheme } from "../shared/canvas.js";
import { format, within } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { h, isTheirs, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { SHADES, paintSurface } from "./mesh.js";
import { along, around, camera, nearest, scaleOf, unpackHalf } from "./surfaces.js";

const STEP = 5, SPEED = 0.5; // degrees per arrow key, and per pixel of a drag
const LIGHTEST = 28; // index of the first weight colour that differs enough from the page
const written = (loss) => format(loss, loss < 100 ? 3 : 0);

// ---- the surfaces: their losses, points per side, one scale, and the `middle` point, the trained parameters
function readSurfaces(model) {
  const losses = unpackHalf(model.get("surfaces"));
  const n = Math.round(Math.sqrt(losses.length / model.get("names").length));
  return { losses, n, middle: [(n - 1) / 2, (n - 1) / 2], scale: scaleOf(losses, model.get("log")) };
}
const lossAt = ({ losses, n }, k, [i, j]) => losses[(k * n + i) * n + j];
const heightOn = (surfaces, k) => (i, j) => surfaces.scale.height(lossAt(surfaces, k, [i, j]));

// ---- elements
function build(model, { bar }) {
  const names = model.get("names"), title = model.get("title");
  const canvases = names.map(() => h("canvas", { "aria-hidden": "true" }));
  const pictures = h("div", {
    className: "attn-surfaces", tabIndex: 0, role: "application", "aria-roledescription": "loss surface",
    "aria-label": `${title || "Loss surfaces"}: ${names.join(", ")}. Arrow keys turn and tilt. `
      + "The losses follow as text.",
  }, ...canvases.map((canvas, k) => h("div", { className: "attn-surface" }, h("p", {}, names[k]), canvas)));
  const turn = slider("turn", { min: -180, max: 180, step: 1 }, (to) => put(model, { azimuth: to }));
  const tilt = slider("tilt", { min: 0, max: 90, step: 1 }, (to) => put(model, { elevation: to }));
  const log = h("input", { type: "checkbox", onchange: () => put(model, { log: log.checked }) });
  const low = h("span"), high = h("span"), gradient = h("i", { "aria-hidden": "true" });
  const readouts = names.map(() => h("p", { className: "attn-readout" }));
  const point = h("p", { className: "attn-legend" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const root = h("div", { className: "attn attn-landscape", role: "group", "aria-label": title || "Loss surfaces" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, h("span", { className: "attn-ramp" }, "loss ", low, gradient, high),
      h("label", { className: "attn-field attn-check" }, log, "logarithmic")),
    pictures, turn.node, tilt.node, point, ...readouts, heard, bar);
  return { root, pictures, canvases, turn, tilt, log, low, high, gradient, readouts, point, heard };
}

const linkedState = (model, el) => stateControls(el, model.get("name"),
  () => ({ azimuth: [model.get("azimuth")], elevation: [model.get("elevation")], log: [Number(model.get("log"))] }),
  ({ azimuth: [a], elevation: [e], log: [on] }) => put(model, {
    azimuth: within(a, -180, 180), elevation: within(e, 0, 90), log: on > 0,
  }));

// ---- keyboard and pointer
const turnTo = (model, a, e) => put(model, { azimuth: around(Math.round(a)), elevation: within(Math.round(e), 0, 90) });

function turnByKeys(model, { pictures, heard }) {
  pictures.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (!by || isTheirs(event)) return;
    event.preventDefault();
    turnTo(model, model.get("azimuth") + by[0], model.get("elevation") + by[1]);
    heard.textContent = `turned ${model.get("azimuth")}°, tilted ${model.get("elevation")}°`;
  });
}

// A drag turns the surfaces; otherwise `show` receives the pointer's events, and null when the pointer leaves.
function turnByPointer(model, canvas, show) {
  let from = null; // where a drag began, and the angles then
  canvas.addEventListener("pointerdown", (event) => {
    from = [event.clientX, event.clientY, model.get("azimuth"), model.get("elevation")];
    canvas.setPointerCapture(event.pointerId);
    show(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!event.buttons) return show(event);
    if (!from) return;
    const [x, y, a, e] = from, upwards = event.pointerType === "touch" ? 0 : event.clientY - y;
    turnTo(model, a + SPEED * (event.clientX - x), e + SPEED * upwards); // a vertical swipe scrolls
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(null));
}

function pointUnder(model, canvas, surfaces, k, event) {
  const box = canvas.getBoundingClientRect();
  const look = camera(box.width, model.get("azimuth"), model.get("elevation"));
  return nearest(look, surfaces.n, heightOn(surfaces, k), [event.clientX - box.left, event.clientY - box.top]);
}

// ---- drawing
function themeOf(root) {
  const { colours, page, line, mark, ink } = readTheme(root);
  const shades = Array.from({ length: SHADES }, (_, shade) => colours[LIGHTEST + shade].css);
  return { page, line, mark, ink, shades, mesh: `color-mix(in srgb, ${ink} 45%, transparent)` };
}

function drawReadouts(model, { readouts, point }, { surfaces, hover }) {
  const names = model.get("names"), extent = model.get("extent"), { losses, n, middle } = surfaces;
  names.forEach((name, k) => {
    const own = losses.subarray(k * n * n, (k + 1) * n * n);
    readouts[k].replaceChildren(
      `${name}: loss `, h("b", {}, written(lossAt(surfaces, k, middle))), " at the trained parameters, ",
      h("b", {}, written(own.reduce((sum, x) => sum + x, 0) / own.length)), " on average, ",
      h("b", {}, written(own.reduce((most, x) => Math.max(most, x)))), " at most");
  });
  const place = hover && hover.map((i) => format(extent * along(i, n), 2).replace("-", "−")).join(", ");
  point.textContent = hover
    ? `At ${place}: ` + names.map((name, k) => `${name} ${written(lossAt(surfaces, k, hover))}`).join(" · ")
    : `Dot: the trained parameters; from there up to ${extent} along two directions. `
      + "One scale for all, losses kept within 0.05 %. Drag to turn.";
}

function drawSurfaces(model, { root, pictures, canvases, gradient }, state) {
  if (!pictures.clientWidth) return; // not attached yet, or hidden: painted once it has a size
  if (!state.theme) {
    state.theme = themeOf(root);
    const shades = state.theme.shades.filter((_, shade) => shade % 16 === 0);
    gradient.style.background = `linear-gradient(to right, ${shades})`;
  }
  const { surfaces, hover, theme } = state, azimuth = model.get("azimuth"), elevation = model.get("elevation");
  const dots = [[surfaces.middle, theme.mark, 5], ...(hover ? [[hover, theme.ink, 4]] : [])];
  canvases.forEach((canvas, k) =>
    paintSurface(canvas, { n: surfaces.n, height: heightOn(surfaces, k), azimuth, elevation, dots, theme }));
}

function render({ model, el }) {
  const state = { surfaces: readSurfaces(model), theme: null, hover: null }; // hover: the point under the pointer
  const link = linkedState(model, el), parts = build(model, link);
  const ask = onceAFrame(() => {
    const a = model.get("azimuth"), e = model.get("elevation"), { low, high } = state.surfaces.scale;
    parts.turn.set(a, `${format(a, 0)}°`);
    parts.tilt.set(e, `${format(e, 0)}°`);
    parts.log.checked = model.get("log");
    parts.low.textContent = written(low);
    parts.high.textContent = written(high);
    drawReadouts(model, parts, state);
    drawSurfaces(model, parts, state);
  });
  turnByKeys(model, parts);
  parts.canvases.forEach((canvas, k) => turnByPointer(model, canvas, (event) => {
    state.hover = event && pointUnder(model, canvas, state.surfaces, k, event);
    ask();
  }));
  const changes = {
    azimuth: ask, elevation: ask,
    log: () => { state.surfaces.scale = scaleOf(state.surfaces.losses, model.get("log")); ask(); },
    surfaces: () => { state.surfaces = readSurfaces(model); ask(); },
  };
  const themed = () => { state.theme = null; ask(); };
  return live({ model, el, root: parts.root, state: link, ask, changes, box: parts.pictures, sized: ask, themed });
}

export default { render };
