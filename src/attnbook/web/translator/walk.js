// The walk through one word: query, scores, weights, weighted mean, next word, with the numbers of the reader's input.
import { captions, round, several, stagesOf } from "./captions.js";
import { BLOCKS } from "./looks.js";
import { largest, softmax } from "../shared/math.js";
import { button, disable, h, select } from "../shared/ui.js";

// A vector as a strip: coloured above zero, grey below.
function strip(values, role, most = Math.max(...values.map(Math.abs))) {
  const node = h("span", { className: `attn-vector draw-${role}`, "aria-hidden": "true" }), part = 100 / values.length;
  const colour = (x) => `color-mix(in oklab, var(${x < 0 ? "--attn-muted" : "--attn-role"}) ${
    Math.round((100 * Math.abs(x)) / (most || 1))}%, var(--attn-page))`;
  const stops = Array.from(values, (x, n) => `${colour(x)} ${n * part}% ${(n + 1) * part}%`);
  node.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  return node;
}
const largestOf = (vectors) => Math.max(...vectors.map((v) => Math.max(...v.map(Math.abs))));

function bar(share, text, role) {
  const fill = h("i", { className: `draw-${role}` });
  fill.style.width = `${100 * share}%`;
  const rail = h("span", { className: "attn-rail", "aria-hidden": "true" }, fill);
  return h("span", { className: "attn-level" }, rail, h("b", {}, text));
}

// The table of a step: what a stage adds is shown from that stage on.
function table({ kind, words, target, steps }, at, l, stages, stage) {
  const from = (name) => stage > stages.indexOf(name), { heads, context, logits } = steps[at];
  const { query, keys, values, scores, weights, mean } = heads[l], what = from("mean") ? values : keys;
  const most = largestOf(what), role = from("mean") ? "value" : "key";
  const name = !several(kind) ? "state h" : from("mean") ? "value v" : "key k";
  const line = (label, ...cells) => h("tr", {}, h("th", { scope: "row" }, label), ...cells);
  const vector = (label, values, as, scale) =>
    line(label, h("td", {}, strip(values, as, scale)), h("td", { colSpan: 2 }));
  const rows = words.map((word, j) => {
    const own = strip(what[j], role, most);
    own.style.opacity = from("mean") ? 0.12 + 0.88 * weights[j] : 1;
    return line(word, h("td", {}, own),
      h("td", { className: "attn-score" }, from("scores") ? round(scores[j]) : ""),
      h("td", {}, from("weights") ? bar(weights[j], round(weights[j]), "weight") : ""));
  });
  const p = softmax(logits), likely = largest(p, 3).map((id) =>
    h("span", { className: "attn-chance" }, h("span", { lang: "de" }, target[id] === "</s>" ? "(end)" : target[id]),
      bar(p[id], round(p[id]), "weight")));
  const heading = (text) => (text ? h("th", { scope: "col" }, text) : h("td"));
  const columns = ["english", "numbers", "score", "weight"].map((each) => h("col", { className: `attn-of-${each}` }));
  return h("table", {}, h("caption", { className: "attn-heard" }, "The step in numbers"),
    h("colgroup", {}, ...columns),
    h("thead", {}, vector(several(kind) ? "query q" : "query s", query, "query"),
      h("tr", {}, ...["English", name, from("scores") && "score", from("weights") && "weight"].map(heading))),
    h("tbody", {}, ...rows,
      ...(from("mean") ? [vector(several(kind) ? "found" : "context c", mean, "value", most)] : []),
      ...(from("joined") && several(kind) ? [vector("context c", context, "value")] : []),
      ...(from("next") ? [line("next word", h("td", { colSpan: 3 }, ...likely))] : [])));
}

// `put` sets traits; `labels` names the models that have attention, `which` holds the value of the trait for each.
export function makeWalk(put, labels, which) {
  const model = select("model", labels, (n) => put({ which: which[n], head: 0 }));
  const word = select("German word", [], (n) => put({ at: n })), head = select("head", [], (n) => put({ head: n }));
  const blocks = Array.from({ length: BLOCKS }, (_, l) => String(l + 1));
  const block = select("block", blocks, (attention) => put({ attention }));
  const caption = h("p", { className: "attn-telling", "aria-live": "polite" });
  const shown = h("div", { className: "attn-step" }), count = h("span", { className: "attn-pace" });
  const back = button("Back", () => go(-1)), next = button("Next", () => go(1), "attn-onwards");
  const close = button("Close", () => put({ stage: 0 }));
  const node = h("div", { className: "attn-inside", role: "group", "aria-label": "Walk through one word" },
    h("div", { className: "attn-row" }, ...(labels.length > 1 ? [model.node] : []), word.node, block.node, head.node),
    caption, shown, h("p", { className: "attn-note" }, "A strip is a vector: coloured above zero, grey below."),
    h("div", { className: "attn-moves" }, back, next, count, close));
  let now = { stage: 1, stages: [] };

  // Sets `now` too: a second press may come before the next drawing.
  function to(place) {
    Object.assign(now, place);
    put(place);
  }
  function go(by) {
    const stage = now.stage + by;
    if (stage > now.stages.length) to({ stage: 1, at: (now.at + 1) % now.size });
    else if (stage > 0) to({ stage });
  }
  const fill = (list, names) => {
    if (String(names) === String(Array.from(list, (option) => option.text))) return;
    list.replaceChildren(...names.map((n) => h("option", {}, n)));
  };
  // Draws the walk for an answer of the engine.
  function draw(told, { which: n, at, head: l, stage }) {
    const stages = stagesOf(told.kind), size = told.steps.length, heads = told.steps[at].heads.length;
    now = { at, size, stages, stage: Math.min(stage, stages.length) };
    fill(word.list, told.steps.map((step, i) => `${i + 1}. ${step.word === "</s>" ? "(end)" : step.word}`));
    fill(head.list, Array.from({ length: heads }, (_, i) => String(i + 1)));
    model.list.selectedIndex = which.indexOf(n);
    [word.list.selectedIndex, head.list.selectedIndex, head.node.hidden] = [at, l, heads < 2];
    [block.list.selectedIndex, block.node.hidden] = [told.block ?? 0, told.block === undefined];
    caption.textContent = captions(told, at, l)[stages[now.stage - 1]];
    shown.replaceChildren(table(told, at, l, stages, now.stage));
    disable(back, now.stage === 1);
    next.textContent = now.stage < stages.length ? "Next" : at + 1 < size ? "Next word" : "First word again";
    count.textContent = `step ${now.stage} of ${stages.length}`;
  }
  return { node, draw };
}
