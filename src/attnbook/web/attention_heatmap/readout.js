// What a heatmap says about a cell, on screen and aloud, and its tables. Tokens are isolated from the text around them.
import { visible } from "../shared/math.js";
import { h, token } from "../shared/ui.js";
import { level, mapsOnView, namesOnView, weight } from "./maps.js";

// The weights of a cell as [name, text], one for each map.
function values(view, i, j) {
  const names = namesOnView(view);
  return mapsOnView(view).map((map, m) => [view.two ? names[m] : view.what, weight(view, map, i, j)]);
}

// The line below the maps.
export function sentence(view, { i, j }) {
  const { rows, columns, labels: [rowName, columnName], what } = view;
  if (i < 0 && j < 0) return [`Hover, tap or use the arrow keys to read a ${what}.`];
  const query = i < 0 ? [] : [`${rowName} `, token(visible(rows[i]))];
  const key = j < 0 ? [] : [`${i < 0 ? "" : " → "}${columnName} `, token(visible(columns[j]))];
  const map = mapsOnView(view)[0];
  if (i >= 0 && columns.every((_, n) => !level(view, map, i, n))) key.push(" (attends to nothing)");
  if (i < 0 || j < 0) return [...query, ...key];
  return [...query, ...key, ...values(view, i, j).flatMap(([name, value]) => [` · ${name} `, h("b", {}, value)])];
}

// The tooltip.
export function brief(view, { i, j }) {
  const { rows, columns, two } = view;
  const tokens = [...(i < 0 ? [] : [visible(rows[i])]), ...(j < 0 ? [] : [visible(columns[j])])].map(token);
  const numbers = i < 0 || j < 0 ? []
    : values(view, i, j).flatMap(([name, value]) => [two ? ` · ${name} ` : "  ", h("b", {}, value)]);
  return [tokens[0], ...tokens.slice(1).flatMap((text) => [" → ", text]), ...numbers];
}

// What a screen reader says.
export function aloud(view, { i, j }) {
  const { rows, columns, labels: [rowName, columnName] } = view;
  if (i < 0 || j < 0) return sentence(view, { i, j });
  return [`${rowName} ${visible(rows[i])}, ${columnName} ${visible(columns[j])}, `
    + values(view, i, j).map((pair) => pair.join(" ")).join(", ")];
}

// A table for each map, and a note on how exact they are.
export function makeTables(view) {
  const { rows, columns, labels: [rowName, columnName] } = view, names = namesOnView(view);
  const heading = (scope) => (text) => h("th", { scope }, token(visible(text)));
  const region = { className: "attn-table", tabIndex: 0, role: "region" };
  const tables = mapsOnView(view).map((map, m) =>
    h("div", { ...region, "aria-label": `Table: ${names[m]}` }, h("table", {},
      h("caption", {}, `${names[m]}: a row for each ${rowName}, a column for each ${columnName}`),
      h("thead", {}, h("tr", {}, h("td"), ...columns.map(heading("col")))),
      h("tbody", {}, ...rows.map((text, i) =>
        h("tr", {}, heading("row")(text), ...columns.map((_, j) => h("td", {}, weight(view, map, i, j)))))))));
  const note = "Weights are stored in 16 bits: within 0.000008 of what was given.";
  return [...tables, h("p", { className: "attn-note" }, note)];
}
