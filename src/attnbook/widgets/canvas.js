// Draws an attention map with its labels and cursor on a canvas.
import { css, format, ink, ramp, shade, visible } from "./math.js";
import { isDark } from "./ui.js";

export const LEVELS = 65535; // a weight is a 16-bit count of 1/65535
const FONT = 13, PAD = 6, LARGEST_CELL = 44, TALLEST = 600;

// Colours and fonts as the page has them now.
export function readTheme(root) {
  const style = getComputedStyle(root), variable = (name) => style.getPropertyValue(name);
  return {
    colours: ramp(isDark(root)).map((rgb) => ({ css: css(rgb), ink: ink(rgb) })),
    family: style.fontFamily, ink: style.color,
    page: variable("--attn-page"), line: variable("--attn-line"), mark: variable("--attn-mark"),
  };
}

// A token cut to so many pixels; cutting by code point leaves no half emoji.
function shorten(ctx, text, longest) {
  const whole = visible(text), letters = [...whole.slice(0, 200)];
  const fits = () => ctx.measureText(letters.join("") + "…").width <= longest;
  if (ctx.measureText(whole).width <= longest) return whole;
  while (letters.length > 1 && !fits()) letters.pop();
  return letters.join("") + "…";
}

// Where things lie on a canvas at most `width` CSS pixels wide.
export function layout(ctx, width, rows, columns, names, theme) {
  ctx.font = `700 ${FONT}px ${theme.family}`; // the widest a label gets
  const longest = width < 420 ? 78 : 110;
  const [rowLabels, columnLabels] = [rows, columns].map((tokens) => tokens.map((t) => shorten(ctx, t, longest)));
  const size = (labels) => Math.max(...labels.map((label) => ctx.measureText(label).width));
  const rowName = shorten(ctx, `${names[0]} ↓`, 110), tallest = size(columnLabels);
  const left = Math.ceil(size([...rowLabels, rowName])) + 2 * PAD;
  const cell = (right) => Math.min(LARGEST_CELL, (width - left - right) / columns.length);
  let w = cell(2), right = 2, angle = 0; // labels lie flat where they fit, lean where rows of them fit, else stand
  if (tallest > w - 4) {
    angle = Math.PI / 3;
    right = Math.max(2, tallest * Math.cos(angle) - w / 2 + FONT);
    if (cell(right) < 18) [angle, right] = [Math.PI / 2, 2];
    w = cell(right);
  }
  const h = Math.min(LARGEST_CELL, TALLEST / rows.length, Math.max(w, 14));
  w = Math.min(w, 3 * h);
  const top = Math.ceil(tallest * Math.sin(angle) + FONT * Math.cos(angle)) + 3 * PAD + FONT;
  return {
    rows: rows.length, columns: columns.length, rowLabels, columnLabels, rowName, columnName: `${names[1]} →`,
    w, h, left, top, angle,
    width: Math.ceil(left + w * columns.length + right), height: Math.ceil(top + h * rows.length + 3),
    x: (j) => left + Math.round(j * w), y: (i) => top + Math.round(i * h),
  };
}

// A canvas of a map's cells alone, which the cursor does not change; `map` holds 16-bit weights, `most` the one
// that gets the deepest colour.
export function drawCells(at, map, most, theme) {
  const canvas = document.createElement("canvas"), ctx = sized(canvas, at);
  const gap = Math.min(at.w, at.h) >= 8 ? 1 : 0, numbers = at.w >= 34 && at.h >= 20;
  ctx.fillStyle = theme.line; // shows between the cells as a grid, or only around them where they are small
  ctx.fillRect(at.x(0) - 1, at.y(0) - 1, at.x(at.columns) - at.x(0) + 2 - gap, at.y(at.rows) - at.y(0) + 2 - gap);
  ctx.textAlign = "center";
  ctx.font = `11.5px ${theme.family}`;
  for (let i = 0; i < at.rows; i++) {
    const y = at.y(i), height = at.y(i + 1) - y - gap;
    for (let j = 0; j < at.columns; j++) {
      const level = map[i * at.columns + j], colour = theme.colours[shade(level, most)], x = at.x(j);
      ctx.fillStyle = colour.css;
      ctx.fillRect(x, y, at.x(j + 1) - x - gap, height);
      if (numbers && level >= 0.005 * LEVELS) {
        ctx.fillStyle = colour.ink;
        ctx.fillText(format(level / LEVELS, 2), x + at.w / 2, y + at.h / 2 + 0.5);
      }
    }
  }
  return canvas;
}

