// AttentionHeatmap: one or two maps under one cursor, the row at the cursor as weighted text, and a table.
import { LEVELS, cellAt, drawCells, hold, isPale, layout, paint, readTheme } from "../shared/canvas.js";
import { format, shade, unpackWeights, visible, within } from "../shared/math.js";
import { player } from "../shared/play.js";
import { h, live, onceAFrame, put, select, stateControls, token } from "../shared/ui.js";

function render({ model, el }) {
  const rows = model.get("query_tokens"), columns = model.get("key_tokens"), axes = model.get("axes");
  const title = model.get("title"), area = rows.length * columns.length;
  const labels = [model.get("query_label"), model.get("key_label")], [rowName, columnName] = labels;
  const what = model.get("weight_label") ?? "weight", ordered = model.get("ordered") ?? [];
  const split = axes.findIndex(([name]) => name === model.get("compare")); // the axis of two maps side by side
  let weights, theme, at, cells; // `theme`, `at` (where things lie) and `cells` (their pictures) are made when needed
  let most = LEVELS; // the weight of the deepest colour
  let hover = null, tipAt = 0, linked = false; // a cell under a pointer, not chosen; the tooltip's map; come by a link?

  // The map on view of each kind; one [query, key] map serves every position of the selectors.
  const index = (m) => model.get("index").map((n, d) => (m > 0 && d === split ? model.get("against") : n));
  const offset = (m) => axes.reduce((n, [, options], d) => n * options.length + index(m)[d], 0) * area;
  const slice = (all, m) => (all.length === area ? all : all.subarray(offset(m), offset(m) + area));
  const maps = () => (split < 0 ? weights.map((all) => slice(all, 0)) : [0, 1].map((m) => slice(weights[0], m)));
  const called = (label) => (/^\d+$/.test(label) ? `${axes[split][0]} ${label}` : label); // "head 2"
  const names = () => (split < 0 ? model.get("names") : [0, 1].map((m) => called(axes[split][1][index(m)[split]])));
  const chosen = () => ({ i: model.get("query"), j: model.get("key") });
  const cursor = () => hover ?? chosen();
  const place = (n, first, count) => within(Math.trunc(n), first, count - 1);
  const level = (map, i, j) => map[i * columns.length + j];
  const weight = (map, i, j) => format(level(map, i, j) / LEVELS);

  function unpack() {
    weights = ["weights", "other"].map((trait) => unpackWeights(model.get(trait))).filter((all) => all.length);
  }
  unpack();
  const two = maps().length > 1;

  // ---- elements
  const axis = (d, name, change) => (ordered.includes(axes[d][0]) ? player : select)(name, axes[d][1], change);
  const sides = ["left", "right"].map((side) => (split < 0 ? "" : `${axes[split][0]}, ${side}`));
  const selectors = axes.map(([name], d) => axis(d, d === split ? sides[0] : name, (n) => {
    put(model, { index: model.get("index").map((old, other) => (other === d ? n : old)) });
  }));
  if (split >= 0) selectors.push(axis(split, sides[1], (n) => put(model, { against: n })));
  const controls = selectors.map(({ node }) => node);
  if (split >= 0) controls.splice(split + 1, 0, controls.pop());
  const places = () => [...model.get("index"), ...(split < 0 ? [] : [model.get("against")])];
  const numbered = rows.map((text, i) => `${i + 1} · ${visible(text).slice(0, 60)}`);
  const querySelect = select(rowName, ["none", ...numbered], (n) => choose({ i: n - 1, j: n ? chosen().j : -1 }));
  const gradient = h("i", { "aria-hidden": "true" }), end = h("span");
  const stretch = h("input", { type: "checkbox", onchange: () => put(model, { stretch: stretch.checked }) });
  const stretcher = h("label", { className: "attn-field attn-check" }, stretch, "colour to the largest");
  const canvases = maps().map(() => h("canvas", { "aria-hidden": "true" }));
  const stills = canvases.map(() => h("canvas", { className: "attn-still", "aria-hidden": "true" }));
  const application = h("div", {
    className: "attn-maps", tabIndex: 0, role: "application", "aria-roledescription": "attention map",
    "aria-label": `${title || "Attention"}. ${rows.length} rows (${rowName}), `
      + `${columns.length} columns (${columnName}). `
      + "Arrow keys move from cell to cell, Home and End along the row, Escape clears. A table follows.",
  }, ...canvases.map((canvas) => h("div", { className: "attn-map" },
    ...(two ? [h("p", { className: "attn-name" })] : []), canvas)));
  const tip = h("div", { className: "attn-tip", hidden: true, "aria-hidden": "true" });
  const readout = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const words = maps().map(() => columns.map((text) => h("bdi", { className: "attn-word" }, visible(text))));
  const texts = words.map((line) => h("p", { className: "attn-text" },
    h("span", {}, two ? "" : `${columnName}, by ${what}:`), " ", ...line.flatMap((word) => [word, " "])));
  const tables = h("div");
  const details = h("details", { ontoggle: fillTables }, h("summary", {}, `Table of every ${what}`), tables);
  const state = stateControls(el, model.get("name"),
    () => ({
      query: [model.get("query")], key: [model.get("key")], index: model.get("index"),
      stretch: [Number(model.get("stretch"))], ...(split < 0 ? {} : { against: [model.get("against")] }),
    }),
    ({ query: [i], key: [j], index, stretch: [on], against }) => {
      [hover, linked] = [null, true];
      selectors.forEach(({ stop }) => stop?.());
      if (against) put(model, { against: place(against[0], 0, axes[split][1].length) });
      put(model, {
        query: place(i, -1, rows.length), key: place(j, -1, columns.length),
        index: axes.map(([, options], d) => place(index[d] ?? 0, 0, options.length)), stretch: on > 0,
      });
    });
  const root = h("div", { className: "attn attn-heatmap", role: "group", "aria-label": title || "Attention map" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, ...controls, querySelect.node,
      h("span", { className: "attn-scale" }, `${what} 0`, gradient, end), stretcher),
    application, readout, ...texts, heard, tip, state.bar, details);

  // ---- what a cell says, to see (tokens isolated) and to hear
  function values(i, j) {
    return maps().map((map, m) => [two ? names()[m] : what, weight(map, i, j)]);
  }
  function seen({ i, j }) {
    if (i < 0 && j < 0) return [`Hover, tap or use the arrow keys to read a ${what}.`];
    const query = i < 0 ? [] : [`${rowName} `, token(visible(rows[i]))];
    const key = j < 0 ? [] : [`${i < 0 ? "" : " → "}${columnName} `, token(visible(columns[j]))];
    if (i >= 0 && columns.every((_, n) => !level(maps()[0], i, n))) key.push(" (attends to nothing)");
    if (i < 0 || j < 0) return [...query, ...key];
    return [...query, ...key, ...values(i, j).flatMap(([name, value]) => [` · ${name} `, h("b", {}, value)])];
  }
  function brief({ i, j }) {
    const tokens = [...(i < 0 ? [] : [visible(rows[i])]), ...(j < 0 ? [] : [visible(columns[j])])].map(token);
    const numbers = i < 0 || j < 0 ? []
      : values(i, j).flatMap(([name, value]) => [two ? ` · ${name} ` : "  ", h("b", {}, value)]);
    return [tokens[0], ...tokens.slice(1).flatMap((text) => [" → ", text]), ...numbers];
  }
  function say({ i, j }) {
    if (i < 0 || j < 0) return heard.replaceChildren(...seen({ i, j }));
    heard.textContent = `${rowName} ${visible(rows[i])}, ${columnName} ${visible(columns[j])}, `
      + values(i, j).map((pair) => pair.join(" ")).join(", ");
  }

  function choose({ i, j }, m) {
    put(model, { query: i, key: j });
    say({ i, j });
    reveal(j);
    showTip(m);
  }

  // ---- drawing
  function draw() {
    const width = application.clientWidth;
    if (!width) return; // not attached or hidden as yet: drawn when it gets a size
    theme ??= readTheme(root);
    if (at?.limit !== width) {
      const options = { maps: canvases.length, slide: true }, ctx = canvases[0].getContext("2d");
      at = { ...layout(ctx, width, rows, columns, labels, theme, options), limit: width };
      cells = null;
    }
    const ats = [at, at.beside];
    if (!cells) {
      const largest = maps().reduce((top, map) => map.reduce((a, b) => Math.max(a, b), top), 0);
      most = (model.get("stretch") && largest) || LEVELS;
      cells = maps().map((map, m) => drawCells(ats[m], map, most, theme));
    }
    application.classList.toggle("attn-abreast", at.abreast);
    application.classList.toggle("attn-slides", at.slides);
    stretch.checked = model.get("stretch");
    end.textContent = most === LEVELS ? "1" : format(most / LEVELS);
    const colours = theme.colours.filter((_, n) => n % 17 === 0).map((colour) => colour.css);
    gradient.style.background = `linear-gradient(to right, ${colours})`;
    places().forEach((n, d) => (selectors[d].set ? selectors[d].set(n) : (selectors[d].list.selectedIndex = n)));
    querySelect.list.selectedIndex = chosen().i + 1;
    const { i, j } = cursor();
    readout.replaceChildren(...seen({ i, j }));
    maps().forEach((map, m) => {
      const { parentNode: box } = canvases[m];
      if (two) texts[m].firstChild.textContent = box.firstChild.textContent = names()[m];
      if (two) box.firstChild.style.paddingLeft = `${ats[m].left}px`;
      box.style.width = at.abreast || at.slides ? `${ats[m].width}px` : "";
      words[m].forEach((word, n) => {
        const colour = i < 0 ? null : theme.colours[shade(level(map, i, n), most)];
        word.style.cssText = colour ? `background: ${colour.css}; color: ${colour.ink}` : "";
        word.title = i < 0 ? columns[n] : `${columns[n]}: ${weight(map, i, n)}`;
        word.classList.toggle("attn-at", n === j);
      });
      paint(canvases[m], ats[m], cells[m], { i, j }, theme);
    });
    canvases.forEach((canvas, m) => hold(canvas, stills[m], at));
    if (linked) linked = reveal(chosen().j);
    placeTip();
  }
  const ask = onceAFrame(draw);
  const redraw = () => { cells = null; ask(); };

  function reveal(j) {
    if (j < 0 || !at.slides) return;
    const least = at.x(j + 1) - application.clientWidth, most = at.x(j) - at.left;
    application.scrollLeft = within(application.scrollLeft, least, most);
  }

  // The cell's numbers beside it, on the map that the pointer is at or, for the keyboard, the first.
  function showTip(m = 0) {
    const { i, j } = cursor();
    tipAt = m;
    tip.hidden = (i < 0 && j < 0) || !(hover || application.matches(":focus"));
    if (!tip.hidden) tip.replaceChildren(...brief({ i, j }));
    ask();
  }
  function placeTip() {
    if (tip.hidden) return;
    const { i, j } = cursor(), there = canvases[tipAt].getBoundingClientRect(), here = root.getBoundingClientRect();
    const x = there.left - here.left + (j < 0 ? 0 : (tipAt ? at.beside : at).x(j) + at.w / 2);
    const y = there.top - here.top + (i < 0 ? at.top : at.y(i)), right = here.width - tip.offsetWidth - 4;
    tip.style.left = `${within(Math.trunc(x - tip.offsetWidth / 2), 4, Math.max(4, right))}px`;
    tip.style.top = `${y - tip.offsetHeight - 8}px`;
  }

  function fillTables() {
    if (!details.open) return;
    const heading = (scope) => (text) => h("th", { scope }, token(visible(text)));
    const region = { className: "attn-table", tabIndex: 0, role: "region" };
    tables.replaceChildren(...maps().map((map, m) =>
      h("div", { ...region, "aria-label": `Table: ${names()[m]}` }, h("table", {},
        h("caption", {}, `${names()[m]}: a row for each ${rowName}, a column for each ${columnName}`),
        h("thead", {}, h("tr", {}, h("td"), ...columns.map(heading("col")))),
        h("tbody", {}, ...rows.map((text, i) =>
          h("tr", {}, heading("row")(text), ...columns.map((_, j) => h("td", {}, weight(map, i, j))))))))),
    h("p", { className: "attn-note" }, "Weights are stored in 16 bits: within 0.000008 of what was given."));
  }

  // ---- pointer and keyboard
  canvases.forEach((canvas, m) => {
    const under = (event) => {
      const { left, top } = canvas.getBoundingClientRect(), fixed = application.getBoundingClientRect().left + at.left;
      const x = at.slides && event.clientX < fixed ? 0 : event.clientX - left;
      return cellAt(m ? at.beside : at, x, event.clientY - top);
    };
    canvas.addEventListener("pointermove", (event) => {
      hover = under(event);
      if (event.buttons && hover.i >= 0) put(model, { query: hover.i, key: hover.j });
      showTip(m);
    });
    canvas.addEventListener("pointerleave", () => { hover = null; tip.hidden = true; ask(); });
    canvas.addEventListener("click", (event) => {
      hover = event.pointerType === "mouse" ? under(event) : null;
      choose(under(event), m);
    });
  });
  application.addEventListener("keydown", (event) => {
    const { i, j } = chosen(), right = columns.length - 1;
    const to = {
      ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      Home: [event.ctrlKey ? 0 : i, 0], End: [event.ctrlKey ? rows.length - 1 : i, right], Escape: [-1, -1],
    }[event.key];
    if (!to || event.altKey || event.metaKey || (event.ctrlKey && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    hover = null;
    const [low, first] = event.key === "Escape" ? [-1, false] : [0, i < 0 && j < 0];
    choose(first ? { i: 0, j: 0 } : { i: place(to[0], low, rows.length), j: place(to[1], low, columns.length) });
  });
  application.addEventListener("scroll", ask);
  application.addEventListener("focus", () => showTip());
  application.addEventListener("blur", () => (tip.hidden = true));

  // ---- life
  const moved = () => { redraw(); fillTables(); };
  const renew = (again) => {
    unpack();
    if (maps().length !== canvases.length) return again(); // a second map came or went
    offer();
    moved();
  };
  const offer = () => (stretcher.hidden = !isPale(weights, area));
  offer();
  const changes = { query: ask, key: ask, index: moved, against: moved, weights: renew, other: renew, stretch: redraw };
  const themed = () => { theme = null; redraw(); };
  return live({ model, el, root, state, ask, changes, box: application, sized: ask, themed, render });
}

export default { render };
