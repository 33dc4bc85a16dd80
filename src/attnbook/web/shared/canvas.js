// Draws an attention map with its labels and cursor on a canvas.
import { css, format, ink, ramp, shade, visible, within } from "./math.js";
import { isDark } from "./ui.js";

export const LEVELS = 65535; // a weight is 16 bits, in units of 1/65535
const FONTS = [13, 12, 11], PAD = 6, LARGEST_CELL = 44, TALLEST = 600;
const GAP = 8; // between two maps side by side, as in the style sheet
const NARROWEST = 11, SLID = 14; // pixels of a cell: the least beside another map; in a map that slides
const MOST_SLID = 48; // most columns of a map that slides

// The page's current colours and fonts.
export function readTheme(root) {
  const style = getComputedStyle(root), variable = (name) => style.getPropertyValue(name);
  return {
    colours: ramp(isDark(root)).map((rgb) => ({ css: css(rgb), ink: ink(rgb) })),
    family: style.fontFamily, ink: style.color,
    page: variable("--attn-page"), line: variable("--attn-line"), mark: variable("--attn-mark"),
  };
}

// Cuts a token to `longest` pixels, by code point, so that no emoji is split.
function shorten(ctx, text, longest) {
  const whole = visible(text), letters = [...whole.slice(0, 200)];
  const fits = () => ctx.measureText(letters.join("") + "…").width <= longest;
  if (ctx.measureText(whole).width <= longest) return whole;
  while (letters.length > 1 && !fits()) letters.pop();
  return letters.join("") + "…";
}

// Breaks a text into the fewest lines that fit a width.
function wrap(ctx, text, longest) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && ctx.measureText(longer).width <= longest) lines[lines.length - 1] = longer;
    else lines.push(shorten(ctx, word, longest));
  }
  return lines;
}

// Lays out a canvas at most `width` CSS pixels wide. Two maps are side by side where that leaves cells at least
// NARROWEST pixels wide; the second then has no row labels. Labels shrink before any is dropped, and a map that may
// slide grows.
export function layout(ctx, width, rows, columns, names, theme, { maps = 1, slide = false } = {}) {
  for (const abreast of maps > 1 ? [true, false] : [false]) {
    for (const font of FONTS) {
      const at = arrange(ctx, width, rows, columns, names, theme, font, abreast);
      if (at.fits && (!abreast || at.w >= NARROWEST)) return at;
    }
  }
  const slides = slide && columns.length <= MOST_SLID ? SLID : 0;
  return arrange(ctx, width, rows, columns, names, theme, FONTS[0], false, slides);
}

