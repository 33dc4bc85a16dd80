// The diagram of encoder and decoder block: boxes, most of which are parts that can be switched off, and wires.
import { h, svg } from "../shared/ui.js";

const ROLES = { V: "value", K: "key", Q: "query" };

const plain = (text) => h("span", { className: "attn-part attn-fixed" }, text);
const words = (text) => h("span", { className: "attn-words" }, text);
const port = (name) => h("span", { className: `attn-port draw-${ROLES[name]}` }, name);
const beside = (...nodes) => h("div", { className: "attn-beside" }, ...nodes);

// `known` tells whether a part can be switched off; `choose` is called when the reader presses it.
export function makeDiagram({ heads, times, pre, known, choose }) {
  const { box, switches } = makeBoxes(known, choose);
  const attention = (part, text, ...chips) => h("div", { className: "attn-attention" }, box(part, text),
    beside(...chips, box("heads", heads > 1 ? `${heads} heads` : "1 head"), box("scale", "÷ √(d/h)", " the scale")),
    h("div", { className: "attn-ports" }, ...["V", "K", "Q"].map(port)));
  const stacked = (source, layers, ...top) => tower(box, { source, layers, top, times, pre });
  const output = words("encoder output");
  const encoder = stacked("source words",
    [attention("self-attention", "Self-attention"), box("feed-forward", "Feed-forward")], output);
  const masked = attention("self-attention", "Self-attention", box("mask", "mask"));
  const cross = attention("cross-attention", "Cross-attention");
  const decoder = stacked("target words so far", [masked, cross, box("feed-forward", "Feed-forward")],
    plain("Linear, softmax"), words("next word"));
  const wires = svg("svg", { class: "attn-wires", "aria-hidden": "true" });
  const node = h("div", {
    className: "attn-blocks", role: "group", "aria-label": "Encoder and decoder block: switch a part off",
  }, wires, encoder.node, decoder.node);
  return { node, wires, switches, encoder, decoder, output, cross };
}

// A part that can be switched off is a button where it comes first; its other places look alike and can be clicked.
function makeBoxes(known, choose) {
  const switches = new Map(); // the button of each such part
  function box(part, text, more = "") {
    const first = known(part) && !switches.has(part);
    const node = h(first ? "button" : "span", { className: "attn-part", onclick: () => known(part) && choose(part) },
      text);
    node.dataset.part = part;
    if (first) {
      node.type = "button";
      node.append(h("span", { className: "attn-heard" }, more));
      switches.set(part, node);
    }
    node.classList.toggle("attn-fixed", !known(part));
    return node;
  }
  return { box, switches };
}

// A block from `source` to `top` in the order in which the numbers pass, which is upwards on the page.
function tower(box, { source, layers, top, times, pre }) {
  const add = () => box("residual", "Add", " residual connection"), norm = () => box("norm", "Norm", " layer norm");
  const bottom = [words(source), plain("Embedding"), box("positions", "+ Positions")];
  const sublayers = layers.map((layer) => (pre ? [norm(), layer, add()] : [layer, beside(add(), norm())]));
  const stack = h("div", { className: "attn-stack" }, ...sublayers.flat());
  stack.dataset.times = `× ${times}`;
  const last = [...(pre ? [norm()] : []), ...top]; // nothing has normalised the sum of pre-norm's layers
  const node = h("div", { className: "attn-tower" }, ...bottom, stack, ...last);
  return { node, sublayers, steps: [...bottom, ...sublayers.flat(), ...last] };
}

// Shows which part is off, "" for none.
export function markOff({ node, switches }, off) {
  for (const box of node.querySelectorAll("[data-part]")) {
    box.classList.toggle("attn-off", off !== "" && box.dataset.part === off);
  }
  for (const [part, button] of switches) button.setAttribute("aria-pressed", String(part !== off));
}

// Draws every wire between the boxes where they lie now.
export function drawWires({ node, wires, encoder, decoder, output, cross }) {
  const frame = node.getBoundingClientRect();
  if (!frame.width) return; // not attached or hidden as yet: drawn when it gets a size
  const at = (box) => placeIn(frame, box.getBoundingClientRect());
  const from = at(output), middle = (at(encoder.node).right + at(decoder.node).left) / 2;
  const memory = portsOf(cross).slice(0, 2).map(at).map(({ x, bottom }) => // values and keys
    wire("cross-attention", `${from.right} ${from.y}H${middle}V${bottom + 8}H${x}V${bottom}`, [x, bottom], [0, -1]));
  wires.replaceChildren(...towerWires(encoder, at, -1), ...towerWires(decoder, at, 1, cross), ...memory);
}

function placeIn(frame, box) {
  const left = box.left - frame.left, top = box.top - frame.top;
  const x = left + box.width / 2, y = top + box.height / 2;
  return { left, top, right: left + box.width, bottom: top + box.height, x, y };
}

const portsOf = (attention) => [...attention.querySelectorAll(".attn-port")];

// From each step to the next (into an attention as values, keys and queries; into `cross` as queries alone), and around
// each sublayer on the left (`side` -1) or on the right (1).
function towerWires({ steps, sublayers }, at, side, cross) {
  const outer = side < 0 ? "left" : "right";
  const upwards = steps.slice(1).flatMap((step, n) => {
    const { x: from, top } = at(steps[n]), ports = portsOf(step).slice(step === cross ? 2 : 0);
    return (ports.length ? ports : [step]).map(at).map(({ x, bottom }) =>
      wire("", `${ports.length ? from : x} ${top}V${top - 3}H${x}V${bottom}`, [x, bottom], [0, -1]));
  });
  const around = sublayers.map((boxes) => {
    const first = at(boxes[0]), sum = at(boxes.at(-1)), edge = sum[outer];
    const path = `${first.x} ${first.bottom + 8}H${edge + 8 * side}V${sum.y}H${edge}`;
    return wire("residual", path, [edge, sum.y], [-side, 0]);
  });
  return [...upwards, ...around];
}

// A path with an arrow's head, whose tip is [x, y] and which points along [dx, dy].
function wire(part, path, [x, y], [dx, dy]) {
  const barb = (side) => `M${x} ${y}l${-5 * dx + 3.5 * side * dy} ${-5 * dy + 3.5 * side * dx}`;
  const node = svg("path", { class: "attn-wire", d: `M${path}${barb(1)}${barb(-1)}` });
  node.dataset.part = part;
  return node;
}
