// One model's translation of a number: its words, what is wrong with them, how often it is right, and its maps.
import { compare, wrong } from "./compare.js";
import { NAMES } from "./looks.js";
import { makeMap } from "./map.js";
import { h, select } from "../shared/ui.js";

const percent = (share) => `${Math.round(100 * share)}%`;

// A bar for each number of digits: the share of numbers that the model translates exactly. If there is a set `tried`,
// the bars of lengths outside it are hidden.
function makeShares(exact) {
  const bars = exact.map((share) => {
    const bar = h("i");
    bar.style.setProperty("--share", share);
    return bar;
  });
  const columns = bars.map((bar, n) => h("span", {}, h("span", { className: "attn-rod" }, bar), String(n + 1)));
  const said = h("p", { className: "attn-note" });
  const heading = h("p", { className: "attn-note", "aria-hidden": "true" },
    "Share exactly right, by number of digits:");
  const node = h("div", {}, heading, h("div", { className: "attn-shares", "aria-hidden": "true" }, ...columns), said);
  function draw(digits, trained, tried) {
    columns.forEach((column, n) => {
      column.classList.toggle("attn-on", n + 1 === digits);
      column.classList.toggle("attn-untried", Boolean(tried && !tried.has(n + 1)));
    });
    const kind = digits > 1 ? "Of numbers that it never saw, with" : "Of the numbers with";
    const limit = digits > trained ? ` It has seen at most ${trained} digits.` : "";
    said.textContent = !digits ? "" : `${kind} ${digits} digit${digits > 1 ? "s" : ""}, it gets `
      + `${percent(exact[digits - 1])} exactly right.${limit}`;
  }
  return { node, draw };
}

// A place of the translation: the written word and, if it is wrong, the word that it should be.
function makeWord({ is, should, at }, n, here, choose) {
  const bad = wrong({ is, should });
  const word = h("span", { className: "attn-german", lang: "de" }, is ?? "…");
  const instead = !bad ? [] : [h("span", { className: "attn-should" },
    ...(should ? [h("span", { className: "attn-heard" }, is === null ? " missing: " : " instead of: "),
      h("span", { lang: "de" }, should)] : ["too much"]))];
  const pressed = choose && at >= 0, look = { className: `attn-morpheme${bad ? " attn-wrong" : ""}` };
  const node = h(pressed ? "button" : "span", look, word, ...instead);
  if (pressed) {
    Object.assign(node, { type: "button", onclick: () => choose(at) });
    node.setAttribute("aria-pressed", at === here);
  }
  node.style.setProperty("--n", n);
  return h("li", {}, node);
}

// A judgement of a translation, in words. `places` is null if the true translation is not known.
export function verdict(places) {
  if (!places) return "";
  const bad = places.filter(wrong).length;
  return !bad ? "Right." : `Wrong in ${bad} of ${places.length} parts.`;
}

// `choose` receives the index of a German word (it is null without attention), `look` the index of the Transformer's
// attention to draw, and `tell` the weight under the pointer, in words, or nothing. `views` holds the maps, which are
// shown beside those of other models.
export function makeCard({ label, exact, choose, look, tell }) {
  const words = h("ol", { className: "attn-written", role: "list", "aria-label": `German by ${label}` });
  const said = h("p", { className: "attn-finding" }), shares = makeShares(exact), drawn = [];
  const views = h("div", { className: "attn-own-views" }), which = select("attention", NAMES, look);
  which.node.classList.add("attn-of-maps");
  const box = { className: "attn-card", role: "group", "aria-label": label };
  const node = h("div", box, h("p", { className: "attn-model" }, label),
    words, said, shares.node);
  let shown, last = "";

  function read(head, cell) {
    const { rows, columns, maps } = shown, [i, j] = cell ?? [], name = nameOf(head);
    const later = shown.german.columns && j > i; // crossed out in the map
    tell(cell && `${name}: ${rows[i]} → ${columns[j]} ${later ? "masked" : maps[head][i][j].toFixed(2)}`);
  }
  const nameOf = (head) => (shown.maps.length > 1 ? `${label}, head ${head + 1}` : label);
  const press = (row) => shown.part !== "encoder" && choose(row); // the encoder writes no word
  function drawMaps(here, attention) {
    const { maps, steps } = shown, count = maps.length;
    while (drawn.length < count) {
      const head = drawn.length;
      drawn.push(makeMap((cell) => read(head, cell), press));
    }
    const nodes = [...(look ? [which.node] : []), ...drawn.slice(0, count).map((map) => map.node)];
    if (nodes.some((node, n) => node !== views.children[n])) views.replaceChildren(...nodes); // keeps focus if not
    which.list.selectedIndex = attention;
    which.list.disabled = !steps; // a stored answer has only one
    maps.forEach((weights, l) => drawn[l].draw(weights, shown, shown.part === "encoder" ? -1 : here, nameOf(l)));
  }

  // Draws an answer from `seen` in looks.js, or nothing while there is none; `here` is the index of the chosen word.
  function draw(told, { truth, digits, trained, tried, here, attention }) {
    const places = told && truth && compare(told.written, truth);
    const all = places ?? told?.written.map((is, at) => ({ is, should: is, at })) ?? [];
    const now = JSON.stringify(all);
    if (now === last) markHere(here);
    else words.replaceChildren(...all.map((place, n) => makeWord(place, n, here, choose)));
    words.classList.toggle("attn-fresh", last !== "" && now !== last);
    last = now;
    said.textContent = told ? verdict(places) : "";
    said.classList.toggle("attn-amiss", Boolean(places?.some(wrong)));
    shares.draw(digits, trained, tried);
    shown = told;
    if (choose && told) drawMaps(here, attention);
    else views.replaceChildren();
    return places;
  }
  function markHere(here) {
    const pressed = [...words.querySelectorAll("button")];
    pressed.forEach((each, n) => each.setAttribute("aria-pressed", n === here));
  }
  return { node, views, draw };
}
