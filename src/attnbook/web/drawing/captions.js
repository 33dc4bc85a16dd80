// Captions of a drawing's steps, in which some words refer to parts of the picture.
import { h } from "../shared/ui.js";

const ROLES = ".draw-query, .draw-key, .draw-value, .draw-state, .draw-weight";

// A caption as [text, words, part, text, words, part, ..., text]: "[words](part)" marks words that refer to a part.
export const pieces = (caption) => caption.split(/\[([^[\]]+)\]\(([\w.*-]+)\)/);
export const plainText = (caption) => pieces(caption).filter((_, i) => i % 3 < 2).join("");
// The time to read a caption, in milliseconds.
export const pause = (caption) => Math.max(2400, 330 * caption.split(/\s+/).length);

// A list item. `partsOf` returns the nodes of a part. `mark` receives the nodes that the word under the pointer refers
// to, or null. `open` is called when the reader wants the answer to the step's question.
export function makeCaption({ caption, ask }, { partsOf, mark, open }) {
  const answer = h("p", { className: "attn-answer" }, ...pieces(caption).flatMap((piece, i, every) =>
    (i % 3 === 0 ? [piece] : i % 3 === 1 ? [makeNoun(piece, partsOf(every[i + 1]), mark)] : [])));
  if (!ask) return h("li", {}, answer);
  const show = h("button", { type: "button", className: "attn-show", onclick: open }, "Show the answer");
  return h("li", {}, h("div", { className: "attn-ask" }, h("p", {}, ask), show), answer);
}

function makeNoun(words, parts, mark) {
  const looks = parts[0].closest(ROLES)?.classList ?? [], role = [...looks].find((look) => ROLES.includes(look)) ?? "";
  const node = h("mark", { tabIndex: 0, className: `attn-noun ${role}` }, words);
  for (const event of ["pointerenter", "focus"]) node.addEventListener(event, () => mark(parts));
  for (const event of ["pointerleave", "blur"]) node.addEventListener(event, () => mark(null));
  return Object.assign(node, { parts });
}
// The nodes of all parts that a caption refers to.
export const mentioned = (item) => [...item.querySelectorAll(".attn-noun")].flatMap((node) => node.parts);
