// What the reader does on a sheet: chooses a cell, changes a number with a key, the slider, the field or a drag.
import { format, within } from "../shared/math.js";
import { INPUTS, cellOf, kept } from "../shared/sheet.js";
import { isTheirs, put } from "../shared/ui.js";
import { cellNode } from "./cells.js";

export const STEP = 0.1; // of an arrow key
const PIXELS = 8; // of a drag per step
export const swap = (list, at, by) => list.map((one, n) => (n === at ? by : one));

// The chosen cell as [block, row, column] or null, and its number.
export const cellChosen = ({ all, model }) => cellOf(all, model.get("cell"));
export function valueChosen(sheet) {
  const [block, i, j] = cellChosen(sheet);
  return sheet.all[block][i][j];
}

export function choose(sheet, block, i, j) {
  const { which, sum, heard } = sheet.parts;
  put(sheet.model, { cell: `${block}.${i}.${j}` });
  sheet.draw();
  cellNode(sheet, block, i, j).focus({ preventScroll: true });
  heard.textContent = `${which.textContent} ${sum.textContent}`;
}

export function change(sheet, traits) {
  put(sheet.model, traits);
  sheet.draw();
}

// Sets the chosen number, if it is an input; if it was `typed`, the field stays as the reader wrote it.
export function edit(sheet, to, typed = false) {
  const [block, i, j] = cellChosen(sheet), { field, heard, root } = sheet.parts;
  if (!INPUTS.includes(block) || !Number.isFinite(to)) return;
  const rows = sheet.model.get(block);
  change(sheet, { [block]: swap(rows, i, swap(rows[i], j, kept(to))) });
  const written = format(valueChosen(sheet), 2);
  if (!typed) field.value = written;
  heard.textContent = `${written}, ${root.querySelectorAll(".attn-new").length} numbers changed`;
}

// ---- keys: arrows move between cells, Shift with up or down changes the number, and a digit goes to the field
const TURNS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  Home: [0, -9], End: [0, 9] };

export function cellKey(sheet, block, event) {
  if (!event.target.matches(".attn-num") || isTheirs(event)) return;
  const rows = sheet.blocks[block].cells, here = rows.flat().indexOf(event.target), wide = rows[0].length;
  const i = Math.floor(here / wide), j = here % wide, turn = TURNS[event.key], given = INPUTS.includes(block);
  const chooseThis = () => {
    if (sheet.model.get("cell") !== `${block}.${i}.${j}`) choose(sheet, block, i, j);
  };
  if (given && event.shiftKey && turn?.[0]) {
    event.preventDefault();
    chooseThis();
    edit(sheet, valueChosen(sheet) - turn[0] * STEP);
  } else if (turn) {
    event.preventDefault();
    choose(sheet, block, within(i + turn[0], 0, rows.length - 1), within(j + turn[1], 0, wide - 1));
  } else if (given && /^[-\d.]$/.test(event.key)) {
    chooseThis();
    sheet.parts.field.focus();
    sheet.parts.field.select();
  }
}

export function listenToField(sheet) {
  const { field } = sheet.parts;
  field.addEventListener("keydown", (event) => {
    const step = { ArrowUp: STEP, ArrowDown: -STEP }[event.key];
    if (step) event.preventDefault(), edit(sheet, valueChosen(sheet) + step);
    else if (event.key === "Enter" || event.key === "Escape") cellNode(sheet, ...cellChosen(sheet)).focus();
  });
  field.addEventListener("blur", () => cellChosen(sheet) && (field.value = format(valueChosen(sheet), 2)));
}

// ---- a sideways drag changes an input; up and down still scroll
export function listenToDrags(sheet, block) {
  const { node, cells } = sheet.blocks[block];
  let from = null; // where a drag began: the pointer, the cell and its number
  node.addEventListener("pointerdown", (event) => {
    const i = cells.findIndex((row) => row.includes(event.target));
    if (i < 0) return void (from = null);
    const j = cells[i].indexOf(event.target);
    from = { x: event.clientX, i, j, start: sheet.all[block][i][j], moved: false };
    event.target.setPointerCapture(event.pointerId);
  });
  node.addEventListener("pointermove", (event) => {
    const steps = from && event.buttons ? Math.trunc((event.clientX - from.x) / PIXELS) : 0;
    if (!steps && !from?.moved) return;
    if (!from.moved) choose(sheet, block, from.i, from.j);
    from.moved = true;
    if (event.buttons) edit(sheet, from.start + steps * STEP);
  });
  for (const end of ["pointerup", "pointercancel"]) node.addEventListener(end, () => (from = null));
}
