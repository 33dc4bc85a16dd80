// The half of TokenizerBench that cuts: the text as tokens of each vocabulary, and one word step by step.
import { format, grouped, within } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { button, disable, h, isTheirs, token } from "../shared/ui.js";
import { fill } from "../playground/view.js";
import { shown } from "./learn.js";

const KINDS = { pairs: "byte pairs", longest: "WordPiece" };
const KEYS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

// The words of the text, each a button. Tab reaches one of them, arrow keys lead to the others.
function makeWords(choose) {
  const node = h("div", { className: "attn-words", role: "group", "aria-label": "Which word is cut step by step" });
  const to = (n) => node.children[n]?.focus();
  node.addEventListener("keydown", (event) => {
    const at = [...node.children].indexOf(document.activeElement), ends = { Home: 0, End: node.children.length - 1 };
    const n = ends[event.key] ?? at + KEYS[event.key];
    if (at < 0 || isTheirs(event) || Number.isNaN(n)) return;
    event.preventDefault();
    to(n);
  });
  function draw(words, chosen) {
    fill(node, words, (word) => word, (word, n) => button(word, () => choose(n)));
    [...node.children].forEach((each, n) => {
      each.setAttribute("aria-pressed", n === chosen);
      each.tabIndex = n === chosen ? 0 : -1;
    });
  }
  return { node, draw };
}

// A word in pieces, with the rank of each pair between them. The pair of lowest rank is merged next.
function drawPairs(box, { rows, word, next, made }) {
  const parts = rows.flatMap((row, w) => row.flatMap(({ name, rank }, n) => {
    const mine = w === word, look = mine && n === made ? "attn-made" : "attn-plain";
    const between = mine && n === next ? "attn-rank attn-lowest" : "attn-rank";
    const gap = n + 1 < row.length ? [h("small", { className: between }, rank === undefined ? "·" : grouped(rank + 1))]
      : w + 1 < rows.length ? [h("span", { className: "attn-gap" })] : [];
    return [h("bdi", { className: look }, shown(name)), ...gap];
  }));
  box.replaceChildren(...parts);
}
function sayPairs({ rows, word, next, made }, last) {
  const row = rows[word] ?? [], grown = made >= 0 ? [token(shown(row[made].name)), " is one piece now. "] : [];
  if (!last && next < 0) return [...grown, "Then the next word."];
  if (last) return [...grown, "No pair of neighbours was ever learnt: the word is cut."];
  return [...grown, "Lowest rank: ", token(shown(row[next].name)), " + ", token(shown(row[next + 1].name)),
    `, learnt as number ${grouped(row[next].rank + 1)}.`];
}

// The pieces of a word found so far, the pieces tried, longest first, and the rest of the word.
function drawTries(box, { before, tries, found, rest }) {
  box.replaceChildren(...before.map((piece) => h("bdi", { className: "attn-plain" }, piece)),
    ...tries.map((piece, n) => {
      const hit = found && n === tries.length - 1;
      return h("bdi", { className: hit ? "attn-made" : "attn-missed" }, piece);
    }), ...(rest ? [h("bdi", { className: "attn-rest" }, rest)] : []));
}
function sayTries({ tries, found, rest }, last) {
  if (!found) return ["No piece begins so: the whole word is ", token("[UNK]"), "."];
  const said = ["The longest piece that is known: ", token(tries.at(-1)), ", at try ", String(tries.length), "."];
  return [...said, ...(rest ? [] : [last ? " The word is cut." : " Then the next word."])];
}

// One vocabulary: the text as its tokens, and the current step of the word.
function makeLane(label) {
  const count = h("b"), kind = h("span", { className: "attn-note" });
  const name = `The text for ${label}`;
  const tokens = h("div", { className: "attn-pieces", role: "region", tabIndex: 0, "aria-label": name });
  const parts = h("div", { className: "attn-cuts" }), said = h("p", { className: "attn-readout" });
  const node = h("section", { className: "attn-lane", "aria-label": label },
    h("p", { className: "attn-legend" }, h("b", {}, label), " ", kind, " ", count), tokens, h("div", {}, parts, said));

  function draw({ kind: how, size, count: n, tokens: names, steps }, step, bytes) {
    const at = Math.min(step, steps.length - 1), frame = steps[at], last = at === steps.length - 1;
    kind.textContent = `${KINDS[how]}, ${grouped(size)} pieces`;
    count.textContent = `${grouped(n)} tokens` + (n ? `, ${format(bytes / n, 1)} bytes each` : "");
    fill(tokens, [...names, ...(names.length < n ? [null] : [])], (name) => [name, name ?? n], (name) => (name === null
      ? h("span", { className: "attn-note" }, ` and ${grouped(n - names.length)} more`)
      : h("bdi", { className: "attn-plain" }, shown(name))));
    if (!frame || (how === "pairs" && !frame.rows.length)) {
      parts.replaceChildren();
      said.textContent = n ? "This vocabulary reads nothing here." : "";
    } else {
      (how === "pairs" ? drawPairs : drawTries)(parts, frame);
      said.replaceChildren(...(how === "pairs" ? sayPairs : sayTries)(frame, last));
    }
  }
  return { node, draw };
}

// `change` receives the traits that the reader changes; `labels` holds the names of the vocabularies.
export function makeCut(labels, change) {
  let now = 0;
  const words = makeWords((word) => change({ word, step: 0 })), lanes = labels.map(makeLane);
  const back = button("Back", () => change({ step: now - 1 }));
  const next = button("Next", () => change({ step: now + 1 }), "attn-go");
  const upto = slider("step", { min: 0, max: 1, step: 1 }, (step) => change({ step }));
  const note = h("p", { className: "attn-note", role: "status" });
  const node = h("div", {}, h("p", { className: "attn-legend" }, "Which word shall be cut step by step?"), words.node,
    note,
    h("div", { className: "attn-row" }, back, next), upto.node,
    h("div", { className: "attn-lanes" }, ...lanes.map((lane) => lane.node)));

  function draw({ words: all, lanes: told, cutShort, bytes }, word, step) {
    const most = Math.max(0, ...told.map(({ steps }) => steps.length - 1));
    now = within(step, 0, most);
    words.draw(all, Math.min(word, all.length - 1));
    note.textContent = all.length === 0 ? "Type a word."
      : cutShort ? `This word has ${grouped(cutShort)} letters. Its first 40 are cut step by step.` : "";
    disable(back, now === 0);
    disable(next, now === most);
    upto.node.querySelector("input").max = Math.max(1, most);
    upto.set(now, `${now} of ${most}`);
    lanes.forEach((lane, n) => lane.draw(told[n], now, bytes));
  }
  return { node, draw };
}
