// Parts of the laboratory on the page: curves of runs, the model's answer, its heads.
import { cellAt, drawCells, layout, LEVELS, paint, readTheme } from "../shared/canvas.js";
import { band, percent } from "./ledger.js";
import { format, shade, visible, within } from "../shared/math.js";
import { axis, curve, plot, trace } from "../shared/plot.js";
import { h, svg, token } from "../shared/ui.js";

const LARGE = 440; // the largest width of the opened head, in pixels

// A logarithmic scale from low to high: the position of a number, 0 to 1, and the powers of ten within.
export function scaleOf(low, high) {
  const [from, to] = [Math.log10(low), Math.max(Math.log10(high), Math.log10(low) + 0.5)];
  const at = (x) => within((Math.log10(Math.max(x, 1e-12)) - from) / (to - from), 0, 1);
  const first = Math.ceil(from - 1e-9), count = Math.floor(to + 1e-9) - first + 1;
  return { at, decades: Array.from({ length: Math.max(0, count) }, (_, n) => first + n) };
}

// Labels a vertical axis; `marks` are pairs of a height, 0 to 1, and a text.
export function levels(node, marks) {
  node.replaceChildren(...marks.map(([y, text]) => {
    const mark = h("span", {}, text);
    mark.style.bottom = `${100 * y}%`;
    return mark;
  }));
}

// The same below a chart, where a text at an end stays inside.
export function below(node, marks) {
  const line = axis(marks);
  marks.forEach(([x], n) => {
    line.children[n].style.transform = x < 0.04 ? "none" : `translateX(${x > 0.9 ? -100 : -50}%)`;
  });
  node.replaceChildren(line);
}

// Curves of runs. `get` returns a value of a test; `scale` maps it to 0..1 of the height. Without `scale`, the scale is
// logarithmic and spans the values.
export function makeChart(title, get, scale) {
  const box = plot(), picture = box.querySelector("svg"), ticks = h("div", { className: "attn-levels" });
  const under = h("div"), heading = h("p", {}, title);
  const node = h("div", { className: "attn-chart", role: "img" }, heading, box, under);
  box.append(ticks);

  // Each of `shown` is { run, look, noise }; `noise` holds the losses of single steps, drawn thin. `across` gives the
  // horizontal position of a run's step, 0 to 1, the first test to draw, and what is written below.
  function draw(shown, across, said) {
    const bands = shown.map(({ run }) => band(run.seeds, get).slice(across.from));
    const all = bands.flat().flatMap(({ least, most }) => [least, most]).filter((x) => x > 0 && x < Infinity);
    const decades = scaleOf(10 ** Math.floor(Math.log10(Math.min(0.5, ...all))), Math.max(3, ...all));
    const at = scale ?? decades.at;
    picture.replaceChildren(...shown.flatMap(({ run, look, noise }, n) => {
      const x = (step) => across.at(run, step), mean = curve(look), parts = [mean];
      trace(mean, bands[n].map((each) => [x(each.step), at(each.mean)]));
      if (run.seeds.length > 1) {
        const area = svg("polygon", { class: `attn-area ${look}` }), back = [...bands[n]].reverse();
        trace(area, [...bands[n].map((e) => [x(e.step), at(e.most)]), ...back.map((e) => [x(e.step), at(e.least)])]);
        parts.unshift(area);
      }
      if (noise.length && !across.from) {
        const thin = curve(`attn-noise ${look}`);
        trace(thin, thinned(noise).map(([step, loss]) => [x(step), at(loss)]));
        parts.unshift(thin);
      }
      return parts;
    }));
    levels(ticks, scale ? [0, 0.5, 1].map((y) => [y, percent(y)])
      : decades.decades.map((n) => [at(10 ** n), String(Number(`1e${n}`))]));
    below(under, across.marks);
    heading.textContent = across.unit ? `${title}, against ${across.unit}` : title;
    node.setAttribute("aria-label", `${title}. ${said}`);
  }
  return { node, draw };
}

// At most two hundred means of adjacent losses.
function thinned(losses) {
  const size = Math.ceil(losses.length / 200), out = [];
  for (let n = 0; n < losses.length; n += size) {
    const some = losses.slice(n, n + size);
    out.push([n + some.length, some.reduce((sum, loss) => sum + loss, 0) / some.length]);
  }
  return out;
}

