// The half of TokenizerBench that learns: the text in pieces, its most frequent pairs, and the merges.
import { grouped } from "../shared/math.js";
import { slider } from "../shared/plot.js";
import { button, disable, h, token } from "../shared/ui.js";
import { fill } from "../playground/view.js";

const MOST = 300; // most merges on the slider

// A name with visible spaces, line ends and tabs; "∅" if it is empty.
export const shown = (name) => name.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "∅";

const makePairs = () => h("ol", { className: "attn-pairs", role: "list" });
function drawPairs(list, pairs, least) {
  const most = Math.max(1, ...pairs.map(({ count }) => count));
  fill(list, pairs, ({ a, b, count }, n) => [a, b, count, most, n], ({ a, b, count }, n) => {
    const bar = h("i");
    bar.style.width = `${(100 * count) / most}%`;
    return h("li", { className: n === 0 && count >= least ? "attn-best" : "" },
      h("span", {}, token(shown(a)), " + ", token(shown(b))),
      h("span", { className: "attn-track", "aria-hidden": "true" }, bar), h("b", {}, grouped(count)));
  });
}

// The text, each piece in a box, words apart. Marks the pieces made by the last merge, and the next pair.
function drawText(box, words, made, next) {
  const key = (word) => [word.map(({ name }) => name), word.some(({ id }) => id === made) && made,
    word.some(({ id }) => id === next?.ids[0]) && next.ids];
  fill(box, words, key, (word) => h("span", { className: "attn-cutword" }, ...word.map(({ id, name }, n) => {
    const [a, b] = next?.ids ?? [], [before, after] = [word[n - 1], word[n + 1]].map((each) => each?.id);
    const first = id === a && after === b, second = id === b && before === a;
    const look = [id === made && "attn-made", first && "attn-first", second && "attn-second"];
    return h("bdi", { className: look.filter(Boolean).join(" ") || "attn-plain" }, shown(name));
  })));
}

// `change` receives the traits that the reader changes.
export function makeLearn(change) {
  let told;
  const box = h("input", { type: "checkbox", onchange: () => change({ apart: box.checked }) });
  const apart = h("label", { className: "attn-field" }, box, h("span", {}, "keep words apart"));
  const back = button("Back", () => change({ merges: told.done - 1 }));
  const next = button("Next", () => change({ merges: told.done + 1 }), "attn-go");
  [back, next].forEach((each) => disable(each, true)); // until the worker has answered
  const upto = slider("merges", { min: 0, max: MOST, step: 1 }, (merges) => change({ merges }));
  const said = h("p", { className: "attn-readout", "aria-live": "polite" });
  const text = h("div", { className: "attn-pieces", role: "region", tabIndex: 0, "aria-label": "The text in pieces" });
  const pairs = makePairs(), none = h("p", {}, "Nothing yet. Press Next.");
  const learnt = h("p", { className: "attn-learnt" });
  const size = h("p", { className: "attn-note" });
  const title = (words) => h("p", { className: "attn-legend" }, words);
  const node = h("div", {}, h("div", { className: "attn-row" }, back, next, apart), upto.node, said, text, size,
    title("Which two stand side by side most often?"), pairs, title("Learnt so far"), none, learnt);

  function draw(found, isApart) {
    const { done, pieces, bytes, size: tokens, least } = (told = found), last = found.learnt.at(-1);
    const coming = found.pairs[0]?.count >= least ? found.pairs[0] : undefined;
    box.checked = isApart;
    disable(back, done === 0);
    disable(next, !coming);
    upto.set(Math.min(done, MOST), grouped(done), `${done} merges`);
    said.replaceChildren(...(last ? [`Merge ${done}: `, token(shown(last.a)), " + ", token(shown(last.b)), " became ",
      token(shown(last.made)), `, ${grouped(last.count)} times. `] : ["At first each byte is a piece. "]),
    ...(coming ? ["Next: ", token(shown(coming.a)), " + ", token(shown(coming.b)), `, ${grouped(coming.count)} times.`]
      : [bytes ? "No two pieces stand side by side twice: nothing is left to merge." : "Type a text."]));
    drawText(text, found.shown, last?.ids[2], coming);
    const on = found.shown.reduce((sum, word) => sum + word.length, 0);
    size.textContent = `${grouped(bytes)} bytes are ${grouped(pieces)} pieces now`
      + `${on < pieces ? `; the first ${grouped(on)} are shown` : ""}. The vocabulary has ${grouped(tokens)}: `
      + `256 bytes and ${grouped(tokens - 256)} learnt.`;
    drawPairs(pairs, found.pairs, least);
    fill(learnt, found.learnt, ({ made }, n) => [made, done, n], ({ made }, n) => {
      const at = done - found.learnt.length + n + 1;
      return h("span", {}, h("small", {}, String(at)), token(shown(made)));
    });
    none.hidden = done > 0;
  }
  return { node, draw };
}
