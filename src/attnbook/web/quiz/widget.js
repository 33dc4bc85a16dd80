// Quiz: one question at a time, a reason for each choice, and a score that the reader's browser keeps.
import { hash } from "../engine/random.js";
import { within } from "../shared/math.js";
import { button, disable, h, live, onceAFrame, put, stateControls } from "../shared/ui.js";

function render({ model, el }) {
  const title = model.get("title"), questions = model.get("questions"), last = questions.length - 1;
  const none = () => questions.map(() => -1), key = `attnbook.quiz.${model.get("name")}`;
  const onPage = Boolean(el.closest("[data-attnbook-page]")), content = hash(JSON.stringify(questions));
  const fits = (chosen) => Array.isArray(chosen) && chosen.length === questions.length
    && chosen.every((n, i) => Number.isInteger(n) && n >= -1 && n < questions[i].choices.length);
  const at = () => within(model.get("at"), 0, last), chosen = () => model.get("chosen");
  let looked = -1; // a choice whose reason is read after one was made

  // ---- elements
  const count = h("p", { className: "attn-note attn-score" });
  const ask = h("p", { className: "attn-asked" }), texts = h("div", { className: "attn-texts" });
  const choices = h("div", { className: "attn-choices", role: "group" });
  const verdict = h("p", { className: "attn-verdict" });
  const heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  const back = button("Back", () => go(-1)), next = button("Next question", () => go(1), "attn-next");
  const state = stateControls(el, model.get("name"), () => ({ at: [model.get("at")], chosen: chosen() }),
    ({ at: [n], chosen: all }) => {
      put(model, { at: within(Math.trunc(n), 0, last), chosen: fits(all) ? all : none() });
      keep();
    });
  const root = h("div", { className: "attn attn-quiz", role: "group", "aria-label": title || "Questions" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []), count, ask, texts, choices, verdict,
    ...(last > 0 ? [h("div", { className: "attn-row attn-act" }, back, next)] : []), heard, state.bar);

  // ---- what the reader does
  function choose(n) {
    const all = chosen();
    looked = n;
    if (all[at()] < 0) {
      put(model, { chosen: all.map((old, i) => (i === at() ? n : old)) });
      keep();
    }
    draw();
    heard.textContent = `${verdict.textContent} ${count.textContent}`;
  }
  function go(by) {
    const to = within(at() + by, 0, last);
    if (to === at()) return;
    put(model, { at: to });
    draw();
    heard.textContent = `${count.textContent} ${ask.textContent}`;
  }
  function keep() {
    if (!onPage) return;
    try {
      if (chosen().some((n) => n >= 0)) localStorage.setItem(key, JSON.stringify({ content, chosen: chosen() }));
      else localStorage.removeItem(key);
    } catch { /* a browser that keeps nothing */ }
  }
  function kept() {
    try {
      const found = JSON.parse(localStorage.getItem(key));
      if (found?.content === content && fits(found.chosen)) put(model, { chosen: found.chosen });
    } catch { /* nothing kept, or nothing of ours */ }
  }

  // ---- drawing
  let shown = -1; // the question whose elements are there
  function fill({ ask: words, texts: blocks, choices: names }) {
    ask.textContent = words;
    texts.replaceChildren(...blocks.map(([heading, text]) => h("div", {}, h("p", {}, heading),
      h("blockquote", {}, text))));
    choices.setAttribute("aria-label", words);
    choices.replaceChildren(...names.map((name, n) => h("button", { type: "button", className: "attn-choice",
      onclick: () => choose(n) }, h("span", { className: "attn-sign", "aria-hidden": "true" }),
    h("span", {}, name), h("span", { className: "attn-heard" }))));
  }
  function draw() {
    const n = at(), question = questions[n], mine = chosen()[n], answered = mine >= 0;
    if (n !== shown) {
      fill(question);
      shown = n;
      looked = -1;
    }
    const done = chosen().filter((each) => each >= 0).length;
    const right = chosen().filter((each, i) => each === questions[i].right).length;
    count.textContent = `Question ${n + 1} of ${questions.length} · right so far: ${right} of ${done} answered.`;
    [...choices.children].forEach((each, i) => {
      const good = answered && i === question.right, bad = i === mine && !good;
      each.className = ["attn-choice", good && "attn-good", bad && "attn-bad"].filter(Boolean).join(" ");
      each.setAttribute("aria-pressed", i === mine);
      each.firstChild.textContent = good ? "✓" : bad ? "✗" : "○";
      each.lastChild.textContent = good ? ", right" : bad ? ", wrong" : "";
    });
    const on = answered && looked >= 0 ? looked : mine;
    verdict.replaceChildren(...(answered ? [h("b", {}, on === question.right ? "Right." : "Wrong."),
      ` ${question.why[on]}`] : []));
    disable(back, n === 0);
    disable(next, n === last);
  }
  const redraw = onceAFrame(draw);

  // ---- life
  if (onPage) kept();
  const changes = { at: redraw, chosen: redraw, questions: (again) => again() };
  return live({ model, el, root, state, ask: redraw, changes, render });
}

export default { render };