// Sharp on any screen: sizes are in CSS pixels, the canvas holds as many as the screen shows.
function sized(canvas, at) {
  const width = Math.round(at.width * devicePixelRatio), height = Math.round(at.height * devicePixelRatio);
  if (canvas.width !== width || canvas.height !== height) {
    Object.assign(canvas, { width, height });
    canvas.style.width = `${at.width}px`;
    canvas.style.height = `${at.height}px`;
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(width / at.width, 0, 0, height / at.height, 0, 0);
  ctx.textBaseline = "middle";
  return ctx;
}

// As many labels as fit, and always the one under the cursor.
function paintLabels(ctx, at, labels, chosen, place, room, theme) {
  const step = Math.ceil((FONT + 1) / room);
  labels.forEach((label, n) => {
    const hidden = n % step || (chosen >= 0 && Math.abs(n - chosen) < step);
    if (n !== chosen && hidden) return;
    ctx.save();
    ctx.font = `${n === chosen ? 700 : 400} ${FONT}px ${theme.family}`;
    ctx.fillStyle = n === chosen ? theme.mark : theme.ink;
    place(n);
    ctx.fillText(label, 0, 0);
    ctx.restore();
  });
}

function frame(ctx, x0, y0, x1, y1, theme) {
  for (const [width, colour] of [[4, theme.page], [2, theme.mark]]) { // the light rim keeps it visible on any cell
    ctx.lineWidth = width;
    ctx.strokeStyle = colour;
    ctx.strokeRect(x0 - 1, y0 - 1, x1 - x0 + 1, y1 - y0 + 1);
  }
}

// The whole picture: `i` and `j` are the cursor's row and column, -1 for none.
export function paint(canvas, at, cells, { i, j }, theme) {
  const ctx = sized(canvas, at);
  ctx.clearRect(0, 0, at.width, at.height);
  ctx.drawImage(cells, 0, 0, at.width, at.height);
  ctx.textAlign = "right";
  paintLabels(ctx, at, at.rowLabels, i, (n) => ctx.translate(at.left - PAD, (at.y(n) + at.y(n + 1)) / 2), at.h, theme);
  ctx.textAlign = at.angle ? "left" : "center";
  paintLabels(ctx, at, at.columnLabels, j, (n) => {
    ctx.translate((at.x(n) + at.x(n + 1)) / 2, at.top - PAD - (at.angle ? 0 : FONT / 2));
    ctx.rotate(-at.angle);
  }, at.angle ? at.w * Math.sin(at.angle) : FONT + 1, theme);
  ctx.font = `italic ${FONT - 1}px ${theme.family}`;
  ctx.fillStyle = theme.ink;
  ctx.textAlign = "left";
  ctx.fillText(at.columnName, at.left, FONT / 2 + 1);
  ctx.textAlign = "right";
  ctx.fillText(at.rowName, at.left - PAD, at.top - FONT / 2 - 2);
  if (i >= 0) frame(ctx, at.x(0), at.y(i), at.x(at.columns), at.y(i + 1), theme);
  if (i < 0 && j >= 0) frame(ctx, at.x(j), at.y(0), at.x(j + 1), at.y(at.rows), theme);
  if (i >= 0 && j >= 0) frame(ctx, at.x(j), at.y(i), at.x(j + 1), at.y(i + 1), theme);
}

// The cell under a point of the canvas; -1 over the labels and beyond the map.
export function cellAt(at, x, y) {
  const j = Math.floor((x - at.left) / at.w), i = Math.floor((y - at.top) / at.h);
  return { i: i < at.rows ? Math.max(i, -1) : -1, j: j < at.columns ? Math.max(j, -1) : -1 };
}
