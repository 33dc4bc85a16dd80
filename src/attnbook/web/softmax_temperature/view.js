// The parts of SoftmaxTemperature on the page: the entropy's curve over the temperature, and the bars.
import { COLDEST, entropy, format, softmax, toSlider } from "../shared/math.js";
import { h, isTheirs, svg, token } from "../shared/ui.js";

const TICKS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100], POINTS = 80;
const MARGIN = 3; // how far beyond all logits one can be dragged

const inBits = (nats) => nats / Math.LN2;

// The entropy over temperatures up to the hottest, with a dot at the current one. `most` is the entropy of the uniform
// distribution, in bits.
export function makeCurve(hottest, most, counts) {
  const line = svg("polyline", { class: "attn-curve" }), dot = h("i", { className: "attn-dot" });
  const node = h("div", { className: "attn-plot", "aria-hidden": "true" },
    svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, line), dot);
  const ticks = h("div", { className: "attn-ticks", "aria-hidden": "true" },
    ...TICKS.filter((t) => t <= hottest).map((t) => {
      const tick = h("span", {}, String(t));
      tick.style.left = `${100 * toSlider(t, hottest)}%`;
      return tick;
    }));
  const height = (nats) => 100 - (most > 0 ? (88 * inBits(nats)) / most : 0);

  function drawLine(logits) {
    const points = Array.from({ length: POINTS + 1 }, (_, n) => {
      const t = COLDEST * (hottest / COLDEST) ** (n / POINTS);
      return `${((100 * n) / POINTS).toFixed(2)},${height(entropy(softmax(logits, t, counts), counts)).toFixed(2)}`;
    });
    line.setAttribute("points", points.join(" "));
  }
  function drawDot(t, nats) {
    dot.style.left = `${100 * toSlider(t, hottest)}%`;
    dot.style.top = `${height(nats)}%`;
  }
  return { node, ticks, drawLine, drawDot };
}

// A line of the list; `index` is the token's, or -1 for all others together. `drag`, if any, is its slider.
export function makeBar(index, text, { score, share }, drag) {
  const fill = h("i", { className: "attn-fill" }), mark = h("i", { className: "attn-then" });
  const logit = h("span", { className: "attn-logit" }), value = h("b");
  const unseen = (words) => h("span", { className: "attn-heard" }, words);
  const node = h("li", {}, h("span", { className: "attn-label", title: text }, index < 0 ? text : token(text)),
    ...(drag ? [drag] : []), ...(index < 0 ? [] : [unseen(` ${score} `)]), logit,
    h("span", { className: "attn-track", "aria-hidden": "true" }, fill, mark), unseen(` ${share} `), value);
  return { index, node, fill, mark, logit, value, drag };
}

export function drawShares({ fill, mark, value }, now, before) {
  fill.style.width = `${100 * now}%`;
  mark.style.left = `${100 * before}%`;
  value.textContent = format(now);
}

export function drawLogit({ logit, drag }, z, p, share) {
  logit.textContent = format(z);
  if (!drag) return;
  drag.value = z;
  drag.setAttribute("aria-valuetext", `${format(z)}, ${share} ${format(p)}`);
}

// A slider's range, between whole numbers around the finite logits.
export function dragRange(logits) {
  const finite = logits.filter(Number.isFinite);
  return { min: Math.floor(Math.min(...finite)) - MARGIN, max: Math.ceil(Math.max(...finite)) + MARGIN, step: "any" };
}

// An arrow key moves a logit by a hundredth of its range, as in Chromium; Firefox by itself would move it by 1.
export function nudge(event) {
  const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key], slider = event.currentTarget;
  if (!by || isTheirs(event)) return;
  event.preventDefault();
  slider.value = Number(slider.value) + (by * (slider.max - slider.min)) / 100;
  slider.dispatchEvent(new Event("input"));
}

// `best` is the name of the most likely label, `p` its probability.
export const readoutLine = (nats, best, p, all) => [
  "Entropy ", h("b", {}, `${format(inBits(nats))} bits`),
  ...(all ? [` (${format(nats)} nats) · perplexity `, h("b", {}, format(Math.exp(nats), 2))] : []),
  all ? " · most likely " : " · largest ", token(best), ` ${format(p)}`,
];
