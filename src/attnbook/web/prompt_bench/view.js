// What PromptBench shows: the prompt as tokens, and bars of candidates and of the likeliest next tokens.
import { shares } from "./prompt.js";
import { format, fullBar, share, visible } from "../shared/math.js";
import { h, token } from "../shared/ui.js";

// The prompt as it is sent, with special tokens set apart from the text.
export function makeSent(special) {
  const known = new Set(special), title = h("p", { className: "attn-legend" });
  const look = { className: "attn-sent", role: "group", tabIndex: 0, "aria-label": "The prompt, token by token" };
  const list = h("div", look);
  function draw(tokens, old) {
    title.textContent = `Sent to the model: ${tokens.length} tokens`;
    list.replaceChildren(...tokens.flatMap((name) => {
      const piece = h("bdi", { className: known.has(name) ? "attn-sent-token attn-special" : "attn-sent-token" },
        known.has(name) ? name : visible(name));
      return name.includes("\n") ? [piece, h("br")] : [piece];
    }));
    list.classList.toggle("attn-old", old);
  }
  return { node: h("div", {}, title, list), draw };
}

// Bars from rows { name, size (as a share of the full bar), before (the size in the previous answer), cells }.
function makeBars(label) {
  const list = h("ul", { className: "attn-asked", role: "list", "aria-label": label });
  function draw(rows, old) {
    list.replaceChildren(...rows.map(({ name, size, before, cells }) => {
      const bar = h("i", { className: "attn-fill" });
      const track = h("span", { className: "attn-track", "aria-hidden": "true" }, bar);
      bar.style.width = `${100 * Math.min(1, size)}%`;
      if (before !== undefined) {
        const mark = h("i", { className: "attn-before" });
        mark.style.width = `${100 * Math.min(1, before)}%`;
        track.prepend(mark);
      }
      return h("li", {}, h("span", { className: "attn-label" }, token(visible(name))), track,
        ...cells.map(([words, unit]) => h("b", {}, words, h("span", { className: "attn-heard" }, ` ${unit}, `))));
    }));
    list.classList.toggle("attn-old", old);
  }
  return { list, draw };
}
const heads = (...names) => h("div", { className: "attn-asked-heads", "aria-hidden": "true" },
  ...names.map((name) => h("span", {}, name)));

export function makeCandidates() {
  const bars = makeBars("How likely each is");
  const note = h("p", { className: "attn-note" }, "The bar is the share among the candidates; "
    + "faint: its share with the prompt before this one. Chance: among all texts that could follow. Log: its "
    + "natural logarithm, the sum over the candidate's tokens.");
  const node = h("div", { className: "attn-three" },
    h("p", { className: "attn-legend" }, "Which candidate comes next?"),
    heads("share", "chance", "log"), bars.list, note);
  function draw({ candidates }, before, old) {
    node.hidden = !candidates.length;
    if (!candidates.length) return;
    const earlier = new Map(before?.candidates.length ? shares(before.candidates).map((c) => [c.text, c.share]) : []);
    bars.draw(shares(candidates).map(({ text, logp, share: part }) => ({ name: text, size: part,
      before: earlier.get(text),
      cells: [[share(part), "among the candidates"], [share(Math.exp(logp), 4), "of all"], [format(logp, 2), "log"]],
    })), old);
  }
  return { node, draw };
}

export function makeNext() {
  const bars = makeBars("Most likely next tokens"), scale = h("p", { className: "attn-note" });
  const node = h("div", { className: "attn-one" }, h("p", { className: "attn-legend" }, "Most likely next tokens"),
    heads("chance"), bars.list, scale);
  function draw({ next }, before, old) {
    const earlier = new Map(before?.next.map(([id, , logp]) => [id, Math.exp(logp)]));
    const full = fullBar(Math.max(...next.map(([, , logp]) => Math.exp(logp))));
    bars.draw(next.map(([id, name, logp]) => ({ name, size: Math.exp(logp) / full,
      before: earlier.has(id) ? earlier.get(id) / full : undefined, cells: [[share(Math.exp(logp)), "chance"]],
    })), old);
    scale.textContent = `A full bar is ${full}.`;
  }
  return { node, draw };
}

// An answer in a sentence, for screen readers.
export function spoken({ candidates, next }) {
  const best = (rows) => rows.map(([name, part]) => `${name.trim() || visible(name)} ${share(part)}`).join(", ");
  return candidates.length ? `Shares: ${best(shares(candidates).map((c) => [c.text, c.share]))}.`
    : `Most likely next: ${best(next.slice(0, 3).map(([, name, logp]) => [name, Math.exp(logp)]))}.`;
}
