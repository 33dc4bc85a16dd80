// AttentionHeatmap: one or two maps with a shared cursor, the row at the cursor as weighted text, and a table.
import { LEVELS, cellAt, drawCells, hold, isPale, layout, paint, readTheme } from "../shared/canvas.js";
import { format, shade, visible, within } from "../shared/math.js";
import { h, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";
import { makeCanvases, makeScale, makeSelectors, makeTexts } from "./elements.js";
import { chosen, cursor, level, mapsOnView, masking, namesOnView, readMaps, readWeights, weight } from "./maps.js";
import { aloud, brief, makeTables, sentence } from "./readout.js";

// All state that the functions below share: what is shown, and how it is currently drawn.
const makeView = (model) => Object.assign(readMaps(model), {
  theme: null, // made when needed, as are `ats`, the layout of each map, and `cells`, the maps' pictures
  ats: null, width: 0, cells: null,
  most: LEVELS, // the weight of the deepest colour
  hover: null, // the cell under the pointer, not chosen
  tipAt: 0, // the map that the tooltip is on
  linked: false, // whether a link has just chosen a cell
});
const place = (n, first, count) => within(Math.trunc(n), first, count - 1);

// ---- elements
function build(view, { bar }) {
  const { model, rows, labels, what } = view, title = model.get("title"), count = mapsOnView(view).length;
  const { controls, selectors } = makeSelectors(view), scale = makeScale(view);
  const numbered = rows.map((text, i) => `${i + 1} · ${visible(text).slice(0, 60)}`);
  const query = select(labels[0], ["none", ...numbered], (n) => choose(view, { i: n - 1, j: n ? chosen(view).j : -1 }));
  const maps = makeCanvases(view, count), { words, texts } = makeTexts(view, count);
  const tip = h("div", { className: "attn-tip", hidden: true, "aria-hidden": "true" });
  const readout = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const tables = h("div");
  const details = h("details", { ontoggle: () => fillTables(view) },
    h("summary", {}, `Table of every ${what}`), tables);
  const root = h("div", { className: "attn attn-heatmap", role: "group", "aria-label": title || "Attention map" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, ...controls, query.node, scale.scale, scale.stretcher),
    maps.application, readout, ...texts, heard, tip, bar, details);
  return { root, selectors, query, ...scale, ...maps, words, texts, tip, readout, heard, tables, details };
}

function linkedState(view, el) {
  const { model, rows, columns, axes, split } = view;
  const read = () => ({
    query: [model.get("query")], key: [model.get("key")], index: model.get("index"),
    stretch: [Number(model.get("stretch"))], ...(split < 0 ? {} : { against: [model.get("against")] }),
  });
  return stateControls(el, model.get("name"), read, ({ query: [i], key: [j], index, stretch: [on], against }) => {
    Object.assign(view, { hover: null, linked: true });
    view.parts.selectors.forEach(({ stop }) => stop?.());
    if (against) put(model, { against: place(against[0], 0, axes[split][1].length) });
    put(model, {
      query: place(i, -1, rows.length), key: place(j, -1, columns.length),
      index: axes.map(([, options], d) => place(index[d] ?? 0, 0, options.length)), stretch: on > 0,
    });
  });
}

// ---- what the reader does; `m` is the index of the map under the pointer
function choose(view, { i, j }, m) {
  put(view.model, { query: i, key: j });
  view.parts.heard.replaceChildren(...aloud(view, { i, j }));
  reveal(view, j);
  showTip(view, m);
}

function listenToPointer(view, canvas, m) {
  const { model, parts: { application, tip } } = view;
  const under = (event) => {
    const { left, top } = canvas.getBoundingClientRect(), at = view.ats[m];
    const fixed = application.getBoundingClientRect().left + view.ats[0].left;
    return cellAt(at, at.slides && event.clientX < fixed ? 0 : event.clientX - left, event.clientY - top);
  };
  canvas.addEventListener("pointermove", (event) => {
    const { i, j } = (view.hover = under(event));
    if (event.buttons && i >= 0) put(model, { query: i, key: j });
    showTip(view, m);
  });
  canvas.addEventListener("pointerleave", () => { view.hover = null; tip.hidden = true; view.ask(); });
  canvas.addEventListener("click", (event) => {
    view.hover = event.pointerType === "mouse" ? under(event) : null;
    choose(view, under(event), m);
  });
}

// The cell that a key leads to; null for any other key.
function cellByKey({ rows, columns }, { i, j }, { key, ctrlKey, altKey, metaKey }) {
  const to = {
    ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
    Home: [ctrlKey ? 0 : i, 0], End: [ctrlKey ? rows.length - 1 : i, columns.length - 1], Escape: [-1, -1],
  }[key];
  if (!to || altKey || metaKey || (ctrlKey && key.startsWith("Arrow"))) return null;
  if (key === "Escape") return { i: -1, j: -1 };
  if (i < 0 && j < 0) return { i: 0, j: 0 };
  return { i: place(to[0], 0, rows.length), j: place(to[1], 0, columns.length) };
}

function listen(view) {
  const { application, canvases, tip } = view.parts;
  canvases.forEach((canvas, m) => listenToPointer(view, canvas, m));
  application.addEventListener("keydown", (event) => {
    const cell = cellByKey(view, chosen(view), event);
    if (!cell) return;
    event.preventDefault();
    view.hover = null;
    choose(view, cell);
  });
  application.addEventListener("scroll", view.ask);
  application.addEventListener("focus", () => showTip(view));
  application.addEventListener("blur", () => (tip.hidden = true));
}

// ---- drawing
function draw(view) {
  const { model, parts } = view, width = parts.application.clientWidth;
  if (!width) return; // not attached yet, or hidden: drawn once it has a size
  view.theme ??= readTheme(parts.root);
  if (view.width !== width) arrangeMaps(view, width);
  if (!view.cells) {
    const maps = mapsOnView(view), largest = maps.reduce((top, map) => map.reduce((a, b) => Math.max(a, b), top), 0);
    view.most = (model.get("stretch") && largest) || LEVELS;
    view.cells = maps.map((map, m) => drawCells(view.ats[m], map, view.most, view.theme, masking(view, map)));
  }
  drawControls(view);
  parts.readout.replaceChildren(...sentence(view, cursor(view)));
  mapsOnView(view).forEach((map, m) => drawMap(view, map, m));
  parts.canvases.forEach((canvas, m) => hold(canvas, parts.stills[m], view.ats[0]));
  if (view.linked) view.linked = reveal(view, chosen(view).j);
  placeTip(view);
}

function arrangeMaps(view, width) {
  const { canvases, application } = view.parts, { rows, columns, labels, theme } = view;
  const options = { maps: canvases.length, slide: true }, ctx = canvases[0].getContext("2d");
  const at = layout(ctx, width, rows, columns, labels, theme, options);
  Object.assign(view, { ats: [at, at.beside], width, cells: null });
  application.classList.toggle("attn-abreast", at.abreast);
  application.classList.toggle("attn-slides", at.slides);
}

function drawControls(view) {
  const { model, theme, most, split, parts: { stretch, end, gradient, selectors, query } } = view;
  const colours = theme.colours.filter((_, n) => n % 17 === 0).map((colour) => colour.css);
  const places = [...model.get("index"), ...(split < 0 ? [] : [model.get("against")])];
  stretch.checked = model.get("stretch");
  end.textContent = most === LEVELS ? "1" : format(most / LEVELS);
  gradient.style.background = `linear-gradient(to right, ${colours})`;
  places.forEach((n, d) => (selectors[d].set ? selectors[d].set(n) : (selectors[d].list.selectedIndex = n)));
  query.list.selectedIndex = chosen(view).i + 1;
}

function drawMap(view, map, m) {
  const { columns, two, theme, most, ats, cells, parts: { canvases, texts, words } } = view, { i, j } = cursor(view);
  const canvas = canvases[m], box = canvas.parentNode, { abreast, slides } = ats[0];
  if (two) texts[m].firstChild.textContent = box.firstChild.textContent = namesOnView(view)[m];
  if (two) box.firstChild.style.paddingLeft = `${ats[m].left}px`;
  box.style.width = abreast || slides ? `${ats[m].width}px` : "";
  words[m].forEach((word, n) => {
    const colour = i < 0 ? null : theme.colours[shade(level(view, map, i, n), most)];
    word.style.cssText = colour ? `background: ${colour.css}; color: ${colour.ink}` : "";
    word.title = i < 0 ? columns[n] : `${columns[n]}: ${weight(view, map, i, n)}`;
    word.classList.toggle("attn-at", n === j);
  });
  paint(canvas, ats[m], cells[m], { i, j }, theme);
}

// Scrolls to column j if the map slides.
function reveal({ ats, parts: { application } }, j) {
  if (j < 0 || !ats[0].slides) return;
  const [at] = ats, least = at.x(j + 1) - application.clientWidth, most = at.x(j) - at.left;
  application.scrollLeft = within(application.scrollLeft, least, most);
}

// Shows the cell's weights beside it, on the map under the pointer or, for the keyboard, on the first.
function showTip(view, m = 0) {
  const { tip, application } = view.parts, { i, j } = cursor(view);
  view.tipAt = m;
  tip.hidden = (i < 0 && j < 0) || !(view.hover || application.matches(":focus"));
  if (!tip.hidden) tip.replaceChildren(...brief(view, { i, j }));
  view.ask();
}
function placeTip(view) {
  const { ats, tipAt, parts: { tip, canvases, root } } = view, { i, j } = cursor(view);
  if (tip.hidden) return;
  const there = canvases[tipAt].getBoundingClientRect(), here = root.getBoundingClientRect();
  const x = there.left - here.left + (j < 0 ? 0 : ats[tipAt].x(j) + ats[0].w / 2);
  const y = there.top - here.top + (i < 0 ? ats[0].top : ats[0].y(i)), right = here.width - tip.offsetWidth - 4;
  tip.style.left = `${within(Math.trunc(x - tip.offsetWidth / 2), 4, Math.max(4, right))}px`;
  tip.style.top = `${y - tip.offsetHeight - 8}px`;
}

function fillTables(view) {
  const { details, tables } = view.parts;
  if (details.open) tables.replaceChildren(...makeTables(view));
}

function render({ model, el }) {
  const view = makeView(model), ask = (view.ask = onceAFrame(() => draw(view)));
  const link = linkedState(view, el), { root, application, canvases, stretcher } = (view.parts = build(view, link));
  const offer = () => (stretcher.hidden = !isPale(view.weights, view.rows.length * view.columns.length));
  const redraw = () => { view.cells = null; ask(); };
  const moved = () => { redraw(); fillTables(view); };
  const renew = (again) => {
    view.weights = readWeights(model);
    if (mapsOnView(view).length !== canvases.length) return again(); // a second map came or went
    offer();
    moved();
  };
  offer();
  listen(view);
  const changes = { query: ask, key: ask, index: moved, against: moved, weights: renew, other: renew, stretch: redraw,
    masked: (again) => again() };
  const themed = () => { view.theme = null; redraw(); };
  return live({ model, el, root, state: link, ask, changes, box: application, sized: ask, themed, render });
}

export default { render };
