// The bars of DecodingBench: the probability of each likely token as the model says, and as it is filtered.
import { fullBar, grouped, share, visible } from "../shared/math.js";
import { h, token, write } from "../shared/ui.js";

// `take` receives the id of a pressed token.
export function makeLines(take) {
  const head = h("div", { className: "attn-line attn-heads", "aria-hidden": "true" }, h("span"), h("span"),
    h("span", {}, "model"), h("span", {}, "filtered"));
  const list = h("ul", { className: "attn-could", role: "list" }), scale = h("p", { className: "attn-note" });
  const node = h("div", {}, head, list, scale), lines = [];
  const line = () => {
    const word = token(""), name = h("span", { className: "attn-label" }, word);
    const bar = h("i", { className: "attn-fill" });
    const grown = h("i", { className: "attn-grown" }), mark = h("i", { className: "attn-said" });
    const before = h("b"), after = h("b"), hidden = (words) => h("span", { className: "attn-heard" }, words);
    const looks = h("span", { className: "attn-heard" });
    const button = h("button", { type: "button", className: "attn-take attn-line", onclick: () => take(made.which) },
      name, h("span", { className: "attn-track", "aria-hidden": "true" }, grown, bar, mark), hidden(" model "), before,
      hidden(", filtered "), after, looks);
    const made = { node: h("li", {}, button), word, bar, grown, mark, before, after, looks };
    return made;
  };
  const others = h("li", { className: "attn-others attn-line" }, h("span"), h("span"), h("b"), h("b"));

  // `stored` holds the tokens that lead to stored places; null if the model can be asked about the place after any.
  function draw({ best, size, count: left, mass, near, drawn }, stored) {
    const rows = drawn.which === undefined || drawn.rank < best.length ? best : [...best, drawn];
    const full = fullBar(Math.max(...rows.flatMap(({ model, p, q }) => [model, p, q])));
    while (lines.length < rows.length) lines.push(line());
    rows.forEach(({ which, name, model, p, q }, n) => {
      const made = lines[n], cut = q === 0, hit = which === drawn.which, ends = stored && !stored.has(which);
      made.which = which;
      write(made.word, visible(name));
      made.bar.style.width = `${(100 * p) / full}%`;
      made.grown.style.width = `${(100 * q) / full}%`;
      made.mark.style.left = `${(100 * model) / full}%`;
      write(made.before, share(model));
      write(made.after, cut ? "–" : share(q));
      const looks = [cut && "attn-cut", hit && "attn-drawn", ends && "attn-unstored"];
      made.node.className = looks.filter(Boolean).join(" ");
      write(made.looks, (cut ? ", cut" : "") + (hit ? ", the number falls on it" : "")
        + (ends ? ", what follows is not stored" : ""));
    });
    const sum = (key) => rows.reduce((rest, row) => rest - row[key], 1), kept = Math.max(0, left - rows.length);
    const about = near.count ? "about " : "", all = kept === size - rows.length;
    const cells = [`${grouped(size - rows.length)} others`,
      all ? "all kept" : `${kept ? about : ""}${grouped(kept)} kept`, share(Math.max(0, sum("model"))),
      kept ? share(Math.max(0, sum("q"))) : "–"];
    cells.forEach((words, n) => write(others.children[n], words));
    const nodes = [...lines.slice(0, rows.length).map((each) => each.node), others];
    if (list.children.length !== nodes.length) list.replaceChildren(...nodes);
    list.classList.toggle("attn-some", stored !== null);
    write(scale, `A full bar is ${full}. The line marks the model's chance, the bar the chance at this temperature`
      + (mass < 0.9995 ? "; its faint end is what a kept token gains from those that are cut." : ".")
      + (stored ? " ▸: you can go on from here without the model." : ""));
  }
  return { node, draw };
}