function arrange(ctx, width, rows, columns, names, theme, font, abreast, slides = 0) {
  ctx.font = `700 ${font}px ${theme.family}`; // the widest a label gets
  const n = columns.length, times = abreast ? 2 : 1, longest = width < 420 ? 78 : 110;
  const rowLabels = rows.map((text) => shorten(ctx, text, within(width / times - 24 * n, longest, 140)));
  const columnLabels = columns.map((text) => shorten(ctx, text, longest));
  const size = (labels) => Math.max(...labels.map((label) => ctx.measureText(label).width));
  const rowWords = `${names[0]}\u00a0↓`.split(" ").map((word) => shorten(ctx, word, longest));
  const tallest = size(columnLabels);
  const left = Math.ceil(size([...rowLabels, ...rowWords])) + 2 * PAD;
  const room = (right) => (width - left - times * right - (times - 1) * GAP) / (times * n);
  const cell = (right) => slides || Math.min(LARGEST_CELL, room(right));
  let w = cell(2), right = 2, angle = 0; // labels are flat if they fit, slanted if rows of them fit, else upright
  const between = columns.every((text) => text.length < 2) ? 1 : 4; // single letters may be closer
  if (tallest > w - between) {
    angle = Math.PI / 3;
    right = Math.max(2, tallest * Math.cos(angle) - w / 2 + font);
    if (cell(right) < 18) [angle, right] = [Math.PI / 2, 2];
    w = cell(right);
  }
  const h = Math.min(LARGEST_CELL, TALLEST / rows.length, Math.max(w, 16));
  w = Math.min(w, 3 * h);
  const rowName = wrap(ctx, rowWords.join(" "), left - 2 * PAD), line = font + 2, across = w * n + right;
  const columnName = wrap(ctx, `${names[1]}\u00a0→`, Math.max(across, Math.min(110, width / times - left)));
  const labels = Math.ceil(tallest * Math.sin(angle) + font * Math.cos(angle)) + 2 * PAD;
  const top = Math.max(labels + columnName.length * line, rowName.length * line + PAD);
  const wide = (from) => Math.ceil(from + Math.max(across, size(columnName)));
  const shape = (from) => ({ left: from, width: wide(from), x: (j) => from + Math.round(j * w) });
  const at = {
    rows: rows.length, columns: n, rowLabels, columnLabels, rowName, columnName, font, w, h, top, angle, abreast,
    slides: slides > 0 && wide(left) > width, fits: !angle || w * Math.sin(angle) >= font,
    height: Math.ceil(top + h * rows.length + 3), y: (i) => top + Math.round(i * h), ...shape(left),
  };
  return { ...at, beside: abreast ? { ...at, rowLabels: [], rowName: [], ...shape(2) } : at };
}

// A canvas with only the map's cells, which do not depend on the cursor; `map` holds 16-bit weights, `most` is the one
// that gets the deepest colour, `crossed(n)` says whether cell n is crossed out.
export function drawCells(at, map, most, theme, crossed = () => false) {
  const canvas = document.createElement("canvas"), ctx = sized(canvas, at);
  const gap = Math.min(at.w, at.h) >= 8 ? 1 : 0, numbers = at.w >= 34 && at.h >= 20;
  ctx.fillStyle = theme.line; // shows between the cells as a grid, or only around them where they are small
  ctx.fillRect(at.x(0) - 1, at.y(0) - 1, at.x(at.columns) - at.x(0) + 2 - gap, at.y(at.rows) - at.y(0) + 2 - gap);
  ctx.textAlign = "center";
  ctx.font = `11.5px ${theme.family}`;
  for (let i = 0; i < at.rows; i++) {
    const y = at.y(i), height = at.y(i + 1) - y - gap;
    for (let j = 0; j < at.columns; j++) {
      const n = i * at.columns + j, level = map[n], colour = theme.colours[shade(level, most)], x = at.x(j);
      ctx.fillStyle = colour.css;
      ctx.fillRect(x, y, at.x(j + 1) - x - gap, height);
      if (crossed(n)) cross(ctx, x, y, at.x(j + 1) - x - gap, height, theme);
      if (numbers && level >= 0.005 * LEVELS) {
        ctx.fillStyle = colour.ink;
        ctx.fillText(format(level / LEVELS, 2), x + at.w / 2, y + at.h / 2 + 0.5);
      }
    }
  }
  return canvas;
}

function cross(ctx, x, y, width, height, theme) {
  ctx.beginPath();
  ctx.moveTo(x + 1.5, y + height - 1.5);
  ctx.lineTo(x + width - 1.5, y + 1.5);
  Object.assign(ctx, { lineWidth: 1, strokeStyle: theme.ink, globalAlpha: 0.6 });
  ctx.stroke();
  ctx.globalAlpha = 1;
}

// Keeps a canvas sharp on any screen: sizes are in CSS pixels, but it holds as many pixels as the screen shows.
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

