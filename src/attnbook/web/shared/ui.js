// What the widgets need from the page: elements, traits, the theme, a link to the state, and their life cycle. Text is
// always inserted as text nodes: a token can never become HTML.
import { linkLeads, luminance, readLink, writeLink } from "./math.js";

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A button that can do nothing says so and ignores presses. It uses the attribute, since Firefox before 119 has no
// property for it, and not `disabled`, which would cost it the focus, and with it the keyboard.
export const disable = (node, is) => node.setAttribute("aria-disabled", Boolean(is));
export function button(text, onclick, className = "") {
  const press = () => node.getAttribute("aria-disabled") === "true" || onclick();
  const node = h("button", { type: "button", className, onclick: press }, text);
  return node;
}
// Draws. If that removes or hides the focused element, `heir` gets the focus.
export function keepFocus(root, draw, heir) {
  const node = document.activeElement, mine = root.contains(node);
  draw();
  if (mine && !node.getClientRects().length) heir.focus({ preventScroll: true });
}
// Whether a key belongs to the browser or the system, as Alt with an arrow does.
export const isTheirs = ({ altKey, ctrlKey, metaKey }) => altKey || ctrlKey || metaKey;

// A token inside other text: isolated, so that a right-to-left one does not reorder its neighbours.
export const token = (text) => h("bdi", { className: "attn-token" }, text);

// Writes only text that differs, since writing the same text causes a new layout.
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function select(label, options, onchange) {
  const list = h("select", { onchange: () => onchange(list.selectedIndex) },
    ...options.map((text) => h("option", {}, text)));
  return { node: h("label", { className: "attn-field" }, h("span", {}, label), list), list };
}

// Sets traits and tells the kernel, if there is one.
export function put(model, traits) {
  for (const [name, value] of Object.entries(traits)) model.set(name, value);
  model.save_changes();
}

// Runs `draw` at most once per frame, however many events ask for it.
export function onceAFrame(draw) {
  let asked = 0;
  const ask = () => (asked ||= requestAnimationFrame(() => ((asked = 0), draw())));
  return Object.assign(ask, { now: draw, cancel: () => cancelAnimationFrame(asked) });
}
// Runs parts of a drawing in turn, each in a frame of its own after the next one, since a phone has no time for all of
// them in one frame. Calls within `pause` milliseconds of the last run's start are ignored.
export function oneAFrame(parts, pause) {
  let last = -Infinity;
  const turn = (n) => requestAnimationFrame(() => {
    parts[n - 1]?.();
    if (n < parts.length) turn(n + 1);
  });
  return () => {
    const now = performance.now();
    if (now - last < pause) return;
    last = now;
    turn(0);
  };
}

// The text's own colour tells dark from light, whatever the host calls its themes.
export function isDark(el) {
  const rgb = getComputedStyle(el).color.match(/[\d.]+/g).map(Number);
  return luminance(rgb.slice(0, 3)) > 0.4;
}
export function onTheme(draw) {
  const watch = new MutationObserver(draw), query = matchMedia("(prefers-color-scheme: dark)");
  for (const node of [document.documentElement, document.body]) {
    watch.observe(node, { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light", "class"] });
  }
  query.addEventListener("change", draw);
  return () => (watch.disconnect(), query.removeEventListener("change", draw));
}

// The life cycle of a widget: puts `root` on the page and draws it (`ask`, from onceAFrame). From then on, changes of
// each trait in `changes`, of the theme (`themed`) and of the size of `box` (`sized`) call their handlers, until the
// returned function removes everything and calls `leave`. A trait's handler can rebuild the widget with `again`, which
// uses `render`.
export function live({ model, el, root, state, ask, changes, themed, box, sized, render, leave }) {
  const events = Object.entries(changes).map(([trait, react]) => [`change:${trait}`, () => react(again)]);
  const sizes = new ResizeObserver(() => sized()), stopTheme = themed && onTheme(themed);
  let stop = () => {
    for (const [event, react] of events) model.off(event, react);
    sizes.disconnect();
    stopTheme?.();
    leave?.();
    state.stop();
    ask.cancel();
    root.remove();
  };
  const again = () => { stop(); stop = render({ model, el }); };
  for (const [event, react] of events) model.on(event, react);
  el.append(root);
  if (box) sizes.observe(box);
  state.start();
  ask.now();
  return () => stop();
}

// A reset button and, on a page of the book, a link to the current state. `read` returns the state as lists of numbers
// or strings by trait; `write` restores it. Only what differs from the start goes into the link.
export function stateControls(el, name, read, write) {
  const start = read(), status = h("span", { className: "attn-status", role: "status" });
  const follow = () => {
    const state = readLink(location.hash, name);
    if (!state) return;
    const fits = ([trait, values]) => values.every((value) => typeof value === typeof (start[trait]?.[0] ?? 0));
    write({ ...start, ...Object.fromEntries(Object.entries(state).filter(fits)) });
    if (linkLeads(location.hash, name)) el.scrollIntoView({ block: "center" });
  };
  const reset = h("button", { type: "button", onclick: () => (write(start), (status.textContent = "Reset")) }, "Reset");
  const copy = h("button", { type: "button", onclick: async () => {
    const now = Object.entries(read()).filter(([trait, values]) => String(values) !== String(start[trait]));
    const url = location.href.split("#")[0] + writeLink(location.hash, name, Object.fromEntries(now));
    history.replaceState(history.state, "", url);
    const copied = navigator.clipboard?.writeText(url) ?? Promise.reject(); // over plain http there is no clipboard
    status.textContent = await copied.then(() => "Link copied", () => "The link is in the address bar");
  } }, "Copy link to this state");
  const bar = h("div", { className: "attn-foot" }, reset);
  if (!el.closest("[data-attnbook-page]")) return { bar: (bar.append(status), bar), start() {}, stop() {} };
  bar.append(copy, status);
  return {
    bar,
    start() { addEventListener("hashchange", follow); follow(); },
    stop() { removeEventListener("hashchange", follow); },
  };
}
