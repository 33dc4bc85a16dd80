// The parts of Playground on the page: the text as tokens, the bars of what could come next, the draw.
import { format, fullBar, grouped, share, visible } from "../shared/math.js";
import { h, isTheirs, token } from "../shared/ui.js";

const WIDE = 0.07; // the least share that has room for its name
const MOST_BITS = 12; // from here on a token is at its darkest

// Fills a node with one child per item; the leading children whose keys have not changed stay.
export function fill(node, items, key, make) {
  const keys = items.map((item, n) => JSON.stringify(key(item, n))), old = node.keys ?? [];
  let same = 0;
  while (same < keys.length && keys[same] === old[same]) same++;
  while (node.children.length > same) node.lastElementChild.remove();
  node.append(...items.slice(same).map((item, n) => make(item, same + n)));
  node.keys = keys;
}

// The text, each token a button, and after it a button for the next token. `choose` receives the place of a pressed
// one. Tab reaches one of them, arrow keys lead to the others.
export function makeText(choose) {
  const list = h("span"), next = h("button", { type: "button", className: "attn-tok attn-next" }, "…");
  const said = { className: "attn-text", role: "group", "aria-label": "The text, token by token" };
  const node = h("div", said, list, next);
  const all = () => [...list.querySelectorAll("button"), next];
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  node.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button) choose(all().indexOf(button));
  });
  node.addEventListener("keydown", (event) => {
    const buttons = all(), at = buttons.indexOf(document.activeElement), by = step[event.key];
    const to = { Home: buttons[0], End: next }[event.key] ?? (by && buttons[at + by]);
    if (!to || at < 0 || isTheirs(event)) return;
    event.preventDefault();
    to.focus();
  });
  node.addEventListener("focusin", ({ target }) => all().forEach((each) => (each.tabIndex = each === target ? 0 : -1)));

  // `at` is the place on view; after the row it is the place of the next token. `bits` holds the tokens' surprisal.
  // To predict this place the model reads no token before `start`.
  function draw({ ids, pieces, prompt }, names, at, bits, start) {
    const shown = (id, n) => pieces[n] || (names[id].startsWith("\\x") ? "·" : names[id]);
    fill(list, ids, (id, n) => [id, pieces[n], n < prompt], (id, n) => {
      const text = shown(id, n).replace(/\n/g, "↵"), look = n < prompt ? "attn-tok attn-given" : "attn-tok";
      const button = h("button", { type: "button", className: look, tabIndex: -1 }, h("bdi", {}, text));
      if (!text.trim() || text === "·") button.setAttribute("aria-label", visible(names[id]));
      return h("span", {}, button, ...(pieces[n].endsWith("\n") ? [h("br")] : []));
    });
    const buttons = all();
    buttons.forEach((button, n) => {
      const pressed = n === Math.min(at, ids.length);
      if (button.pressed !== pressed) button.setAttribute("aria-pressed", (button.pressed = pressed));
      if (button.gone !== n < start) button.classList.toggle("attn-gone", (button.gone = n < start));
      const level = Math.min(1, (bits?.[n - 1] ?? 0) / MOST_BITS);
      if (button.level === level) return;
      button.style.setProperty("--level", (button.level = level));
      button.setAttribute("aria-description", level < 1 ? "" : "rare");
    });
    next.setAttribute("aria-label", "The next token");
    if (!buttons.some((button) => button.tabIndex === 0)) next.tabIndex = 0;
  }
  return { node, draw };
}

