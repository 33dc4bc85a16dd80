// The picture of a drawing: its named parts and the arrows between them, which of them are visible and lit, and the
// window in which the picture moves.
import { within } from "../shared/math.js";
import { h } from "../shared/ui.js";

// `tallest` is the largest height of the window.
export function openPicture(source, tallest) {
  const parsed = new DOMParser().parseFromString(source, "image/svg+xml");
  const node = document.importNode(parsed.documentElement, true), stage = h("div", { className: "attn-stage" }, node);
  const [, , , height] = node.getAttribute("viewBox").split(" ").map(Number), seen = Math.min(height, tallest);
  const links = [...node.querySelectorAll(".draw-link")].map((link) => ({
    node: link, from: find(node, link.dataset.from)[0], to: find(node, link.dataset.to)[0],
  }));
  stage.style.setProperty("--seen", seen);
  stage.style.setProperty("--whole", height);
  return { node, stage, height, seen, links };
}

// "scores" means every part of this name, "scores.2" the third of them or, if there is only one part, its third cell.
function find(node, reference) {
  const [part, which] = reference.split(".");
  const parts = [...node.querySelectorAll(`[data-part="${part}"]`)];
  if (which === undefined) return parts;
  const items = parts.length > 1 ? parts : [...parts[0].children].filter((child) => child.matches(".draw-unit"));
  return which === "*" ? items : [items[which]];
}
// The parts of a reference and the nodes beside them, such as a label.
export const partsOf = ({ node }, reference) =>
  [...find(node, reference), ...node.querySelectorAll(`[data-beside="${reference}"]`)];

// Shows the parts of the steps up to `last`, and the arrows between them. `first` maps a part to the step at which it
// appears.
export function reveal({ node: picture, links }, first, last) {
  for (const [node, step] of first) node.classList.toggle("draw-unseen", step > last);
  for (const { node, from, to } of links) node.classList.toggle("draw-unseen", !isSeen(from) || !isSeen(to));
  for (const ghost of picture.querySelectorAll(".draw-ghost")) ghost.remove();
}
export const isSeen = (node) => !node.closest(".draw-unseen");

// Lets copies of the parts at the start of an arrow fly into the new part at its end.
export function fly({ node: picture, links }, nodes) {
  const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
  for (const { from, to } of links.filter((link) => nodes.some((node) => node.contains(link.to)))) {
    const ghost = from.cloneNode(true), [x, y] = middle(from.getBBox()), [toX, toY] = middle(to.getBBox());
    ghost.removeAttribute("data-part");
    ghost.classList.remove("draw-unseen");
    ghost.classList.add("draw-ghost");
    ghost.style.setProperty("--dx", `${toX - x}px`);
    ghost.style.setProperty("--dy", `${toY - y}px`);
    ghost.addEventListener("animationend", () => ghost.remove());
    picture.append(ghost);
  }
}

// Lights these parts and the arrows into them, and dims the rest.
export function lightUp({ node: picture, links }, nodes) {
  for (const node of picture.querySelectorAll(".draw-lit")) node.classList.remove("draw-lit");
  picture.classList.toggle("draw-dim", nodes.length > 0);
  for (const node of nodes) node.classList.add("draw-lit");
  for (const { node, to } of links) node.classList.toggle("draw-lit", Boolean(to.closest(".draw-lit")));
}

// Moves the picture so that the parts are in the window or, if they do not fit, those that matter more (`rather`).
export function bringIntoView({ stage, height, seen }, nodes, rather = nodes) {
  if (!nodes.length || !stage.clientWidth) return;
  let [top, bottom] = extent(nodes);
  if (bottom - top > seen && rather.length) [top, bottom] = extent(rather);
  const y = within(bottom - top > seen ? bottom - seen + 6 : (top + bottom - seen) / 2, 0, height - seen);
  stage.style.setProperty("--top", y);
  stage.classList.toggle("attn-above", y > 1);
  stage.classList.toggle("attn-below", y < height - seen - 1);
}
function extent(nodes) {
  const boxes = nodes.map((node) => node.getBBox());
  return [Math.min(...boxes.map(({ y }) => y)), Math.max(...boxes.map(({ y, height }) => y + height))];
}
