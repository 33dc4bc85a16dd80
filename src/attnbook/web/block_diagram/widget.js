// BlockDiagram: encoder and decoder block, whose parts switch to the run of a model trained without them.
import PARTS from "./parts.json" with { type: "json" };
import { format } from "../shared/math.js";
import { axis, curve, plot, trace } from "../shared/plot.js";
import { h, live, onceAFrame, put, stateControls, svg, token } from "../shared/ui.js";

const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

// Which words of `said` and of `gold` have no partner in the other, when as many as possible are paired in order.
export function unpaired(said, gold) {
  const most = Array.from({ length: said.length + 1 }, () => new Array(gold.length + 1).fill(0));
  for (let i = said.length - 1; i >= 0; i--) {
    for (let j = gold.length - 1; j >= 0; j--) {
      most[i][j] = said[i] === gold[j] ? most[i + 1][j + 1] + 1 : Math.max(most[i + 1][j], most[i][j + 1]);
    }
  }
  const wrong = said.map(() => true), missing = gold.map(() => true);
  for (let i = 0, j = 0; i < said.length && j < gold.length;) {
    if (said[i] === gold[j]) wrong[i++] = missing[j++] = false;
    else if (most[i + 1][j] >= most[i][j + 1]) i++;
    else j++;
  }
  return { wrong, missing };
}

