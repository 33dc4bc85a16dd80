// An attention map as a table: one row per query word, one column per key word.
import { h } from "../shared/ui.js";

// `tell` receives the cell [row, column] under the pointer, or nothing; `choose` the row of a pressed cell.
export function makeMap(tell, choose) {
  const node = h("div", { className: "attn-grid" });
  const cellAt = ({ target }) => {
    const { i, j } = target.closest("td")?.dataset ?? {};
    return i && [Number(i), Number(j)];
  };
  node.addEventListener("pointerover", (event) => tell(cellAt(event)));
  node.addEventListener("pointerleave", () => tell());
  node.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell) choose(cell[0]);
  });
  let last = "";

  function cell(weight, i, j, later) {
    const td = h("td", later ? { className: "attn-later" } : {}, later ? "masked" : weight.toFixed(2));
    td.style.setProperty("--level", weight.toFixed(3));
    Object.assign(td.dataset, { i, j });
    return td;
  }
  // `german`: whether rows and columns are German; if columns are, this is the decoder's self-attention, and later
  // words are masked. A label in brackets is not a word.
  function draw(weights, { rows, columns, german }, here, name) {
    const now = JSON.stringify([weights, rows, columns, name]);
    const lang = (word, is) => (is && !word.startsWith("(") ? { lang: "de" } : {});
    if (now !== last) {
      node.replaceChildren(h("table", {}, h("caption", {}, name),
        h("thead", {}, h("tr", {}, h("td", { className: "attn-corner" }),
          ...columns.map((word) => h("th", { scope: "col", ...lang(word, german.columns) }, h("span", {}, word))))),
        h("tbody", {}, ...weights.map((row, i) =>
          h("tr", {}, h("th", { scope: "row", ...lang(rows[i], german.rows) }, rows[i]),
            ...row.map((weight, j) => cell(weight, i, j, german.columns && j > i)))))));
    }
    last = now;
    node.querySelectorAll("tbody tr").forEach((row, i) => row.classList.toggle("attn-on", i === here));
  }
  return { node, draw };
}
