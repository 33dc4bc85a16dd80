// Drawing: a picture of named parts, still or shown step by step.
import { within } from "../shared/math.js";
import { button, disable, h, isTheirs, live, onceAFrame, put, stateControls } from "../shared/ui.js";
import { makeCaption, mentioned, pause, plainText } from "./captions.js";
import { bringIntoView, fly, isSeen, lightUp, openPicture, partsOf, reveal } from "./picture.js";

// ---- a walk through the picture, step by step
function makeWalk(model) {
  const steps = model.get("steps"), picture = openPicture(model.get("svg"), model.get("window"));
  const fresh = steps.map(({ parts }) => parts.flatMap((reference) => partsOf(picture, reference)));
  const first = new Map(); // the step at which a part appears
  fresh.forEach((nodes, n) => nodes.forEach((node) => first.has(node) || first.set(node, n)));
  for (const [node, n] of first) node.classList.toggle("draw-asked", steps[n].ask !== "");
  return {
    model, steps, picture, first,
    fresh, // what appears at each step
    opened: new Set(), // steps whose answer has been shown
    shown: -1, // the last step whose parts are visible
    marked: null, // the parts of the word under the pointer
    timer: 0, // for the next step during play
  };
}
const now = ({ model, steps }) => within(model.get("step"), 1, steps.length) - 1;
const waits = ({ steps, opened }, n) => steps[n].ask !== "" && !opened.has(n);
const atEnd = (walk) => now(walk) === walk.steps.length - 1;

// ---- what the reader does
function go(walk, n) {
  walk.marked = null;
  stop(walk);
  put(walk.model, { step: n + 1 });
  say(walk);
}
function open(walk, n) {
  walk.opened.add(n);
  walk.parts.next.focus({ preventScroll: true }); // since "Show" disappears
  walk.ask();
  say(walk);
}
function goBy(walk, by) {
  if (by > 0 && waits(walk, now(walk))) open(walk, now(walk));
  else go(walk, within(now(walk) + by, 0, walk.steps.length - 1));
}
function say(walk) {
  const { steps, parts } = walk, { caption, ask } = steps[now(walk)];
  parts.heard.textContent = `Step ${now(walk) + 1} of ${steps.length}. `
    + (waits(walk, now(walk)) ? ask : plainText(caption));
}
function start(walk) {
  const onwards = () => {
    if (waits(walk, now(walk))) walk.opened.add(now(walk)), walk.ask();
    else if (atEnd(walk)) return stop(walk);
    else put(walk.model, { step: now(walk) + 2 });
    walk.timer = setTimeout(onwards, pause(walk.steps[now(walk)].caption));
  };
  if (atEnd(walk)) put(walk.model, { step: 1 });
  walk.timer = setTimeout(onwards, 300);
  walk.ask();
}
function stop(walk) {
  clearTimeout(walk.timer);
  walk.timer = 0;
  walk.ask();
}

function listen(walk, root) {
  const { stage } = walk.picture;
  root.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.target === walk.parts.slider || isTheirs(event)) return;
    event.preventDefault();
    goBy(walk, by);
  });
  stage.tabIndex = -1; // so that keys work after a click
  let from = null; // where a swipe began
  stage.addEventListener("pointerdown", (event) => (from = event.pointerType === "touch" ? event : null));
  stage.addEventListener("pointerup", (event) => {
    const x = event.clientX - from?.clientX, y = event.clientY - from?.clientY;
    const away = x < 0 && waits(walk, now(walk)); // it would give the answer away
    if (!away && Math.abs(x) > 40 && Math.abs(x) > 2 * Math.abs(y)) goBy(walk, x < 0 ? 1 : -1);
  });
}

// ---- elements
function makeParts(walk) {
  const { steps, picture } = walk, mark = (nodes) => { walk.marked = nodes; light(walk); };
  const captions = steps.map((step, n) => makeCaption(step, {
    partsOf: (reference) => partsOf(picture, reference), mark, open: () => open(walk, n),
  }));
  const back = button("Back", () => goBy(walk, -1)), next = button("Next", () => goBy(walk, 1), "attn-next");
  const play = button("Play", () => (walk.timer ? stop(walk) : start(walk)));
  const count = h("span", { className: "attn-count" });
  const slider = h("input", {
    type: "range", min: 1, max: steps.length, step: 1, "aria-label": "Step",
    oninput: () => go(walk, Number(slider.value) - 1),
  });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  return { captions, back, play, next, count, slider, heard };
}

function build({ model, steps, picture: { stage }, parts }, { bar }) {
  const title = model.get("title"), { captions, back, play, next, count, slider, heard } = parts;
  const look = { className: "attn attn-drawing", role: "group", "aria-label": title || "Drawing" };
  const root = h("div", look, ...(title ? [h("p", { className: "attn-title" }, title)] : []));
  if (!steps.length) return root.append(stage), root;
  root.append(h("div", { className: "attn-walk" }, stage, h("div", { className: "attn-told" },
    h("ol", { className: "attn-captions", role: "list" }, ...captions),
    h("div", { className: "attn-slider" }, slider, count), h("div", { className: "attn-keys" }, back, play, next))),
  heard, bar);
  return root;
}

const linkedState = (walk, el) => stateControls(el, walk.model.get("name"),
  () => ({ step: [walk.model.get("step")] }),
  ({ step: [n] }) => go(walk, within(Math.trunc(n), 1, walk.steps.length) - 1));

// ---- drawing
function light(walk) {
  const { picture, fresh, marked, parts } = walk, n = now(walk);
  const nodes = (marked ?? [...fresh[n], ...mentioned(parts.captions[n])]).filter(isSeen);
  lightUp(picture, nodes);
  if (marked) bringIntoView(picture, marked);
  else bringIntoView(picture, nodes, fresh[n].filter(isSeen));
}

function drawControls(walk) {
  const { steps, parts: { captions, back, next, play, slider, count } } = walk, n = now(walk);
  captions.forEach((node, i) => {
    node.classList.toggle("attn-here", i === n);
    node.classList.toggle("attn-waits", waits(walk, i));
  });
  disable(back, n === 0);
  disable(next, n === steps.length - 1 || waits(walk, n)); // a question has its own button
  play.textContent = walk.timer ? "Pause" : "Play";
  slider.value = n + 1;
  slider.setAttribute("aria-valuetext", `step ${n + 1} of ${steps.length}`);
  count.textContent = `${n + 1} / ${steps.length}`;
}

function draw(walk) {
  const { steps, picture, first, fresh, shown } = walk;
  if (!steps.length) return;
  const n = now(walk), last = waits(walk, n) ? n - 1 : n;
  reveal(picture, first, last);
  const forward = shown >= 0 && last === shown + 1;
  if (forward && !matchMedia("(prefers-reduced-motion: reduce)").matches) fly(picture, fresh[last]);
  walk.shown = last;
  drawControls(walk);
  light(walk);
}

function render({ model, el }) {
  const walk = makeWalk(model), link = linkedState(walk, el), ask = onceAFrame(() => draw(walk));
  Object.assign(walk, { ask, parts: makeParts(walk) });
  const root = build(walk, link);
  if (walk.steps.length) listen(walk, root);
  const changes = { step: ask, svg: (again) => again(), steps: (again) => again() };
  const sized = () => walk.steps.length && light(walk), leave = () => clearTimeout(walk.timer);
  return live({ model, el, root, state: link, ask, changes, box: walk.picture.stage, sized, render, leave });
}

export default { render };
