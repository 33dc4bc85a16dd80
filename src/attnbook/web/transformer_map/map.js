// The drawing of a Transformer as a group of buttons: one for each part that can be pressed.
import { h } from "../shared/ui.js";

const SMALL = ["port", "keys", "rope"]; // belong to another part

// The part that a press opens: queries, keys and values belong to the attention that is drawn after them.
function opens(part) {
  const own = part.dataset.part;
  if (!SMALL.includes(own)) return own;
  if (own === "rope") return "positions";
  let next = part;
  while (next && !["attention", "cross"].includes(next.dataset.part)) next = next.nextElementSibling;
  return next?.dataset.part ?? "attention";
}

// Whether a part belongs to the encoder, which is drawn before its output H; the decoder is drawn after it.
export const reads = (part) => {
  const end = part.ownerSVGElement.querySelector('[data-part="H"]');
  return Boolean(end && part.compareDocumentPosition(end) & Node.DOCUMENT_POSITION_FOLLOWING);
};

export function makeMap(svg, names, press, nameOf = (name) => name) {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  const node = document.importNode(parsed.documentElement, true), seen = new Set();
  node.setAttribute("role", "group");
  for (const part of node.querySelectorAll("[data-part]")) {
    const name = nameOf(opens(part), part), small = SMALL.includes(part.dataset.part);
    if (!names.includes(name) || !part.querySelector("rect")) continue;
    part.classList.add("attn-press");
    part.addEventListener("click", () => press(name, part));
    if (small) continue;
    part.dataset.opens = name;
    if (seen.has(name)) continue; // does the same: one tab stop is enough
    seen.add(name);
    for (const [key, value] of [["role", "button"], ["tabindex", 0]]) part.setAttribute(key, value);
    if (name.startsWith("encoder ")) part.setAttribute("aria-label", `${part.textContent.trim()}, encoder`);
    part.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      press(name, part);
    });
  }
  return node;
}

export function mark(map, part, away) {
  for (const node of map.querySelectorAll(".attn-press")) {
    const is = node.dataset.opens === part;
    node.classList.toggle(away ? "attn-away" : "attn-open", is);
    if (node.hasAttribute("role")) node.setAttribute("aria-pressed", String(is));
  }
}

// A row of buttons, one or several of them pressed. Each option is [text, is it pressed, what a press does].
export function makeSwitch(label, options) {
  const keys = options.map(([text, , press]) => h("button", { type: "button", onclick: press }, text));
  const node = h("div", { className: "attn-orders", role: "group", "aria-label": label }, ...keys);
  return { node, draw: () => options.forEach(([, is], n) => keys[n].setAttribute("aria-pressed", String(is()))) };
}

// The frame of all maps: title, switches, a sentence about the drawing (`rule`), the drawing, and the panel beside it.
export function makeBoard(title, switches, panel, bar) {
  const rule = h("p", { className: "attn-rule", "aria-live": "polite" });
  const stage = h("div", { className: "attn-towers" });
  const root = h("div", { className: "attn attn-machine", role: "group", "aria-label": title || "Transformer" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []), ...switches.map(({ node }) => node), rule,
    h("div", { className: "attn-both" }, stage, panel), bar);
  const show = (map) => {
    for (const each of switches) each.draw();
    if (stage.firstChild !== map) stage.replaceChildren(map);
  };
  return { root, rule, show };
}