function render({ model, el }) {
  const title = model.get("title"), runs = model.get("runs"), whole = runs[0];
  const heads = model.get("n_heads"), pre = model.get("norm") === "pre";
  const run = () => runs.find(({ off: [part = ""] }) => part === model.get("off"));
  const without = (part) => ({
    "": "Whole model", mask: "Without the mask", residual: "Without residual connections", norm: "Without layer norm",
    heads: `With one head, not ${heads}`, scale: "Without the scale 1/√(d/h)",
  })[part] ?? `Without ${part}`;

  // ---- the diagram: a part is a button where it comes first; its other places look alike and can be clicked
  const switches = new Map(); // the button of each part that a run leaves out
  function box(part, text, more = "") {
    const known = runs.some(({ off }) => off[0] === part), first = known && !switches.has(part);
    const node = h(first ? "button" : "span", { className: "attn-part", onclick: () => known && choose(part) }, text);
    node.dataset.part = part;
    if (first) {
      node.type = "button";
      node.append(h("span", { className: "attn-heard" }, more));
      switches.set(part, node);
    }
    node.classList.toggle("attn-fixed", !known);
    return node;
  }
  const plain = (text) => h("span", { className: "attn-part attn-fixed" }, text);
  const words = (text) => h("span", { className: "attn-words" }, text);
  const beside = (...nodes) => h("div", { className: "attn-beside" }, ...nodes);
  const add = () => box("residual", "Add", " residual connection"), norm = () => box("norm", "Norm", " layer norm");
  const attention = (part, text, ...chips) => h("div", { className: "attn-attention" }, box(part, text),
    beside(...chips, box("heads", heads > 1 ? `${heads} heads` : "1 head"), box("scale", "÷ √(d/h)", " the scale")));
  // In the order in which the numbers pass, which is upwards on the page.
  const sublayer = (layer) => (pre ? [norm(), layer, add()] : [layer, beside(add(), norm())]);
  function tower(source, layers, ...top) {
    const bottom = [words(source), plain("Embedding"), box("positions", "+ Positions")];
    const sublayers = layers.map(sublayer);
    const stack = h("div", { className: "attn-stack" }, ...sublayers.flat());
    stack.dataset.times = `× ${model.get("n_layers")}`;
    const last = [...(pre ? [norm()] : []), ...top]; // nothing has normalised the sum of pre-norm's layers
    const node = h("div", { className: "attn-tower" }, ...bottom, stack, ...last);
    return { node, sublayers, steps: [...bottom, ...sublayers.flat(), ...last] };
  }
  const output = words("encoder output");
  const encoder = tower("source words",
    [attention("self-attention", "Self-attention"), box("feed-forward", "Feed-forward")], output);
  const masked = attention("self-attention", "Self-attention", box("mask", "mask"));
  const cross = attention("cross-attention", "Cross-attention");
  const decoder = tower("target words so far", [masked, cross, box("feed-forward", "Feed-forward")],
    plain("Linear, softmax"), words("next word"));
  const wires = svg("svg", { class: "attn-wires", "aria-hidden": "true" });
  const blocks = h("div", {
    className: "attn-blocks", role: "group", "aria-label": "Encoder and decoder block: switch a part off",
  }, wires, encoder.node, decoder.node);

  // ---- the run
  const readout = h("p", { className: "attn-readout" }), legend = h("p", { className: "attn-legend" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const list = h("ul", { className: "attn-translations", role: "list" });
  const losses = runs.flatMap(({ loss }) => loss.flat()), high = Math.max(...losses);
  const low = Math.max(high / 1e5, Math.min(...losses.filter((x) => x > 0))); // nothing is drawn below
  const last = Math.max(...runs.map(({ steps }) => steps.at(-1)));
  const height = (loss) => 0.03 + 0.94 * Math.log(Math.max(loss, low) / low) / (Math.log(high / low) || 1);
  const seeds = Math.max(...runs.map(({ loss }) => loss.length));
  const lines = ["attn-whole", "attn-run"].map((look) => ({
    thin: Array.from({ length: seeds }, () => curve(`${look} attn-thin`)), mean: curve(look),
  }));
  const graph = plot(...lines.flatMap(({ thin, mean }) => [...thin, mean]));
  const loss = (x) => String(Number(x.toPrecision(2)));
  Object.assign(graph.dataset, { high: loss(high), low: loss(low) });
  const ticks = axis([0, 0.5, 1].map((x) => [x, x === 1 ? `step ${last}` : String(Math.round(x * last))]));

  const state = stateControls(el, model.get("name"), () => ({ off: [PARTS.indexOf(model.get("off")) + 1] }),
    ({ off: [n] }) => put(model, { off: runs.some(({ off }) => off.includes(PARTS[n - 1])) ? PARTS[n - 1] : "" }));
  const root = h("div", { className: "attn attn-diagram", role: "group", "aria-label": title || "Transformer block" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []), readout,
    h("div", { className: "attn-results" }, blocks,
      h("div", {}, legend, graph, ticks, list)), heard, state.bar);

  function choose(part) {
    put(model, { off: model.get("off") === part ? "" : part });
    draw();
    heard.textContent = readout.textContent;
  }

  // ---- drawing
  function drawWires() {
    const frame = blocks.getBoundingClientRect();
    if (!frame.width) return; // not attached or hidden as yet: drawn when it gets a size
    const at = (node) => {
      const box = node.getBoundingClientRect(), left = box.left - frame.left, top = box.top - frame.top;
      const x = left + box.width / 2, y = top + box.height / 2;
      return { left, top, right: left + box.width, bottom: top + box.height, x, y };
    };
    wires.replaceChildren();
    function wire(part, path, [x, y], [dx, dy]) { // the head's tip, and where it points
      const barb = (side) => `M${x} ${y}l${-5 * dx + 3.5 * side * dy} ${-5 * dy + 3.5 * side * dx}`;
      const node = svg("path", { class: "attn-wire", d: `M${path}${barb(1)}${barb(-1)}` });
      node.dataset.part = part;
      wires.append(node);
    }
    for (const { steps, sublayers } of [encoder, decoder]) {
      const places = steps.map(at), side = steps === encoder.steps ? -1 : 1, outer = side < 0 ? "left" : "right";
      places.slice(1).forEach(({ x, bottom }, n) => wire("", `${x} ${places[n].top}V${bottom}`, [x, bottom], [0, -1]));
      for (const rows of sublayers) {
        const first = at(rows[0]), sum = at(rows.at(-1)), edge = sum[outer];
        const around = `${first.x} ${first.bottom + 8}H${edge + 8 * side}V${sum.y}H${edge}`;
        wire("residual", around, [edge, sum.y], [-side, 0]);
      }
    }
    const from = at(output), to = at(cross), middle = (at(encoder.node).right + at(decoder.node).left) / 2;
    wire("cross-attention", `${from.right} ${from.y}H${middle}V${to.y}H${to.left}`, [to.left, to.y], [1, 0]);
    mark();
  }
  function mark() {
    const off = model.get("off");
    for (const node of blocks.querySelectorAll("[data-part]")) {
      node.classList.toggle("attn-off", off !== "" && node.dataset.part === off);
    }
    for (const [part, button] of switches) button.setAttribute("aria-pressed", String(part !== off));
  }
  const split = (text) => text.split(/\s+/).filter(Boolean);
  const aloud = (text) => h("span", { className: "attn-heard" }, text);
  const sentence = (all, flags, look, aside) => (all.length ? all.flatMap((word, n) => [" ",
    flags[n] ? h("span", { className: look }, token(word), aloud(` (${aside})`)) : token(word)]) : [" (nothing)"]);
  function translation([source, said, gold]) {
    const [output, wanted] = [said, gold].map(split), { wrong, missing } = unpaired(output, wanted);
    const right = ![...wrong, ...missing].includes(true);
    const line = (who, words) => h("p", {}, h("span", { className: "attn-who" }, who), ...words);
    return h("li", {}, h("p", { className: "attn-source" }, token(source)),
      line(right ? "✓ model, right:" : "✗ model:", sentence(output, wrong, "attn-wrong", "wrong")),
      line("gold:", sentence(wanted, missing, "attn-missing", "missing")));
  }
  function drawCurves({ thin, mean: thick }, { steps, loss }) {
    const points = (values) => values.map((y, n) => [steps[n] / last, height(y)]);
    thin.forEach((line, n) => trace(line, loss.length > 1 && loss[n] ? points(loss[n]) : []));
    trace(thick, points(steps.map((_, n) => mean(loss.map((values) => values[n])))));
  }
  function draw() {
    const present = run(), off = model.get("off"), name = without(off);
    mark();
    drawCurves(lines[1], present);
    drawCurves(lines[0], off ? whole : { steps: [], loss: [[]] });
    const figures = present.exact.length > 1 ? ` (seeds ${present.exact.map((x) => format(x)).join(", ")})` : "";
    readout.replaceChildren(`${name}: exactly right `, h("b", {}, format(mean(present.exact))), figures,
      off ? ` · whole model ${format(mean(whole.exact))}` : " · switch a part off in the diagram");
    legend.replaceChildren("Stored runs: each model was trained anew. Loss on a logarithmic scale, solid: ",
      h("b", { className: "attn-run" }, name[0].toLowerCase() + name.slice(1)),
      ...(off ? ["; dashed: whole model"] : []),
      seeds > 1 ? "; thin: each seed." : ".");
    list.replaceChildren(...present.translations.map(translation));
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = { off: ask, runs: (again) => again() };
  return live({ model, el, root, state, ask, changes, box: blocks, sized: drawWires, render });
}

export default { render };