// Paints as many labels as fit, and always the one under the cursor.
function paintLabels(ctx, at, labels, chosen, place, room, theme) {
  const step = Math.ceil(at.font / room);
  labels.forEach((label, n) => {
    const hidden = n % step || (chosen >= 0 && Math.abs(n - chosen) < step);
    if (n !== chosen && hidden) return;
    ctx.save();
    ctx.font = `${n === chosen ? 700 : 400} ${at.font}px ${theme.family}`;
    ctx.fillStyle = n === chosen ? theme.mark : theme.ink;
    place(n);
    ctx.fillText(label, 0, 0);
    ctx.restore();
  });
}

function frame(ctx, x0, y0, x1, y1, theme) {
  for (const [width, colour] of [[4, theme.page], [2, theme.mark]]) { // the page-coloured rim keeps it visible
    ctx.lineWidth = width;
    ctx.strokeStyle = colour;
    ctx.strokeRect(x0 - 1, y0 - 1, x1 - x0 + 1, y1 - y0 + 1);
  }
}

// Paints the whole picture: `i` and `j` are the cursor's row and column, -1 for none.
export function paint(canvas, at, cells, { i, j }, theme) {
  const ctx = sized(canvas, at);
  ctx.clearRect(0, 0, at.width, at.height);
  ctx.drawImage(cells, 0, 0, at.width, at.height);
  ctx.textAlign = "right";
  paintLabels(ctx, at, at.rowLabels, i, (n) => ctx.translate(at.left - PAD, (at.y(n) + at.y(n + 1)) / 2), at.h, theme);
  ctx.textAlign = at.angle ? "left" : "center";
  paintLabels(ctx, at, at.columnLabels, j, (n) => {
    ctx.translate((at.x(n) + at.x(n + 1)) / 2, at.top - PAD - (at.angle ? 0 : at.font / 2));
    ctx.rotate(-at.angle);
  }, at.angle ? at.w * Math.sin(at.angle) : at.font + 1, theme);
  ctx.font = `italic ${at.font - 1}px ${theme.family}`;
  ctx.fillStyle = theme.ink;
  const line = at.font + 2;
  ctx.textAlign = "left";
  at.columnName.forEach((text, n) => ctx.fillText(text, at.left, (n + 0.5) * line));
  ctx.textAlign = "right";
  at.rowName.forEach((text, n) => {
    ctx.fillText(text, at.left - PAD, at.top - PAD - (at.rowName.length - n - 0.5) * line);
  });
  if (i >= 0) frame(ctx, at.x(0), at.y(i), at.x(at.columns), at.y(i + 1), theme);
  if (i < 0 && j >= 0) frame(ctx, at.x(j), at.y(0), at.x(j + 1), at.y(at.rows), theme);
  if (i >= 0 && j >= 0) frame(ctx, at.x(j), at.y(i), at.x(j + 1), at.y(i + 1), theme);
}

// The cell under a point of the canvas; -1 over the labels and beyond the map.
export function cellAt(at, x, y) {
  const j = Math.floor((x - at.left) / at.w), i = Math.floor((y - at.top) / at.h);
  return { i: i < at.rows ? Math.max(i, -1) : -1, j: j < at.columns ? Math.max(j, -1) : -1 };
}

// Keeps the row labels of a map that slides in view: `still`, a copy of them, stays fixed on top of it.
export function hold(canvas, still, at) {
  if (!at.slides) return still.remove();
  Object.assign(still, { width: Math.round((canvas.width * (at.left - 1)) / at.width), height: canvas.height });
  still.style.width = `${at.left - 1}px`;
  still.style.height = canvas.style.height;
  still.getContext("2d").drawImage(canvas, 0, 0);
  if (!still.isConnected) canvas.after(still);
}

// Whether any view of these maps has no deep colour; a map holds either one view for all or one per view.
export function isPale(every, area) {
  const views = Math.max(...every.map((all) => all.length)) / area;
  const view = (all, k) => (all.length === area ? all : all.subarray(k * area, (k + 1) * area));
  const pale = (k) => every.every((all) => view(all, k).every((level) => level < 0.9 * LEVELS));
  return Array.from({ length: views }, (_, k) => k).some(pale);
}
