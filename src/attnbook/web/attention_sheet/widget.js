// AttentionSheet: a whole self-attention as cells; touch one and see what made it, change one and see what follows.
import { format, within } from "../shared/math.js";
import {
  BLOCKS, INPUTS, NAMES, brief, cellOf, compute, kept, madeOf, naming, operands, uses, written
} from "../shared/sheet.js";
import { h, isTheirs, live, onceAFrame, put, stateControls, token } from "../shared/ui.js";

const LOOKS = { x: "state", w_q: "query", w_k: "key", w_v: "value", q: "query", k: "key", v: "value",
  scores: "weight", weights: "weight", out: "state" };
const STEP = 0.1, FAR = 3, PIXELS = 8; // one step of a key, how far the slider goes, how far one drags for a step
const MARKS = ["attn-first", "attn-second", "attn-next"]; // the two vectors of a cell, and what it goes into
const swap = (list, at, by) => list.map((one, n) => (n === at ? by : one));
const sub = (text, below) => [text, h("sub", {}, below)];

function render({ model, el }) {
  const title = model.get("title"), words = model.get("words"), outputs = model.get("outputs");
  const given = () => Object.fromEntries([...INPUTS, "mask", "root"].map((name) => [name, model.get(name)]));
  const tokens = () => model.get("tokens"), cell = () => cellOf(all, model.get("cell"));
  let all = compute(given()), flash = 0, fresh = false; // fresh: drawn since the last change
  const size = model.get("w_q")[0].length, n = tokens().length;

  // ---- blocks of cells
  const blocks = {}; // of each: its node, its cells by row, its labels of rows and of columns
  function table(block) {
    const rows = all[block], sided = !block.startsWith("w_"), pairs = ["scores", "weights"].includes(block);
    const across = pairs ? tokens() : ["v", "out"].includes(block) ? outputs : [];
    const label = (text) => h("span", { className: "attn-lab", "aria-hidden": "true" }, token(text));
    const cells = rows.map((row, i) => row.map((_, j) => h("button", { type: "button", className: "attn-num",
      onclick: () => choose(block, i, j) })));
    const side = (text, i) => (block === "x" ? asker(text, i) : label(text));
    const heads = across.map(label), sides = sided ? tokens().map(side) : [];
    const corner = sided && across.length ? [h("span")] : [];
    const node = h("div", { className: `attn-block attn-${LOOKS[block]}`, role: "group",
      "aria-label": `${NAMES[block]}: ${rows.length} rows of ${rows[0].length}` },
    ...corner, ...heads, ...cells.flatMap((row, i) => (sided ? [sides[i], ...row] : row)));
    node.style.setProperty("--columns", `${sided ? "var(--side) " : ""}repeat(${rows[0].length}, var(--cell))`);
    node.addEventListener("keydown", (event) => key(event, block));
    if (INPUTS.includes(block)) node.classList.add("attn-given");
    blocks[block] = { node, cells, heads, sides };
    return node;
  }
  function asker(text, i) {
    const known = Object.keys(words);
    if (!known.length) return h("span", { className: "attn-lab", "aria-hidden": "true" }, token(text));
    const list = h("select", { className: "attn-word-list", "aria-label": `word ${i + 1}`, onchange: () => {
      const word = known[list.selectedIndex];
      change({ tokens: swap(tokens(), i, word), x: swap(model.get("x"), i, words[word]) });
      heard.textContent = `word ${i + 1} is ${word}. ${panel.textContent}`;
    } }, ...known.map((word) => h("option", {}, word)));
    return list;
  }
  const section = (look, head, formula, ...names) => h("div", { className: `attn-part attn-part-${look}` },
    h("p", { className: "attn-topic" }, h("b", { className: `attn-${LOOKS[names.at(-1)]}` }, head), " ", ...formula),
    h("div", { className: "attn-pair" }, ...names.flatMap((name, at) => [...(at ? [arrow()] : []), table(name)])));
  const arrow = () => h("span", { className: "attn-to", "aria-hidden": "true" }, "→");

  // ---- what is chosen: its name, its arithmetic, and where it is given, what changes it
  const which = h("p", { className: "attn-which" }), sum = h("p", { className: "attn-sum" });
  const by = (step) => () => edit(value() + step);
  const small = (text, name, step) => h("button", { type: "button", "aria-label": name, onclick: by(step) }, text);
  const slide = h("input", { type: "range", min: -FAR, max: FAR, step: STEP, "aria-label": "the number",
    oninput: () => edit(Number(slide.value)) });
  const field = h("input", { type: "number", step: "any", inputMode: "decimal", "aria-label": "the number, typed",
    oninput: () => field.value !== "" && edit(Number(field.value), true) });
  const editor = h("div", { className: "attn-edit" },
    small("−", "less by 0.1", -STEP), slide, small("+", "more by 0.1", STEP), field);
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const panel = h("div", { className: "attn-panel" }, which, sum, editor);
  const switches = ["mask", "root"].map((name) => h("button", { type: "button", className: "attn-switch",
    onclick: () => change({ [name]: !model.get(name) }) },
  name === "mask" ? "Mask later words" : `Divide by √${size}`));
  const scaled = h("span");

  const flat = (name) => model.get(name).flat();
  const state = stateControls(el, model.get("name"),
    () => ({ ...Object.fromEntries(INPUTS.map((name) => [name, flat(name)])), mask: [Number(model.get("mask"))],
      root: [Number(model.get("root"))], tokens: tokens(), cell: [model.get("cell")] }),
    ({ mask: [mask], root: [root], tokens: said, cell: [at], ...rest }) => {
      const shaped = Object.entries(rest).map(([name, values]) => {
        const old = model.get(name), wide = old[0].length;
        const fits = INPUTS.includes(name) && values.length === old.length * wide;
        return [name, fits ? old.map((_, i) => values.slice(i * wide, (i + 1) * wide).map(kept)) : old];
      });
      const fit = said.length === n && said.every((text, i) => text === tokens()[i] || text in words);
      put(model, { ...Object.fromEntries(shaped.filter(([name]) => INPUTS.includes(name))), mask: mask > 0,
        root: root > 0, tokens: fit ? said : tokens(), cell: cellOf(all, at) ? at : "" });
    });
  const root = h("div", { className: "attn attn-sheet", role: "group", "aria-label": title || "Sheet of attention" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("div", { className: "attn-row" }, ...switches),
    h("div", { className: "attn-parts" },
      section("x", "words", ["x"], "x"),
      section("q", "queries", ["q = x ", ...sub("W", "Q")], "w_q", "q"),
      section("k", "keys", ["k = x ", ...sub("W", "K")], "w_k", "k"),
      section("v", "values", ["v = x ", ...sub("W", "V")], "w_v", "v"),
      section("scores", "scores", ["q · k", scaled], "scores"),
      section("weights", "weights", ["softmax of each row of scores"], "weights"),
      section("out", "output", ["weights × values, summed"], "out"),
      h("p", { className: "attn-note" }, "Round cells are given: change them, and the others follow. The larger a "
        + "number, the stronger its colour. Shown with two decimals at most, computed with all.")),
    panel, heard, state.bar);

  // ---- what the reader does
  const value = () => { const [block, i, j] = cell(); return all[block][i][j]; };
  const place = (block, i, j) => blocks[block].cells[i][j];
  function choose(block, i, j) {
    put(model, { cell: `${block}.${i}.${j}` });
    draw();
    place(block, i, j).focus({ preventScroll: true });
    heard.textContent = `${which.textContent} ${sum.textContent}`;
  }
  function change(traits) {
    put(model, traits);
    draw();
  }
  function edit(to, typed = false) {
    const [block, i, j] = cell();
    if (!INPUTS.includes(block) || !Number.isFinite(to)) return;
    const rows = model.get(block);
    change({ [block]: swap(rows, i, swap(rows[i], j, kept(to))) });
    if (!typed) field.value = format(value(), 2);
    heard.textContent = `${format(value(), 2)}, ${root.querySelectorAll(".attn-new").length} numbers changed`;
  }
  function key(event, block) {
    const at = cell(), turn = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -9], End: [0, 9] }[event.key];
    if (!event.target.matches(".attn-num") || isTheirs(event)) return;
    const rows = blocks[block].cells, here = rows.flat().indexOf(event.target), wide = rows[0].length;
    const [i, j] = [Math.floor(here / wide), here % wide], own = at && at[0] === block && at[1] === i && at[2] === j;
    if (INPUTS.includes(block) && event.shiftKey && turn?.[0]) {
      event.preventDefault();
      if (!own) choose(block, i, j);
      edit(value() - turn[0] * STEP);
    } else if (turn) {
      event.preventDefault();
      choose(block, within(i + turn[0], 0, rows.length - 1), within(j + turn[1], 0, wide - 1));
    } else if (INPUTS.includes(block) && /^[-\d.]$/.test(event.key)) { // the key goes on into the field
      if (!own) choose(block, i, j);
      field.focus();
      field.select();
    }
  }
  field.addEventListener("keydown", (event) => {
    const step = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
    if (step) event.preventDefault(), edit(value() + step);
    else if (event.key === "Enter" || event.key === "Escape") place(...cell()).focus();
  });
  field.addEventListener("blur", () => cell() && (field.value = format(value(), 2)));
  for (const name of INPUTS) drags(name);
  function drags(block) { // sideways: up and down still scroll
    let from = null;
    blocks[block].node.addEventListener("pointerdown", (event) => {
      const i = blocks[block].cells.findIndex((row) => row.includes(event.target));
      from = i < 0 ? null : { x: event.clientX, i, j: blocks[block].cells[i].indexOf(event.target), moved: false };
      if (from) Object.assign(from, { start: all[block][i][from.j] }), event.target.setPointerCapture(event.pointerId);
    });
    blocks[block].node.addEventListener("pointermove", (event) => {
      const steps = from && event.buttons ? Math.trunc((event.clientX - from.x) / PIXELS) : 0;
      if (!steps && !from?.moved) return;
      if (!from.moved) choose(block, from.i, from.j);
      from.moved = true;
      if (event.buttons) edit(from.start + steps * STEP);
    });
    for (const end of ["pointerup", "pointercancel"]) blocks[block].node.addEventListener(end, () => (from = null));
  }

  // ---- drawing
  function drawCell(block, i, j) {
    const x = all[block][i][j], node = place(block, i, j), text = brief(x);
    const low = block === "weights" ? 0 : -FAR, high = block === "weights" ? 1 : FAR, old = node.textContent;
    if (old === text) return [];
    node.textContent = text;
    node.style.setProperty("--level", `${(4 + 44 * within((x - low) / (high - low), 0, 1)).toFixed(1)}%`);
    node.classList.toggle("attn-hidden", x === -Infinity);
    return old ? [node] : [];
  }
  function shine(nodes) { // for a moment
    if (!nodes.length) return;
    const fade = () => root.querySelectorAll(".attn-new").forEach((node) => node.classList.remove("attn-new"));
    fade();
    nodes.forEach((node) => node.classList.add("attn-new"));
    clearTimeout(flash);
    flash = setTimeout(fade, 1200);
  }
  function drawLabels() {
    for (const [block, { cells, heads, sides }] of Object.entries(blocks)) {
      if (["scores", "weights"].includes(block)) heads.forEach((node, j) => node.firstChild.textContent = tokens()[j]);
      sides.forEach((node, i) => {
        if (node.tagName === "SELECT") node.selectedIndex = Object.keys(words).indexOf(tokens()[i]);
        else node.firstChild.textContent = tokens()[i];
      });
      cells.forEach((row, i) => row.forEach((node, j) => {
        const label = `${named(block, i, j)}: ${node.textContent}`;
        if (node.getAttribute("aria-label") !== label) node.setAttribute("aria-label", label);
      }));
    }
  }
  const named = (...at) => naming(at, tokens(), outputs);
  function mark(at) {
    const looks = new Map(), give = (cells, look) => cells.forEach((ref) => looks.set(place(...ref), look));
    if (at) {
      const [first, second] = operands(all, ...at);
      if (first) give(second, MARKS[1]), give(first, MARKS[0]); // a score is in its row as well
      if (INPUTS.includes(at[0])) give(uses(all, ...at).map((text) => cellOf(all, text)), MARKS[2]);
    }
    for (const [block, { cells }] of Object.entries(blocks)) {
      const tab = at?.[0] === block ? place(...at) : cells[0][0];
      for (const node of cells.flat()) {
        node.tabIndex = node === tab ? 0 : -1;
        node.classList.toggle("attn-at", at?.[0] === block && node === tab);
        for (const look of MARKS) node.classList.toggle(look, looks.get(node) === look);
      }
    }
  }
  function drawPanel(at) {
    editor.hidden = !at || !INPUTS.includes(at[0]);
    which.replaceChildren(at ? named(...at) : "Touch a number: what was it made of?",
      h("span", { className: "attn-from" }, at ? madeOf(at, tokens(), outputs) : ""));
    const pieces = at && editor.hidden ? written(all, given(), ...at) : [];
    sum.replaceChildren(...pieces.map(([text, block, raised]) =>
      h(raised ? "sup" : "span", { className: block && `attn-${LOOKS[block]}` }, text)));
    if (editor.hidden) return void (at || (sum.textContent = "Or change one of x or W, and see what follows."));
    sum.textContent = "Drag, slide or type. Dotted cells are made of it.";
    slide.value = value();
    slide.setAttribute("aria-valuetext", format(value(), 2));
    if (!field.matches(":focus")) field.value = format(value(), 2);
  }
  function draw() {
    fresh = true;
    all = compute(given());
    shine(BLOCKS.flatMap((block) => all[block].flatMap((row, i) => row.flatMap((_, j) => drawCell(block, i, j)))));
    drawLabels();
    mark(cell());
    drawPanel(cell());
    switches.forEach((node, at) => node.setAttribute("aria-pressed", String(model.get(["mask", "root"][at]))));
    scaled.textContent = model.get("root") ? ` / √${size}` : "";
  }
  const ask = onceAFrame(() => fresh || draw());
  const stale = () => { fresh = false; ask(); };

  // ---- life
  const again = (rebuild) => rebuild();
  const changes = { ...Object.fromEntries([...INPUTS, "mask", "root", "tokens", "cell"].map((name) => [name, stale])),
    words: again, outputs: again };
  const end = live({ model, el, root, state, ask, changes, render });
  return () => (clearTimeout(flash), end());
}

export default { render };
