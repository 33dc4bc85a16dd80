// Blocks of cells on a sheet: their elements, the numbers in them, their names, and how they are marked.
import { within } from "../shared/math.js";
import { BLOCKS, INPUTS, NAMES, brief, cellOf, naming, operands, uses } from "../shared/sheet.js";
import { h, token } from "../shared/ui.js";

// A sheet is { model, all, blocks, ... }: `all` holds the numbers, `blocks` the elements, both by the name of a block.
export const LOOKS = { x: "state", w_q: "query", w_k: "key", w_v: "value", q: "query", k: "key", v: "value",
  scores: "weight", weights: "weight", out: "state" };
export const FAR = 3; // the largest number that a slider and the colours reach
const MARKS = ["attn-first", "attn-second", "attn-next"]; // the two vectors that make a cell, and what it goes into
const PAIRS = ["scores", "weights"]; // these have a row and a column for each token

export const cellNode = ({ blocks }, block, i, j) => blocks[block].cells[i][j];
export const called = ({ model }, at) => naming(at, model.get("tokens"), model.get("outputs"));
export const labelNode = (text) => h("span", { className: "attn-lab", "aria-hidden": "true" }, token(text));

// The block's node, its cells by row, its column labels (`heads`), and its row labels (`sides`), which `side` makes.
// `touch` receives the row and column of a pressed cell.
export function makeBlock({ model, all }, block, { side, touch }) {
  const rows = all[block], tokens = model.get("tokens"), sided = !block.startsWith("w_");
  const across = PAIRS.includes(block) ? tokens : ["v", "out"].includes(block) ? model.get("outputs") : [];
  const cells = rows.map((row, i) => row.map((_, j) => h("button", { type: "button", className: "attn-num",
    onclick: () => touch(i, j) })));
  const heads = across.map(labelNode), sides = sided ? tokens.map(side) : [];
  const corner = sided && across.length ? [h("span")] : [];
  const node = h("div", { className: `attn-block attn-${LOOKS[block]}`, role: "group",
    "aria-label": `${NAMES[block]}: ${rows.length} rows of ${rows[0].length}` },
  ...corner, ...heads, ...cells.flatMap((row, i) => (sided ? [sides[i], ...row] : row)));
  node.style.setProperty("--columns", `${sided ? "var(--side) " : ""}repeat(${rows[0].length}, var(--cell))`);
  if (INPUTS.includes(block)) node.classList.add("attn-given");
  return { node, cells, heads, sides };
}

// Whether the mask hides a score, and so its weight.
const hides = ({ all }, block, i, j) => PAIRS.includes(block) && all.scores[i][j] === -Infinity;

// Writes the numbers and returns the cells whose number changed.
export const drawNumbers = (sheet) => BLOCKS.flatMap((block) =>
  sheet.all[block].flatMap((row, i) => row.flatMap((_, j) => drawNumber(sheet, block, i, j))));

function drawNumber(sheet, block, i, j) {
  const x = sheet.all[block][i][j], node = cellNode(sheet, block, i, j), text = brief(x);
  const low = block === "weights" ? 0 : -FAR, high = block === "weights" ? 1 : FAR, old = node.textContent;
  node.classList.toggle("attn-hidden", hides(sheet, block, i, j));
  if (old === text) return [];
  node.textContent = text;
  node.style.setProperty("--level", `${(4 + 44 * within((x - low) / (high - low), 0, 1)).toFixed(1)}%`);
  return old ? [node] : [];
}

// Writes the labels, and each cell's name for screen readers.
export function drawLabels(sheet) {
  const tokens = sheet.model.get("tokens"), known = Object.keys(sheet.model.get("words"));
  for (const [block, { cells, heads, sides }] of Object.entries(sheet.blocks)) {
    if (PAIRS.includes(block)) heads.forEach((node, j) => node.firstChild.textContent = tokens[j]);
    sides.forEach((node, i) => {
      if (node.tagName === "SELECT") node.selectedIndex = known.indexOf(tokens[i]);
      else node.firstChild.textContent = tokens[i];
    });
    cells.forEach((row, i) => row.forEach((node, j) => {
      const label = `${called(sheet, [block, i, j])}: ${node.textContent}`;
      if (node.getAttribute("aria-label") !== label) node.setAttribute("aria-label", label);
    }));
  }
}

// The look of each cell that the cell `at` is made of or goes into, by node.
function looksAround(sheet, at) {
  const { all } = sheet, looks = new Map();
  const give = (cells, look) => cells.forEach((cell) => looks.set(cellNode(sheet, ...cell), look));
  if (!at) return looks;
  const [first, second] = operands(all, ...at);
  if (first) give(second, MARKS[1]), give(first, MARKS[0]); // a weight's score is also in its row
  if (INPUTS.includes(at[0])) give(uses(all, ...at).map((text) => cellOf(all, text)), MARKS[2]);
  return looks;
}

// Marks the cell `at` and the cells that it is made of or goes into, and sets each block's tab stop.
export function markCells(sheet, at) {
  const looks = looksAround(sheet, at);
  for (const [block, { cells }] of Object.entries(sheet.blocks)) {
    const here = at?.[0] === block, tab = here ? cellNode(sheet, ...at) : cells[0][0];
    for (const node of cells.flat()) {
      node.tabIndex = node === tab ? 0 : -1;
      node.classList.toggle("attn-at", here && node === tab);
      for (const look of MARKS) node.classList.toggle(look, looks.get(node) === look);
    }
  }
}
