// Paints one surface on a canvas: the floor, four posts, the mesh, and dots on it.
import { along, backToFront, camera } from "./surfaces.js";

export const SHADES = 216; // colours of a surface
const CORNERS = [[-1, -1], [1, -1], [1, 1], [-1, 1]];

// `height(i, j)` is the height, 0..1, of a point of the n x n grid; `dots` are [point, colour, radius].
export function paintSurface(canvas, { n, height, azimuth, elevation, dots, theme }) {
  const width = canvas.parentNode.clientWidth, ctx = cleared(canvas, width);
  const look = camera(width, azimuth, elevation), mesh = meshOf(look, n, height);
  ctx.lineJoin = "round";
  ctx.lineWidth = 1;
  ctx.strokeStyle = theme.line;
  paintBox(ctx, look, n, height);
  ctx.lineWidth = n > 25 ? 0.4 : 0.6;
  ctx.strokeStyle = theme.mesh;
  paintCells(ctx, mesh, n, backToFront(n, azimuth), theme.shades);
  paintDots(ctx, mesh, n, dots, theme.page);
}

// The context of the cleared canvas, in CSS pixels; the canvas is square, and sharp on any screen.
function cleared(canvas, width) {
  const pixels = Math.round(width * devicePixelRatio), ctx = canvas.getContext("2d");
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  ctx.setTransform(pixels / width, 0, 0, pixels / width, 0, 0);
  ctx.clearRect(0, 0, width, width);
  return ctx;
}

// Every point's position in pixels and height, row by row.
function meshOf(look, n, height) {
  const heights = new Float64Array(n * n), xs = [], ys = [];
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const z = (heights[i * n + j] = height(i, j));
      [xs[i * n + j], ys[i * n + j]] = look(along(i, n), along(j, n), z);
    }
  }
  return { heights, xs, ys };
}

// The floor, and posts from it to the surface's corners.
function paintBox(ctx, look, n, height) {
  outline(ctx, CORNERS.map(([x, y]) => look(x, y, 0)));
  for (const [x, y] of CORNERS) {
    outline(ctx, [look(x, y, 0), look(x, y, height(x < 0 ? 0 : n - 1, y < 0 ? 0 : n - 1))]);
  }
}
function outline(ctx, points) {
  ctx.beginPath();
  points.forEach(([x, y], step) => (step ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.closePath();
  ctx.stroke();
}

function paintCells(ctx, { heights, xs, ys }, n, [rows, columns], shades) {
  for (const i of rows) {
    for (const j of columns) {
      const at = [i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1, i * n + j + 1];
      const height = (heights[at[0]] + heights[at[1]] + heights[at[2]] + heights[at[3]]) / 4;
      ctx.fillStyle = shades[Math.round((SHADES - 1) * height)];
      ctx.beginPath();
      ctx.moveTo(xs[at[0]], ys[at[0]]);
      for (let c = 1; c < 4; c++) ctx.lineTo(xs[at[c]], ys[at[c]]);
      ctx.closePath();
      ctx.fill();
      ctx.stroke();
    }
  }
}

function paintDots(ctx, { xs, ys }, n, dots, rim) {
  for (const [[i, j], colour, radius] of dots) {
    ctx.beginPath();
    ctx.arc(xs[i * n + j], ys[i * n + j], radius, 0, 2 * Math.PI);
    Object.assign(ctx, { fillStyle: colour, strokeStyle: rim, lineWidth: 2 });
    ctx.fill();
    ctx.stroke();
  }
}
