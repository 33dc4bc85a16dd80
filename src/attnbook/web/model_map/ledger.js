// A model's parameters by part, the size of its cache, and the names of a part.
import { grouped } from "../shared/math.js";
import { h } from "../shared/ui.js";

const SAID = {
  positions: "places", norm: "norms", attention: "self-attention", output: "output layer", words: "hidden words",
  next: "B follows A?", mask: "causal mask", padding: "padding mask",
};

const row = (first, ...texts) =>
  h("tr", {}, h("th", { scope: "row" }, first), ...texts.map((text) => h("td", {}, text)));
const head = (...texts) => h("thead", {}, h("tr", {}, ...texts.map((text) => h("th", { scope: "col" }, text))));

export const sum = (counts) =>
  Object.entries(counts).reduce((all, [part, count]) => all + (part === "cache" ? 0 : count), 0);

// The names of the open part, as rows [here, in papers, in transformers].
function card(part, names) {
  const lines = names.map(([here, paper, theirs]) =>
    h("tr", {}, h("td", {}, h("code", {}, here)), h("td", {}, paper), h("td", {}, h("code", {}, theirs))));
  return h("table", { className: "attn-names" }, h("caption", {}, `Names: ${SAID[part] ?? part}`),
    head("here", "in papers", "in transformers"), h("tbody", {}, ...lines));
}

// What a part does to a token: rows [label, role, numbers, explanation].
function work(title, rows) {
  const lines = rows.map(([label, role, numbers, said]) => h("li", { className: role && `draw-${role}` },
    h("b", {}, label), h("span", { className: "attn-numbers" }, ...numbers.map((x) => h("span", {}, x))),
    h("p", {}, said)));
  const named = `${title} at work in a small model`;
  return h("section", { className: "attn-worked", "aria-label": named },
    h("p", { className: "attn-title" }, named), h("ol", { role: "list" }, ...lines));
}

export function makeLedger(n) {
  const body = h("tbody"), named = h("div", { "aria-live": "polite" }), worked = h("div", { "aria-live": "polite" });
  const table = h("table", { className: "attn-counts" }, head("part", "parameters", "share"), body);
  const node = h("div", { className: "attn-counted" }, worked, table, named);
  let shown = "";
  function draw(counts, part, names, title = "", rows = null) {
    if (shown !== title) worked.replaceChildren(...(rows ? [work(title, rows)] : []));
    shown = title;
    const all = sum(counts), share = (count) => `${(100 * count / all).toFixed(1)} %`;
    const parts = Object.entries(counts).filter(([name]) => name !== "cache");
    body.replaceChildren(...parts.map(([name, count]) => {
      const line = row(SAID[name] ?? name, grouped(count), share(count));
      line.dataset.row = name;
      line.classList.toggle("attn-on", name === part);
      return line;
    }), row("all", grouped(all), ""),
    ...("cache" in counts ? [row(`cache, ${grouped(n)} tokens`, `${grouped(counts.cache)} bytes`, "")] : []));
    named.replaceChildren(...(names ? [card(part, names)] : []));
  }
  return { node, draw };
}
