// Drawing: a picture of named parts, still, or walked through in steps.
import { within } from "../shared/math.js";
import { button, disable, h, isTheirs, live, onceAFrame, put, stateControls } from "../shared/ui.js";

// A caption as [text, words, part, text, words, part, ..., text]: "[words](part)" marks words that stand for a part.
export const pieces = (caption) => caption.split(/\[([^[\]]+)\]\(([\w.*-]+)\)/);
const ROLES = ".draw-query, .draw-key, .draw-value, .draw-state, .draw-weight";
// How long one reads, in milliseconds.
export const pause = (caption) => Math.max(2400, 330 * caption.split(/\s+/).length);

function render({ model, el }) {
  const title = model.get("title"), steps = model.get("steps"), name = model.get("name");
  const parsed = new DOMParser().parseFromString(model.get("svg"), "image/svg+xml");
  const picture = document.importNode(parsed.documentElement, true);
  const [, , , height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const seen = Math.min(height, model.get("window")); // height of the window
  const stage = h("div", { className: "attn-stage" }, picture);
  const heading = title ? [h("p", { className: "attn-title" }, title)] : [];
  const look = { className: "attn attn-drawing", role: "group", "aria-label": title || "Drawing" };
  const root = h("div", look, ...heading);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const now = () => within(model.get("step"), 1, steps.length) - 1;

  // ---- parts: "scores" is every part of that name, "scores.2" the third of them, or the third cell of one part
  function find(reference) {
    const [part, which] = reference.split(".");
    const parts = [...picture.querySelectorAll(`[data-part="${part}"]`)];
    if (which === undefined) return parts;
    const items = parts.length > 1 ? parts : [...parts[0].children].filter((node) => node.matches(".draw-unit"));
    return which === "*" ? items : [items[which]];
  }
  // With what stands beside it, as a label does.
  const all = (reference) => [...find(reference), ...picture.querySelectorAll(`[data-beside="${reference}"]`)];
  const fresh = steps.map(({ parts }) => parts.flatMap(all)); // what appears at each step
  const links = [...picture.querySelectorAll(".draw-link")].map((node) => ({
    node, from: find(node.dataset.from)[0], to: find(node.dataset.to)[0],
  }));
  const first = new Map(); // the step at which a part appears
  fresh.forEach((nodes, n) => nodes.forEach((node) => first.has(node) || first.set(node, n)));
  const opened = new Set(); // steps whose question was answered
  const waits = (n) => steps[n].ask !== "" && !opened.has(n);
  let shown = -1, timer = 0, marked = null; // marked: the parts of the word under the pointer

  // ---- elements
  const captions = steps.map(({ caption, ask }, n) => {
    const answer = h("p", { className: "attn-answer" }, ...pieces(caption).flatMap((piece, i, every) =>
      (i % 3 === 0 ? [piece] : i % 3 === 1 ? [noun(piece, every[i + 1])] : [])));
    if (!ask) return h("li", {}, answer);
    const show = h("button", { type: "button", className: "attn-show", onclick: () => open(n) }, "Show");
    return h("li", {}, h("div", { className: "attn-ask" }, h("p", {}, ask), show), answer);
  });
  const back = button("Back", () => by(-1)), play = button("Play", () => (timer ? stop() : start()));
  const next = button("Next", () => by(1), "attn-next");
  const count = h("span", { className: "attn-count" });
  const slider = h("input", {
    type: "range", min: 1, max: steps.length, step: 1, "aria-label": "Step",
    oninput: () => go(Number(slider.value) - 1),
  });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const state = stateControls(el, name, () => ({ step: [model.get("step")] }),
    ({ step: [n] }) => go(within(Math.trunc(n), 1, steps.length) - 1));
  stage.style.setProperty("--seen", seen);
  stage.style.setProperty("--whole", height);
  if (steps.length) {
    root.append(h("div", { className: "attn-walk" }, stage, h("div", { className: "attn-told" },
      h("ol", { className: "attn-captions", role: "list" }, ...captions),
      h("div", { className: "attn-slider" }, slider, count), h("div", { className: "attn-keys" }, back, play, next))),
    heard, state.bar);
    root.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.target === slider || isTheirs(event)) return;
      event.preventDefault();
      by(step);
    });
    stage.tabIndex = -1; // a click puts the keys here
    swipe();
  } else root.append(stage);

  function noun(words, reference) {
    const nodes = all(reference), looks = nodes[0].closest(ROLES)?.classList ?? [];
    const role = [...looks].find((look) => ROLES.includes(look)) ?? "";
    const mark = (on) => () => { marked = on ? nodes : null; light(); };
    const node = h("mark", { tabIndex: 0, className: `attn-noun ${role}` }, words);
    for (const event of ["pointerenter", "focus"]) node.addEventListener(event, mark(true));
    for (const event of ["pointerleave", "blur"]) node.addEventListener(event, mark(false));
    return Object.assign(node, { parts: nodes });
  }

  // ---- what the reader does
  function go(n) {
    marked = null;
    stop();
    put(model, { step: n + 1 });
    say();
  }
  function open(n) {
    opened.add(n);
    next.focus({ preventScroll: true }); // as "Show" goes away
    ask();
    say();
  }
  const by = (step) => (step > 0 && waits(now()) ? open(now()) : go(within(now() + step, 0, steps.length - 1)));
  function say() {
    const { caption, ask: question } = steps[now()];
    const words = pieces(caption).filter((_, i) => i % 3 < 2).join("");
    heard.textContent = `Step ${now() + 1} of ${steps.length}. ${waits(now()) ? question : words}`;
  }
  function start() {
    const onwards = () => {
      if (waits(now())) opened.add(now()), ask();
      else if (now() === steps.length - 1) return stop();
      else put(model, { step: now() + 2 });
      timer = setTimeout(onwards, pause(steps[now()].caption));
    };
    if (now() === steps.length - 1) put(model, { step: 1 });
    timer = setTimeout(onwards, 300);
    ask();
  }
  function stop() {
    clearTimeout(timer);
    timer = 0;
    ask();
  }
  function swipe() {
    let from = null;
    stage.addEventListener("pointerdown", (event) => (from = event.pointerType === "touch" ? event : null));
    stage.addEventListener("pointerup", (event) => {
      const x = event.clientX - from?.clientX, y = event.clientY - from?.clientY;
      if (Math.abs(x) > 40 && Math.abs(x) > 2 * Math.abs(y)) by(x < 0 ? 1 : -1);
    });
  }

  // ---- drawing
  const box = (node) => node.getBBox();
  const middle = ({ x, y, width, height: tall }) => [x + width / 2, y + tall / 2];
  const there = (node) => !node.closest(".draw-unseen");
  const nouns = () => [...captions[now()].querySelectorAll(".attn-noun")].flatMap((node) => node.parts);
  const lit = () => marked ?? [...fresh[now()], ...nouns()];

  function light() {
    for (const node of picture.querySelectorAll(".draw-lit")) node.classList.remove("draw-lit");
    const nodes = lit().filter(there);
    picture.classList.toggle("draw-dim", nodes.length > 0);
    for (const node of nodes) node.classList.add("draw-lit");
    for (const { node, to } of links) node.classList.toggle("draw-lit", Boolean(to.closest(".draw-lit")));
    if (marked) move(marked);
    else move(nodes, fresh[now()].filter(there));
  }
  // Moves the drawing so that the parts are in the window, or where they are too many, those that matter more.
  function move(nodes, rather = nodes) {
    if (!nodes.length || !stage.clientWidth) return;
    const ends = (all) => {
      const boxes = all.map(box);
      return [Math.min(...boxes.map(({ y }) => y)), Math.max(...boxes.map((b) => b.y + b.height))];
    };
    let [top, bottom] = ends(nodes);
    if (bottom - top > seen && rather.length) [top, bottom] = ends(rather);
    const y = within(bottom - top > seen ? bottom - seen + 6 : (top + bottom - seen) / 2, 0, height - seen);
    stage.style.setProperty("--top", y);
    stage.classList.toggle("attn-above", y > 1);
    stage.classList.toggle("attn-below", y < height - seen - 1);
  }
  // What an arrow joins to a new part flies into it.
  function fly(nodes) {
    for (const { from, to } of links.filter((link) => nodes.some((node) => node.contains(link.to)))) {
      const ghost = from.cloneNode(true), [x, y] = middle(box(from)), [toX, toY] = middle(box(to));
      ghost.removeAttribute("data-part");
      ghost.classList.remove("draw-unseen");
      ghost.classList.add("draw-ghost");
      ghost.style.setProperty("--dx", `${toX - x}px`);
      ghost.style.setProperty("--dy", `${toY - y}px`);
      ghost.addEventListener("animationend", () => ghost.remove());
      picture.append(ghost);
    }
  }
  function draw() {
    if (!steps.length) return;
    const n = now(), last = waits(n) ? n - 1 : n, forward = last === shown + 1;
    for (const [node, since] of first) node.classList.toggle("draw-unseen", since > last);
    for (const { node, from, to } of links) node.classList.toggle("draw-unseen", !there(from) || !there(to));
    for (const ghost of picture.querySelectorAll(".draw-ghost")) ghost.remove();
    if (forward && shown >= 0 && !calm.matches) fly(fresh[last]);
    shown = last;
    captions.forEach((node, i) => {
      node.classList.toggle("attn-here", i === n);
      node.classList.toggle("attn-waits", waits(i));
    });
    disable(back, n === 0);
    disable(next, n === steps.length - 1 && !waits(n));
    play.textContent = timer ? "Pause" : "Play";
    slider.value = n + 1;
    slider.setAttribute("aria-valuetext", `step ${n + 1} of ${steps.length}`);
    count.textContent = `${n + 1} / ${steps.length}`;
    light();
  }
  const ask = onceAFrame(draw);

  // ---- life
  const changes = { step: ask, svg: (again) => again(), steps: (again) => again() };
  const sized = () => steps.length && light(), leave = () => clearTimeout(timer);
  return live({ model, el, root, state, ask, changes, box: stage, sized, render, leave });
}

export default { render };
