// The parts of MaskedWords on the page: the words as buttons, the likely words as bars, the heads as a table.
import { ordinal } from "./masked.js";
import { MASK } from "../engine/wordpiece.js";
import { format, grouped, share, visible } from "../shared/math.js";
import { h, token } from "../shared/ui.js";

const FEW = 6; // most words in a remark

function filled(node, level) {
  node.style.setProperty("--level", level);
  return node;
}

// A button for each word. `hide` receives the index of a pressed one.
export function makeChips(hide) {
  const node = h("div", { className: "attn-chips", role: "group", "aria-label": "Words. Press one to hide it." });
  let buttons = [], ends = [], shown = "";

  function fill(words) {
    buttons = words.map((_, n) => h("button", { type: "button", className: "attn-chip", onclick: () => hide(n) }));
    ends = ["[CLS]", "[SEP]"].map((name) => h("span", { className: "attn-piece attn-end" }, name));
    node.replaceChildren(ends[0], ...buttons, ends[1]);
  }

  // `level(place)` is how far a place of the row is filled, 0 to 1.
  function draw({ words, row, masks }, ready, level) {
    const all = JSON.stringify(words.map(({ text }) => text));
    if (shown !== all) fill(words); // otherwise the pressed button keeps the focus
    shown = all;
    words.forEach(({ text, known, places }, n) => {
      const chip = buttons[n], hidden = masks.includes(n) && places.length > 0;
      const read = (place) => (hidden ? "[MASK]" : known ? row[place] : text);
      const pieces = places.length ? places.map((place) => [read(place), level(place)]) : [[text, 0]];
      chip.replaceChildren(...pieces.map(([piece, full]) =>
        filled(h("bdi", { className: "attn-piece" }, visible(piece)), full)));
      chip.classList.toggle("attn-unknown", !known);
      chip.disabled = !ready || !places.length || text === MASK; // a typed [MASK] is removed by editing the text
      chip.setAttribute("aria-pressed", hidden);
      const name = visible(text) + (known ? "" : ", unknown to the model");
      const behind = `${MASK.repeat(places.length)}, ${name}`;
      chip.setAttribute("aria-label", hidden && text !== MASK ? behind : name);
    });
    ends.forEach((end, n) => filled(end, level(n * (row.length - 1))));
  }
  return { node, draw };
}

// Remarks on words that are unknown, cut into pieces, or not read.
export function remarks({ words, row }) {
  const list = (some, more = () => "") => [
    ...some.slice(0, FEW).flatMap((word, n) => [n ? ", " : "", token(visible(word.text)), more(word)]),
    some.length > FEW ? ` and ${some.length - FEW} more` : "",
  ];
  const unknown = words.filter(({ known, places }) => !known && places.length);
  const cut = words.filter(({ places }) => places.length > 1), late = words.filter(({ places }) => !places.length);
  const parts = ({ places }) => ` = ${places.map((place) => row[place]).join(" ")}`;
  const lines = [
    [unknown, "Unknown to the model, which reads [UNK] instead: ", ...list(unknown)],
    [cut, "Not in its vocabulary, so read in pieces: ", ...list(cut, parts)],
    [late, `Not read, as ${row.length} tokens are the most that fit: `, ...list(late)],
  ];
  return lines.filter(([some]) => some.length).map(([, ...line]) => h("p", { className: "attn-note" }, ...line));
}

// The bars of one hidden place or word: `best`, the likeliest tokens or words, with a full bar at the probability
// `full`, and the number of `others` ("all" if the word is in pieces). `then` returns the earlier probability of a
// token, if it had one.
export function makeBars({ hidden, name, own, rank, pieces }, best, others, full, then) {
  const line = ({ token: text, p }) => {
    const was = then(text);
    const fill = h("i", { className: "attn-fill" });
    const mark = h("i", { className: "attn-then", hidden: was === undefined });
    fill.style.width = `${(100 * p) / full}%`;
    if (was !== undefined) mark.style.left = `${(100 * was) / full}%`;
    return h("li", { className: text === hidden ? "attn-own" : "" },
      h("span", { className: "attn-label", title: text }, token(visible(text))),
      h("span", { className: "attn-track", "aria-hidden": "true" }, fill, mark), h("b", {}, share(p)),
      h("span", { className: "attn-heard" }, was === undefined ? "" : ` before ${share(was)}`));
  };
  const rest = Math.max(0, best.reduce((left, one) => left - one.p, 1)), was = then(hidden);
  return h("section", { className: "attn-place", "aria-label": `Instead of ${visible(name)}` },
    h("p", { className: "attn-instead" }, "instead of ", token(visible(name))),
    h("ul", { className: "attn-likely", role: "list" },
      ...best.map(line),
      h("li", {}, h("span", {}, `${pieces ? "all" : grouped(others)} others`), h("span"), h("b", {}, share(rest)))),
    ...(hidden === MASK ? [] : [h("p", { className: "attn-note" }, token(visible(hidden)), ` itself: ${share(own)}`,
      rank ? `, ${ordinal(rank)}` : "", was === undefined ? "" : ` (before: ${share(was)})`)]),
    ...(pieces ? [h("p", { className: "attn-note" }, `The model guesses ${pieces.length} pieces, `,
      ...pieces.flatMap((piece, n) => [n ? " " : "", token(visible(piece))]),
      ", each without the others: a word's chance is the product of theirs, and few are words. ",
      "Write [MASK] in its place to ask for one whole word.")] : []));
}

// The weight of every head between a place and each token: one row per token, one column per head. `tell` receives the
// cell under the pointer, or nothing; `choose` a pressed one. Cells are filled by the `level` of their weight; `on`
// says which heads are chosen, `hidden` which tokens are hidden.
export function makeHeads(tell, choose) {
  const node = h("div", { className: "attn-heads", role: "region", tabIndex: 0, "aria-label": "Weights of all heads" });
  const cellAt = ({ target }) => {
    const { place, layer, head } = target.closest("td[data-place]")?.dataset ?? {};
    return place && { place: Number(place), layer: Number(layer), head: Number(head) };
  };
  node.addEventListener("pointerover", (event) => tell(cellAt(event)));
  node.addEventListener("pointerleave", () => tell());
  node.addEventListener("click", (event) => cellAt(event) && choose(cellAt(event)));

  function draw(row, hidden, weights, [layers, heads], on, level, caption) {
    const each = (size, make) => Array.from({ length: size }, (_, n) => make(n));
    const look = (n) => (on[n] ? "attn-on" : "");
    const cell = (place, n) => {
      const td = filled(h("td", { className: look(n) }, format(weights[place][n], 2)), level(weights[place][n]));
      Object.assign(td.dataset, { place, layer: Math.floor(n / heads), head: n % heads });
      return td;
    };
    node.replaceChildren(h("table", {}, h("caption", { className: "attn-heard" }, caption),
      h("thead", {},
        h("tr", {}, h("td"), ...each(layers, (n) => h("th", { scope: "colgroup", colSpan: heads }, `layer ${n + 1}`))),
        h("tr", {}, h("td", {}, "head"),
          ...each(layers * heads, (n) => h("th", { scope: "col", className: look(n) }, `${(n % heads) + 1}`)))),
      h("tbody", {}, ...row.map((text, place) => {
        const name = h("th", { scope: "row" }, h("bdi", {}, visible(text)));
        name.classList.toggle("attn-hidden", hidden(place));
        return h("tr", {}, name, ...each(layers * heads, (n) => cell(place, n)));
      }))));
  }
  return { node, draw };
}
