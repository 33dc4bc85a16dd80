// MaskedWords: words of the reader's own sentence are hidden, and a BERT in the page says what it would put there.
import { wordsOf } from "../engine/wordpiece.js";
import { chosen, distributions, likeliest, looks, mean, stillHidden } from "./masked.js";
import { makeBars, makeChips, makeHeads, remarks } from "./view.js";
import {
  format, fromSlider, fullBar, largest, share, toSlider, unpackWeights, visible, within,
} from "../shared/math.js";
import { summon } from "../shared/model.js";
import { slider } from "../shared/plot.js";
import { h, live, onceAFrame, put, select, stateControls, token } from "../shared/ui.js";

const LEVELS = 65535, LETTERS = 500, MOST = 20; // of stored weights; of a text; of the words shown

function render({ model, el }) {
  const title = model.get("title"), lowercase = model.get("lowercase");
  const { shape, likely, ...rest } = model.get("answer"), levels = unpackWeights(model.get("attention"));
  const stored = { ...rest, attention: { shape, data: Float32Array.from(levels, (level) => level / LEVELS) } };
  const [layers, heads] = shape, numbers = (size) => Array.from({ length: size }, (_, n) => String(n + 1));
  let answer = stored, before = null, typing = false, told; // before: the answer before the reader's last change
  let engine, tokens, ids; // of the model, once it is there

  // ---- elements
  const text = h("textarea", {
    rows: 2, maxLength: LETTERS, spellcheck: false, "aria-label": "Your sentence",
    oninput: edit, onchange: () => (typing = false),
    onkeydown: (event) => { if (event.key === "Enter") { event.preventDefault(); typing = false; } },
  });
  const chips = makeChips(hide), notes = h("div"), tinted = h("p", { className: "attn-note" });
  const bars = h("div", { className: "attn-places" }), scale = h("p", { className: "attn-note" });
  const status = h("p", { className: "attn-note", role: "status", "aria-live": "polite" });
  const warmth = slider("temperature", { min: 0, max: 1, step: 0.01 },
    (x) => put(model, { temperature: fromSlider(x) }));
  const top = slider("words shown", { min: 1, max: MOST, step: 1 }, (n) => put(model, { top: n }));
  const which = select("hidden word", [], (n) => put(model, { place: n }));
  const way = select("direction", ["what it looks at", "what looks at it"], (n) => put(model, { into: n > 0 }));
  const layer = select("layer", ["all", ...numbers(layers)], (n) => put(model, { layer: n - 1 }));
  const head = select("head", ["all", ...numbers(heads)], (n) => put(model, { head: n - 1 }));
  const map = makeHeads(tell, ({ layer: l, head: k }) => put(model, { layer: l, head: k }));
  const readout = h("p", { className: "attn-readout" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const attention = h("div", {}, h("p", { className: "attn-legend" }, "Attention of the hidden place, head by head"),
    h("div", { className: "attn-row" }, which.node, way.node, layer.node, head.node), map.node, readout);
  const state = stateControls(el, model.get("name"), read, write);
  const root = h("div", { className: "attn attn-masked", role: "group", "aria-label": title || "Masked words" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    h("p", { className: "attn-lead" },
      "Press a word to hide it: the model reads the rest and says what it would put there. "
      + "The sentence is yours to change."),
    text, chips.node, tinted, notes, status, bars, scale, warmth.node, top.node,
    attention, heard, state.bar);

  // ---- what the reader does
  function edit() {
    if (!typing) before = answer;
    typing = true;
    const words = text.value.toWellFormed?.() ?? text.value;
    const [was, is] = [model.get("text"), words].map((each) => wordsOf(each, lowercase));
    put(model, { text: words, masks: stillHidden(model.get("masks"), was, is) });
  }
  function hide(n) {
    before = answer;
    typing = false;
    const masks = model.get("masks"), others = masks.filter((m) => m !== n);
    put(model, { masks: masks.includes(n) ? others : [...others, n].sort((a, b) => a - b) });
  }
  function read() {
    const one = (...names) => names.map((name) => [name, [Number(model.get(name))]]);
    const masks = model.get("masks");
    return { text: [model.get("text")], masks: masks.length ? masks : [-1],
      ...Object.fromEntries(one("temperature", "top", "place", "into", "layer", "head")) };
  }
  function write({ text: [words], masks, temperature: [t], top: [n], place: [at], into: [on], layer: [l], head: [k] }) {
    const kept = words.slice(0, LETTERS), size = wordsOf(kept, lowercase).length;
    const whole = (x, low, high) => within(Math.trunc(x), low, high);
    before = null;
    put(model, {
      text: kept, masks: [...new Set(masks)].filter((m) => Number.isInteger(m) && m >= 0 && m < size),
      temperature: Math.max(0, t), top: whole(n, 1, MOST), place: whole(at, 0, LETTERS), into: on > 0,
      layer: whole(l, -1, layers - 1), head: whole(k, -1, heads - 1),
    });
  }

  // ---- the model
  function ready(worker, said) {
    engine = worker;
    tokens = said.tokens;
    ids = new Map(tokens.map((name, id) => [name, id]));
    return question();
  }
  async function question() {
    if (!ids) return;
    const asked = { text: model.get("text"), masks: model.get("masks") };
    const found = await engine.newest("answer", asked).catch(() => undefined); // the status says why
    if (!found) return;
    answer = { ...found, masks: asked.masks };
    draw();
    if (!typing) heard.textContent = Array.from(bars.children, (each) => each.dataset.said).join(". ");
  }

  // ---- drawing
  function draw() {
    const ready = Boolean(answer.logits), t = model.get("temperature"), now = all(answer, t), then = all(before, t);
    if (text.value !== model.get("text")) text.value = model.get("text");
    text.disabled = warmth.node.querySelector("input").disabled = !ready;
    notes.replaceChildren(...remarks(answer));
    warmth.set(toSlider(t), format(t, 2));
    top.set(model.get("top"), String(model.get("top")));
    drawBars(now, then);
    drawAttention(now, ready);
  }
  // The hidden places of an answer, with the distributions of the model or, before it is there, the stored ones.
  const all = (from, t) => (from?.logits ? distributions(from, ids, t) : from ? likely : []);

  function drawBars(now, then) {
    const highest = ({ p, best }) => p?.reduce((a, b) => Math.max(a, b)) ?? best[0].p;
    const full = fullBar(Math.max(0, ...[...now, ...then].map(highest))), n = model.get("top");
    bars.replaceChildren(...now.map((place) => {
      const best = place.best?.slice(0, n) ?? likeliest(place.p, tokens, n);
      const old = then.find(({ name }) => name === place.name);
      const node = makeBars(place, best, stored.size - best.length, full, (name) => old?.p[ids.get(name)]);
      const said = best.slice(0, 3).map((one) => `${visible(one.token)} ${share(one.p)}`).join(", ");
      node.dataset.said = `Instead of ${visible(place.name)}: ${said}`;
      return node;
    }));
    if (!now.length) bars.replaceChildren(h("p", { className: "attn-none" }, "Nothing is hidden: press a word."));
    scale.textContent = !now.length ? "" : `A full bar is ${full}.`
      + (bars.querySelector(".attn-then:not([hidden])") ? " Thin line: before your last change." : "");
  }

  function drawAttention(now, ready) {
    const at = now[Math.min(model.get("place"), now.length - 1)], names = now.map(({ name }) => visible(name));
    attention.hidden = !at;
    if (!at) return (tinted.textContent = ""), chips.draw(answer, ready, () => 0);
    if (String(names) !== String(Array.from(which.list, (option) => option.text))) {
      which.list.replaceChildren(...names.map((name) => h("option", {}, name)));
    }
    which.list.selectedIndex = now.indexOf(at);
    way.list.selectedIndex = Number(model.get("into"));
    layer.list.selectedIndex = model.get("layer") + 1;
    head.list.selectedIndex = model.get("head") + 1;
    const weights = looks(answer.attention, at.place, model.get("into"));
    const on = chosen(shape, model.get("layer"), model.get("head")), means = weights.map((each) => mean(each, on));
    const most = Math.max(...means), deepest = Math.max(...weights.map((each) => Math.max(...each)));
    chips.draw(answer, ready, (place) => means[place] / most);
    const name = visible(at.name), [from, to] = model.get("into") ? ["it", token(name)] : [token(name), "it"];
    tinted.replaceChildren("A word is filled by how much ", from, " looks at ", to,
      `: ${some()}, full at ${format(most, 2)}.`);
    const hidden = (place) => answer.places.includes(place), caption = `Weights of ${layers * heads} heads: ${name}`;
    map.draw(answer.row, hidden, weights, shape, on, (weight) => weight / deepest, caption);
    told = { name, weights, means };
    tell();
  }
  function some() {
    const [l, k] = [model.get("layer"), model.get("head")];
    if (l < 0) return k < 0 ? "mean of all heads" : `mean of head ${k + 1} of every layer`;
    return k < 0 ? `mean of layer ${l + 1}` : `layer ${l + 1}, head ${k + 1}`;
  }
  // What is under the pointer, or what the place has to do with most.
  function tell(cell) {
    const { name, weights, means } = told, into = model.get("into");
    const named = (place) => token(visible(answer.row[place]));
    if (cell) {
      const two = [token(name), named(cell.place)], [from, to] = into ? two.reverse() : two;
      readout.replaceChildren(`layer ${cell.layer + 1}, head ${cell.head + 1}: `, from, " → ", to, " ",
        h("b", {}, format(weights[cell.place][cell.layer * heads + cell.head])));
    } else {
      const most = largest(means, 3).flatMap((place, n) =>
        [n ? " · " : "", named(place), " ", h("b", {}, format(means[place]))]);
      const looks = into ? " is looked at most by " : " looks most at ";
      readout.replaceChildren(`${some()}: the place of `, token(name), looks, ...most);
    }
  }

  // ---- life
  const ask = onceAFrame(draw), wonder = onceAFrame(question);
  const dismiss = summon({ model, root, status, ready });
  const shown = ["temperature", "top", "place", "into", "layer", "head"].map((name) => [name, ask]);
  const changes = { text: wonder, masks: wonder, ...Object.fromEntries(shown) };
  const stop = live({ model, el, root, state, ask, changes, render });
  return () => {
    dismiss();
    wonder.cancel();
    stop();
  };
}

export default { render };