// The model's answer to the reader's own item: the tokens of its output, with the wrong ones struck through.
export function drawAnswer(node, look) {
  const say = (...words) => h("p", { className: "attn-note" }, ...words);
  if (!look) return node.replaceChildren(say("Press Run: the answer comes as it learns."));
  if (look.error) return node.replaceChildren(say(look.error));
  const { input, output, wanted, held, joiner } = look;
  if (!wanted) {
    const flow = h("p", { className: "attn-flow" }, input.join(""), h("b", {}, output.join("")));
    return node.replaceChildren(flow, say("How the model goes on: the likeliest character, again and again."));
  }
  const wrong = output.map((text, n) => wanted[n] !== text);
  const right = wanted.length === output.length && !wrong.includes(true);
  const chips = output.map((text, n) => h(wrong[n] ? "s" : "span", { className: "attn-out" }, token(visible(text))));
  const verdict = right ? [h("b", { className: "attn-right" }, "✓ right")]
    : [h("b", { className: "attn-wrong" }, "✗ wrong"), `, it should be ${wanted.join(joiner)}`];
  node.replaceChildren(h("p", { className: "attn-answer" }, ...chips), say("The model's answer: ", ...verdict, ". ",
    held ? "This item is held out: no run is trained on it." : "This item is not held out: a run may have seen it."));
}

// All heads as small maps, and one of them large with its tokens. `choose` receives the index of a pressed one.
export function makeMaps(choose) {
  const small = h("div", { className: "attn-small", role: "group", "aria-label": "Heads" });
  const large = h("canvas", { role: "img", "aria-label": "Weights" }), readout = h("p", { className: "attn-readout" });
  const node = h("div", { className: "attn-maps" }, small, h("div", {}, large, readout));
  let buttons = [], last = null, at = null;
  large.addEventListener("pointermove", (event) => at && tell(cellAt(at, event.offsetX, event.offsetY)));
  large.addEventListener("pointerleave", () => last && tell({ i: -1, j: -1 }));

  function tell({ i, j }) {
    const { names, map, cells, theme } = last;
    paint(large, at, cells, { i, j }, theme);
    readout.textContent = i < 0 || j < 0 ? "Rows ask, columns are looked at: darker is more."
      : `${visible(names[i])} looks at ${visible(names[j])}: ${format(map[i * names.length + j] / LEVELS)}`;
  }

  function draw({ input, output, weights: { data, shape: [layers, heads, n] } }, chosen) {
    const theme = readTheme(node), names = [...input, ...output], size = n * n;
    if (buttons.length !== layers * heads) {
      const named = (k) => `layer ${Math.floor(k / heads) + 1}, head ${(k % heads) + 1}`;
      const press = (k) => ({ type: "button", onclick: () => choose(k), "aria-label": named(k) });
      buttons = Array.from({ length: layers * heads }, (_, k) => h("button", press(k), h("canvas")));
      small.replaceChildren(...buttons);
      small.style.setProperty("--heads", heads);
    }
    const open = Math.min(chosen, layers * heads - 1);
    buttons.forEach((button, k) => {
      button.setAttribute("aria-pressed", k === open);
      const canvas = Object.assign(button.firstChild, { width: n, height: n }), ctx = canvas.getContext("2d");
      for (let c = 0; c < size; c++) {
        ctx.fillStyle = theme.colours[shade(LEVELS * data[k * size + c], LEVELS)].css;
        ctx.fillRect(c % n, Math.floor(c / n), 1, 1);
      }
    });
    const map = Array.from({ length: size }, (_, c) => Math.round(LEVELS * data[open * size + c]));
    const width = Math.min(LARGE, node.clientWidth || LARGE);
    at = layout(large.getContext("2d"), width, names, names, ["asks", "looked at"], theme);
    last = { names, map, theme, cells: drawCells(at, map, LEVELS, theme) };
    large.setAttribute("aria-label", `Weights of ${buttons[open].getAttribute("aria-label")}`);
    tell({ i: -1, j: -1 });
  }
  return { node, draw };
}
