// Draws bertviz's stored views when the reader scrolls near: only then are d3, jQuery and the
// weights fetched. Each view is in a shadow root, since bertviz gives every view the same ids,
// among them "attention", which a heading of the page may have too. There is no require.js:
// bertviz's script receives a jQuery and a d3 that search this root.
import { load as fetchScript, offer } from "./late-scripts.js";

const STYLE = `
  :host { color: var(--pst-color-text-base); font: 0.95rem var(--book-sans); }
  #vis { overflow: auto hidden; }
  svg { filter: var(--bertviz-filter); display: block; height: auto; fill: var(--pst-color-background); }
  svg text { fill: currentColor; font-family: var(--book-sans); }
  svg > text, .detail text { font-size: 15px; }
  span { display: flex; gap: 1rem; }
  label { display: flex; align-items: center; gap: 0.4rem; min-width: 0; height: 2.6rem; }
  select {
    flex: 0 1 auto; min-width: 3rem; height: 2.1rem; border: 1px solid var(--pst-color-text-muted);
    border-radius: 6px; background: var(--pst-color-background); color: inherit; font: inherit;
  }
  .background { fill: var(--pst-color-border); }
  .attn_background { fill: none; }
  .attn_background[stroke-opacity="0.8"], rect.detail { fill: var(--pst-color-surface); }
  [role] { cursor: pointer; }
  [role="button"] { opacity: 1 !important; fill: transparent; }
  [role="checkbox"] { stroke: var(--pst-color-background); stroke-width: 2; }
  [role="checkbox"][aria-checked="false"] { opacity: 0.35; }
  :focus { outline: none; }
  :focus-visible { outline: 2px solid var(--pst-color-primary); outline-offset: 1px; }
  @media print { #vis { overflow: visible; } svg { width: 100% !important; } span { display: none; } }`;

// What a script defines: its library, or the view of its file.
const here = (host, name) => () =>
  name.startsWith("d3-") ? globalThis.d3
  : name.startsWith("jquery-") ? globalThis.jQuery
  : globalThis.attnbookBertviz?.[host.dataset.view];
const load = (host, name) => fetchScript(`bertviz/${name}`, here(host, name));

// bertviz's squares and pictures only respond to the mouse: this adds names, roles and keys.
function operate(host, root, { layers, heads }) {
  const model = host.dataset.kind === "model";
  const natural = parseFloat(host.style.getPropertyValue("--ratio"));
  const pattern = model ? "svg > g > .attn_background ~ rect" : "svg > g:last-of-type > rect";
  const all = () => [...root.querySelectorAll(pattern)];
  const tell = () => {
    for (const square of all()) {
      const shown = square.parentNode.firstChild.getAttribute("stroke-opacity") !== "0";
      if (model) square.setAttribute("aria-pressed", shown);
      else square.setAttribute("aria-checked", square.__data__);
    }
  };
  const reach = (next) => {
    for (const square of all()) square.setAttribute("tabindex", square === next ? 0 : -1);
  };
  const dress = () => {
    const svg = root.querySelector("svg");
    // A long token exceeds bertviz's width: the picture grows and scrolls.
    const parts = [...svg.querySelectorAll(".background, .background ~ text"), ...all()];
    const boxes = parts.map((part) => part.getBBox());
    const left = Math.min(0, ...boxes.map(({ x }) => x));
    const right = Math.max(...boxes.map(({ x, width }) => x + width));
    const height = parseFloat(svg.getAttribute("height"));
    svg.setAttribute("viewBox", `${left} 0 ${right - left} ${height}`);
    svg.style.width = `calc(var(--bertviz-width) * ${(right - left) / natural})`;
    all().forEach((square, i) => {
      const layer = model ? `Layer ${layers[Math.floor(i / heads.length)]}, head` : "Head";
      square.setAttribute("role", model ? "button" : "checkbox");
      square.setAttribute("aria-label", `${layer} ${heads[i % heads.length]}`);
    });
    reach(all()[0]);
    tell();
  };
  root.addEventListener("change", dress);
  root.addEventListener("dblclick", tell);
  root.addEventListener("focusin", ({ target }) => all().includes(target) && reach(target));
  root.addEventListener("click", () => {
    tell();
    const detail = root.querySelector("rect.detail");
    detail?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  root.addEventListener("keydown", (event) => {
    const squares = all();
    const at = squares.indexOf(event.target);
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -heads.length, ArrowDown: heads.length };
    if (at < 0 || !(event.key in by || event.key === " " || event.key === "Enter")) return;
    event.preventDefault();
    if (event.key in by) squares[at + by[event.key]]?.focus();
    else event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  dress();
}

function draw(host, stage) {
  const view = globalThis.attnbookBertviz[host.dataset.view];
  const root = stage.attachShadow({ mode: "open" });
  root.innerHTML = `<style>${STYLE}</style>${view.html}`;
  for (const select of root.querySelectorAll("select")) {
    const label = document.createElement("label");
    const text = select.previousSibling;
    select.before(label);
    label.append(text, select);
  }
  const select = (what) => d3.select(typeof what === "string" ? root.querySelector(what) : what);
  const own = Object.create(d3, { select: { value: select } });
  const require = (names, body) => body((what) => jQuery(what, root), own);
  require.config = () => {};
  view.draw(require, require, { log() {} });
  operate(host, root, view);
}

async function show(host, instead) {
  const stage = document.createElement("div");
  try {
    await Promise.all(host.dataset.scripts.split(" ").map((name) => load(host, name)));
    host.append(stage);
    draw(host, stage);
    host.replaceChildren(stage);
  } catch (error) {
    console.warn("attnbook:", error);
    stage.remove();
    instead?.remove();
    const note = document.createElement("p");
    note.className = "widget-failed";
    note.setAttribute("role", "status");
    note.textContent = `This view could not be drawn in your browser: ${error.message}.`;
    host.append(note);
    if (error.lost) offer(note, () => show(host, note));
  }
  host.dataset.ready = "";
}

const near = new IntersectionObserver(
  (entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      near.unobserve(target);
      show(target);
    }
  },
  { rootMargin: "400px 0px" },
);
for (const host of document.querySelectorAll(".bertviz-view")) near.observe(host);