// What could come at a place, as bars. `take` receives the id of a pressed token.
export function makeBars(take) {
  const list = h("ul", { className: "attn-could", role: "list" }), node = h("div", {}, list);
  const scale = h("p", { className: "attn-note" });
  node.append(scale);
  const lines = [];
  const line = () => {
    const name = h("span", { className: "attn-label" }), bar = h("i", { className: "attn-fill" });
    const grown = h("i", { className: "attn-grown" }), value = h("b"), said = h("span", { className: "attn-heard" });
    const button = h("button", { type: "button", className: "attn-take", onclick: () => take(made.which) },
      name, h("span", { className: "attn-track", "aria-hidden": "true" }, grown, bar), value, said);
    const made = { node: h("li", {}, button), button, name, bar, grown, value, said };
    return made;
  };
  const others = h("li", { className: "attn-others" }, h("span"), h("span"), h("b"));

  // `here` is the token at the place, if there is one.
  function draw({ best, size, count: left, mass, drawn }, here, ready) {
    const full = fullBar(best[0].p / Math.min(1, mass));
    const rows = drawn.rank < best.length ? best : [...best, drawn];
    while (lines.length < rows.length) lines.push(line());
    rows.forEach(({ which, name, p }, n) => {
      const made = lines[n], cut = n >= left, q = cut ? 0 : p / mass, hit = which === drawn.which;
      made.which = which;
      made.name.replaceChildren(token(visible(name)));
      made.bar.style.width = `${(100 * p) / full}%`;
      made.grown.style.width = `${(100 * q) / full}%`;
      made.value.textContent = share(p);
      const looks = [cut && "attn-cut", hit && "attn-drawn", which === here && "attn-here"];
      made.node.className = looks.filter(Boolean).join(" ");
      made.button.disabled = !ready;
      made.said.textContent = (cut ? ", cut" : "") + (which === here ? ", stands here" : "") + (hit ? ", drawn" : "");
    });
    const rest = Math.max(0, rows.reduce((sum, { p }) => sum - p, 1)), kept = Math.max(0, left - rows.length);
    others.children[0].textContent = `${grouped(size - rows.length)} others`;
    others.children[1].textContent = kept === size - rows.length ? "" : `${grouped(kept)} of them kept`;
    others.children[2].textContent = share(rest);
    const nodes = [...lines.slice(0, rows.length).map((each) => each.node), others];
    if (list.children.length !== nodes.length) list.replaceChildren(...nodes);
    const cut = `${grouped(size - left)} of ${grouped(size)} tokens; their probability goes to the ${grouped(left)} `
      + "that are kept: the light end of each bar (often too small to see).";
    scale.textContent = `A full bar is ${full}.` + (left < size ? ` Cut: ${cut}` : "");
  }
  return { node, draw };
}

// The remaining tokens side by side, each as wide as its share, and the random number that falls on one of them;
// `other` is a button for another number.
export function makeDraw(other) {
  const strip = h("div", { className: "attn-strip" }), pin = h("i", { className: "attn-pin" });
  const said = h("p", { className: "attn-fell" });
  const box = h("div", { className: "attn-strip-box", "aria-hidden": "true" }, pin, strip);
  const node = h("div", { className: "attn-draw" }, box, h("div", { className: "attn-fall" }, said, other));
  const parts = [];

  function draw({ best, count: left, mass, number, drawn }) {
    const wide = best.slice(0, left).map(({ name, p }) => [visible(name), p / mass]);
    const rest = wide.reduce((sum, [, q]) => sum - q, 1);
    if (left > best.length) wide.push(["others", Math.max(0, rest)]);
    while (parts.length < wide.length) parts.push(h("span", {}, h("bdi")));
    wide.forEach(([name, q], n) => {
      parts[n].style.flexGrow = q;
      parts[n].firstChild.textContent = q > WIDE ? name : "";
      parts[n].className = n === Math.min(drawn.rank, best.length) ? "attn-hit" : "";
    });
    if (strip.children.length !== wide.length) strip.replaceChildren(...parts.slice(0, wide.length));
    pin.style.left = `${100 * number}%`;
    said.replaceChildren("The number ", h("b", {}, format(number)), " falls on ", token(visible(drawn.name)),
      ` (${format(drawn.from)} to ${format(drawn.to)}).`);
  }
  return { node, draw };
}
