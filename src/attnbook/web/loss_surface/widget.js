// LossSurface: losses over a plane through trained parameters, as surfaces that turn together.
import { readTheme } from "../shared/canvas.js";
import { format, within } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { h, isTheirs, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const TALL = 1.2, WIDEST = 1.56; // the height of a surface and half a canvas, half a side of the plane being 1
const STEP = 5, SPEED = 0.5; // degrees: an arrow key, a pixel of a drag
const SHADES = 216, LIGHTEST = 28; // of the colours for weights, leaving out those nearest to the page

// Losses travel as 16-bit floats.
export function unpackHalf(view) {
  return Float64Array.from({ length: view.byteLength / 2 }, (_, i) => {
    const bits = view.getUint16(2 * i, true), exponent = (bits >> 10) & 31, fraction = bits & 1023;
    return (bits >> 15 ? -1 : 1) * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
  });
}

// A point of the plane (x, y in -1..1) and its height 0..1 as seen from far away: to the right, up, how far behind.
export function projected(x, y, z, azimuth, elevation) {
  const [a, e] = [azimuth, elevation].map((degrees) => (degrees * Math.PI) / 180);
  const right = x * Math.cos(a) - y * Math.sin(a), behind = x * Math.sin(a) + y * Math.cos(a), up = (z - 0.5) * TALL;
  return [right, behind * Math.sin(e) + up * Math.cos(e), behind * Math.cos(e) - up * Math.sin(e)];
}

// Loss to height 0..1, one scale for all surfaces.
export function scaleOf(losses, log) {
  const f = log ? Math.log : (x) => x;
  let low = Infinity, high = -Infinity;
  for (const loss of losses) [low, high] = [Math.min(low, loss), Math.max(high, loss)];
  const span = f(high) - f(low) || 1;
  return { low, high, height: (loss) => (f(loss) - f(low)) / span };
}

export const around = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;
const written = (loss) => format(loss, loss < 100 ? 3 : 0);

function render({ model, el }) {
  const names = model.get("names"), title = model.get("title"), extent = model.get("extent");
  let all, n, scale, theme; // the losses, points a side, their scale; `theme` is made when needed
  let hover = null; // the point [i, j] under the pointer
  const unpack = () => {
    all = unpackHalf(model.get("surfaces"));
    n = Math.round(Math.sqrt(all.length / names.length));
    rescale();
  };
  const rescale = () => (scale = scaleOf(all, model.get("log")));
  unpack();
  const loss = (k, i, j) => all[(k * n + i) * n + j];
  const along = (i) => (2 * i) / (n - 1) - 1; // a point's place in -1..1

  // ---- elements
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
  const state = stateControls(el, model.get("name"),
    () => ({ azimuth: [model.get("azimuth")], elevation: [model.get("elevation")], log: [Number(model.get("log"))] }),
    ({ azimuth: [a], elevation: [e], log: [on] }) => put(model, {
      azimuth: within(a, -180, 180), elevation: within(e, 0, 90), log: on > 0,
    }));
  const root = h("div", { className: "attn attn-landscape", role: "group", "aria-label": title || "Loss surfaces" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, h("span", { className: "attn-ramp" }, "loss ", low, gradient, high),
      h("label", { className: "attn-field attn-check" }, log, "logarithmic")),
    pictures, turn.node, tilt.node, point, ...readouts, heard, state.bar);

  // ---- what the reader does
  const turned = (a, e) => put(model, { azimuth: around(Math.round(a)), elevation: within(Math.round(e), 0, 90) });
  pictures.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
    if (!by || isTheirs(event)) return;
    event.preventDefault();
    turned(model.get("azimuth") + by[0], model.get("elevation") + by[1]);
    heard.textContent = `turned ${model.get("azimuth")}°, tilted ${model.get("elevation")}°`;
  });
  canvases.forEach((canvas, k) => {
    let from = null; // where a drag began, and the angles then
    const where = (event) => [event.clientX, event.clientY];
    canvas.addEventListener("pointerdown", (event) => {
      from = [where(event), model.get("azimuth"), model.get("elevation")];
      canvas.setPointerCapture(event.pointerId);
      show(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons) return show(event);
      if (!from) return;
      const [x, y] = where(event), [[x0, y0], a, e] = from, upwards = event.pointerType === "touch" ? 0 : y - y0;
      turned(a + SPEED * (x - x0), e + SPEED * upwards); // upwards a finger scrolls
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
    canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && show(null));
    // The point of the grid seen nearest to the pointer; of those that look alike the one in front.
    function show(event) {
      hover = null;
      if (event) {
        const box = canvas.getBoundingClientRect(), seen = view(box.width);
        let best = 24; // pixels: nothing is read further away
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < n; j++) {
            const [x, y, behind] = seen(along(i), along(j), scale.height(loss(k, i, j)));
            const far = Math.hypot(x - event.clientX + box.left, y - event.clientY + box.top) + 6 * behind;
            if (far < best) [best, hover] = [far, [i, j]];
          }
        }
      }
      ask();
    }
  });

  // ---- drawing
  function view(width) {
    const unit = width / 2 / WIDEST, a = model.get("azimuth"), e = model.get("elevation");
    return (x, y, z) => {
      const [right, up, behind] = projected(x, y, z, a, e);
      return [width / 2 + right * unit, width / 2 - up * unit, behind];
    };
  }
  function paint(canvas, k) {
    const width = canvas.parentNode.clientWidth, pixels = Math.round(width * devicePixelRatio);
    const ctx = canvas.getContext("2d");
    if (canvas.width !== pixels) canvas.width = canvas.height = pixels; // square, sharp on any screen
    ctx.setTransform(pixels / width, 0, 0, pixels / width, 0, 0);
    ctx.clearRect(0, 0, width, width);
    const seen = view(width), azimuth = (model.get("azimuth") * Math.PI) / 180;
    const heights = new Float64Array(n * n), xs = [], ys = [];
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const z = (heights[i * n + j] = scale.height(loss(k, i, j)));
        [xs[i * n + j], ys[i * n + j]] = seen(along(i), along(j), z);
      }
    }
    ctx.lineJoin = "round";
    ctx.lineWidth = 1;
    ctx.strokeStyle = theme.line;
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]];
    path(ctx, corners.map(([x, y]) => seen(x, y, 0)));
    ctx.stroke();
    for (const [x, y] of corners) { // posts from the floor to the surface's corners
      path(ctx, [seen(x, y, 0), seen(x, y, scale.height(loss(k, x < 0 ? 0 : n - 1, y < 0 ? 0 : n - 1)))]);
      ctx.stroke();
    }
    // From the back to the front, so that what is nearer covers what is behind it.
    const order = (backwards) => Array.from({ length: n - 1 }, (_, step) => (backwards ? n - 2 - step : step));
    const rows = order(Math.sin(azimuth) > 0), columns = order(Math.cos(azimuth) > 0);
    ctx.lineWidth = n > 25 ? 0.4 : 0.6;
    ctx.strokeStyle = theme.mesh;
    for (const i of rows) {
      for (const j of columns) {
        const at = [i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1, i * n + j + 1];
        const height = (heights[at[0]] + heights[at[1]] + heights[at[2]] + heights[at[3]]) / 4;
        ctx.fillStyle = theme.shades[Math.round((SHADES - 1) * height)];
        ctx.beginPath();
        ctx.moveTo(xs[at[0]], ys[at[0]]);
        for (let c = 1; c < 4; c++) ctx.lineTo(xs[at[c]], ys[at[c]]);
        ctx.closePath();
        ctx.fill();
        ctx.stroke();
      }
    }
    const middle = (n - 1) / 2, dots = [[[middle, middle], theme.mark, 5], ...(hover ? [[hover, theme.ink, 4]] : [])];
    for (const [[i, j], colour, radius] of dots) {
      ctx.beginPath();
      ctx.arc(xs[i * n + j], ys[i * n + j], radius, 0, 2 * Math.PI);
      Object.assign(ctx, { fillStyle: colour, strokeStyle: theme.page, lineWidth: 2 });
      ctx.fill();
      ctx.stroke();
    }
  }
  function path(ctx, points) {
    ctx.beginPath();
    points.forEach(([x, y], step) => (step ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.closePath();
  }
  function makeTheme() {
    const { colours, page, line, mark, ink } = readTheme(root);
    const shades = Array.from({ length: SHADES }, (_, shade) => colours[LIGHTEST + shade].css);
    theme = { page, line, mark, ink, shades };
    theme.mesh = `color-mix(in srgb, ${ink} 45%, transparent)`;
    gradient.style.background = `linear-gradient(to right, ${theme.shades.filter((_, shade) => shade % 16 === 0)})`;
  }
  function draw() {
    const a = model.get("azimuth"), e = model.get("elevation"), middle = (n - 1) / 2;
    turn.set(a, `${format(a, 0)}°`);
    tilt.set(e, `${format(e, 0)}°`);
    log.checked = model.get("log");
    low.textContent = written(scale.low);
    high.textContent = written(scale.high);
    names.forEach((name, k) => {
      const own = all.subarray(k * n * n, (k + 1) * n * n);
      readouts[k].replaceChildren(
        `${name}: loss `, h("b", {}, written(loss(k, middle, middle))), " at the trained parameters, ",
        h("b", {}, written(own.reduce((sum, x) => sum + x, 0) / own.length)), " on average, ",
        h("b", {}, written(own.reduce((most, x) => Math.max(most, x)))), " at most");
    });
    const place = hover && hover.map((i) => format(extent * along(i), 2).replace("-", "−")).join(", ");
    point.textContent = hover
      ? `At ${place}: ` + names.map((name, k) => `${name} ${written(loss(k, ...hover))}`).join(" · ")
      : `Dot: the trained parameters; from there up to ${extent} along two directions. `
        + "One scale for all, losses kept within 0.05 %. Drag to turn.";
    if (!pictures.clientWidth) return; // not attached or hidden as yet: painted when it gets a size
    if (!theme) makeTheme();
    canvases.forEach(paint);
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = {
    azimuth: ask, elevation: ask, log: () => { rescale(); ask(); }, surfaces: () => { unpack(); ask(); },
  };
  const themed = () => { theme = null; ask(); };
  return live({ model, el, root, state, ask, changes, box: pictures, sized: ask, themed });
}

export default { render };
