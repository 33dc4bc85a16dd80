// HeadChips: the heads of a small model as chips to switch off, training as a slider with play.
import { format, ramp, within } from "../shared/math.js";
import { playing } from "../shared/play.js";
import { axis, curve, dot, follow, move, plot, slider, trace } from "../shared/plot.js";
import { disable, h, isDark, live, onceAFrame, put, select, stateControls } from "../shared/ui.js";

const PAUSE = 350; // milliseconds: a checkpoint on play

// Which of the stored sets these heads are: bit l stands for head l.
export const setOf = (off) => off.reduce((sum, head) => sum | (1 << head), 0);

function render({ model, el }) {
  const title = model.get("title"), steps = model.get("steps"), losses = model.get("losses");
  const scores = Object.entries(model.get("scores")), last = steps.length - 1, heads = scores[0][1][0].length;
  const maps = model.get("maps"), right = model.get("right"), side = Math.sqrt(maps.byteLength / steps.length / heads);
  const every = Array.from({ length: heads }, (_, head) => head), highest = Math.max(...losses);
  const at = () => within(model.get("at"), 0, last);
  const share = (checkpoint, off) => {
    const place = 2 * (((2 * checkpoint + Number(model.get("mean"))) << heads) + setOf(off));
    return right.getUint16(place, true) / 65535;
  };
  const toggled = (head) => {
    const off = model.get("off");
    return off.includes(head) ? off.filter((other) => other !== head) : [...off, head].sort((a, b) => a - b);
  };
  let colours; // colours of the thumbnails, made when needed

  // ---- elements
  const readout = h("p", { className: "attn-readout chips-readout" });
  const chips = every.map((head) => {
    const canvas = h("canvas", { width: side, height: side, "aria-hidden": "true" });
    const [name, score, without] = ["b", "span", "span"].map((tag) => h(tag));
    const node = h("button", { type: "button", className: "chips-chip", onclick: () => choose(head) },
      canvas, name, score, without);
    return { node, canvas, name, score, without };
  });
  const dots = [dot("chips-loss"), dot("chips-right")];
  const lines = [curve("chips-right"), curve("chips-loss")];
  const graph = plot(...lines);
  graph.append(...dots);
  const x = (checkpoint) => checkpoint / last; // checkpoints stand evenly, whatever their steps
  follow(graph, (to) => go(Math.round(to * last)));
  const ticks = axis([0, 0.5, 1].map((to) => {
    const n = Math.round(to * last);
    return [x(n), to === 1 ? `step ${steps[n]}` : String(steps[n])];
  }));
  const time = slider("step", { min: 0, max: last, step: 1 }, go);
  const play = playing("Play", PAUSE, () => {
    const n = at();
    put(model, { at: n < last ? n + 1 : 0 });
    return n !== last - 1;
  });
  const instead = select("A silenced head leaves", ["nothing", "its mean"], (n) => {
    put(model, { mean: n === 1 });
    tell();
  });
  const all = h("button", { type: "button", onclick: () => (put(model, { off: [] }), tell()) }, "All heads on");
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const state = stateControls(el, model.get("name"),
    () => ({ at: [model.get("at")], off: [setOf(model.get("off"))], mean: [Number(model.get("mean"))] }),
    ({ at: [n], off: [set], mean: [on] }) => {
      play.stop();
      const off = every.filter((head) => (Math.trunc(set) >> head) & 1);
      put(model, { at: within(Math.trunc(n), 0, last), off, mean: on > 0 });
    });
  const legend = h("p", { className: "attn-legend" }, h("b", { className: "chips-loss" }, "Loss of the whole model"),
    ` (top: ${format(highest, 1)}) and `,
    h("b", { className: "chips-right" }, "share right with the heads that are on"), " (top: 1).");
  const root = h("div", { className: "attn chips", role: "group", "aria-label": title || "Heads" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []), readout,
    h("div", { className: "chips-all", role: "group", "aria-label": "Heads: press to silence" },
      ...chips.map(({ node }) => node)),
    h("div", { className: "attn-row chips-how" }, instead.node, all), legend, graph, ticks,
    h("div", { className: "chips-time" }, time.node, play.node), heard, state.bar);

  // ---- what the reader does
  function choose(head) {
    put(model, { off: toggled(head) });
    tell();
  }
  function go(checkpoint) {
    play.stop();
    put(model, { at: checkpoint });
  }
  function tell() {
    draw();
    heard.textContent = readout.textContent;
  }

  // ---- drawing
  const named = (off) => `without head${off.length > 1 ? "s" : ""} ${off.map((head) => head + 1).join(", ")}`;
  function says() {
    const off = model.get("off"), n = at(), whole = format(share(n, []), 2);
    const start = [`Step ${steps[n]}: loss ${format(losses[n], 2)}. Right: all heads `, h("b", {}, whole)];
    if (!off.length) return [...start, ". Press a head to silence it."];
    const alone = off.map((head) => `${head + 1}: ${format(share(n, [head]), 2)}`).join(", ");
    return [...start, `, ${named(off)} `, h("b", {}, format(share(n, off), 2)),
      off.length === 2 ? ` (alone ${alone}).` : "."];
  }
  function paint(canvas, head) {
    const ctx = canvas.getContext("2d"), pixels = ctx.createImageData(side, side), area = side * side;
    for (let i = 0; i < area; i++) {
      pixels.data.set([...colours[maps.getUint8((at() * heads + head) * area + i)], 255], 4 * i);
    }
    ctx.putImageData(pixels, 0, 0);
  }
  function draw() {
    const n = at(), off = model.get("off");
    if (root.isConnected) colours ??= ramp(isDark(root)); // not so as yet: drawn again when it gets a size
    chips.forEach(({ node, canvas, name, score, without }, head) => {
      const on = !off.includes(head);
      const numbers = scores.map(([key, values]) => [key, values[n][head]]);
      const [best, value] = numbers.reduce((a, b) => (b[1] > a[1] ? b : a));
      node.setAttribute("aria-pressed", String(on));
      name.textContent = `head ${head + 1}${on ? "" : ": off"}`;
      score.textContent = `${best} ${format(value, 2)}`;
      without.textContent = `${on ? "without" : "with"} ${format(share(n, toggled(head)), 2)}`;
      if (colours) paint(canvas, head);
    });
    readout.replaceChildren(...says());
    const heights = [(k) => share(k, off), (k) => losses[k] / highest];
    lines.forEach((line, k) => trace(line, steps.map((_, checkpoint) => [x(checkpoint), heights[k](checkpoint)])));
    dots.forEach((node, k) => move(node, x(n), heights[1 - k](n)));
    const spoken = `step ${steps[n]}, loss ${format(losses[n], 2)}, right ${format(share(n, off), 2)}`;
    time.set(n, String(steps[n]), spoken);
    instead.list.selectedIndex = Number(model.get("mean"));
    disable(all, !off.length); // disabled, it would lose the focus
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = { at: ask, off: ask, mean: ask, maps: (again) => again(), right: (again) => again() };
  const themed = () => { colours = null; ask(); };
  return live({ model, el, root, state, ask, changes, themed, box: graph, sized: ask, render });
}

export default { render };
