// Quiz: one question at a time, a reason for each choice, and a score that the reader's browser keeps.
import { hash } from "../engine/random.js";
import { within } from "../shared/math.js";
import { button, disable, h, live, onceAFrame, put, stateControls } from "../shared/ui.js";

// Whether `chosen` has, for each question, the index of one of its choices or -1.
const areChoices = (chosen, questions) => Array.isArray(chosen) && chosen.length === questions.length
  && chosen.every((n, i) => Number.isInteger(n) && n >= -1 && n < questions[i].choices.length);

function scoreLine(at, chosen, questions) {
  const done = chosen.filter((each) => each >= 0).length;
  const right = chosen.filter((each, i) => each === questions[i].right).length;
  return `Question ${at + 1} of ${questions.length} · right so far: ${right} of ${done} answered.`;
}

// The reader's earlier choices, which the browser keeps as long as the questions stay the same.
class Memory {
  constructor(name, questions) {
    this.key = `attnbook.quiz.${name}`;
    this.questions = questions;
    this.content = hash(JSON.stringify(questions));
  }

  keep(chosen) {
    try {
      if (chosen.some((n) => n >= 0)) localStorage.setItem(this.key, JSON.stringify({ content: this.content, chosen }));
      else localStorage.removeItem(this.key);
    } catch { /* the browser stores nothing */ }
  }

  recall() {
    try {
      const kept = JSON.parse(localStorage.getItem(this.key));
      if (kept?.content === this.content && areChoices(kept.chosen, this.questions)) return kept.chosen;
    } catch { /* no storage, or content that is not ours */ }
    return null;
  }
}

// The elements; `go` receives the number of questions to move by.
function makeView(title, several, go, footer) {
  const view = {
    count: h("p", { className: "attn-note attn-score" }),
    ask: h("p", { className: "attn-asked" }),
    texts: h("div", { className: "attn-texts" }),
    choices: h("div", { className: "attn-choices", role: "group" }),
    verdict: h("p", { className: "attn-verdict" }),
    heard: h("p", { className: "attn-heard", "aria-live": "polite" }),
    back: button("Back", () => go(-1)),
    next: button("Next question", () => go(1), "attn-next"),
  };
  view.root = h("div", { className: "attn attn-quiz", role: "group", "aria-label": title || "Questions" },
    ...(title ? [h("p", { className: "attn-title" }, title)] : []),
    view.count, view.ask, view.texts, view.choices, view.verdict,
    ...(several ? [h("div", { className: "attn-row attn-act" }, view.back, view.next)] : []), view.heard, footer);
  return view;
}

function fillQuestion(view, question, choose) {
  const choice = (name, n) => h("button", { type: "button", className: "attn-choice", onclick: () => choose(n) },
    h("span", { className: "attn-sign", "aria-hidden": "true" }), h("span", {}, name),
    h("span", { className: "attn-heard" }));
  const text = ([heading, words]) => h("div", {}, h("p", {}, heading), h("blockquote", {}, words));
  view.ask.textContent = question.ask;
  view.texts.replaceChildren(...question.texts.map(text));
  view.choices.setAttribute("aria-label", question.ask);
  view.choices.replaceChildren(...question.choices.map(choice));
}

// Once a choice is made, marks the right one and, if it is another, the reader's own.
function markChoices(nodes, right, mine) {
  [...nodes].forEach((node, i) => {
    const good = mine >= 0 && i === right, bad = i === mine && !good;
    node.className = ["attn-choice", good && "attn-good", bad && "attn-bad"].filter(Boolean).join(" ");
    node.setAttribute("aria-pressed", i === mine);
    node.firstChild.textContent = good ? "✓" : bad ? "✗" : "○";
    node.lastChild.textContent = good ? ", right" : bad ? ", wrong" : "";
  });
}

class Quiz {
  constructor(model, el) {
    const name = model.get("name"), questions = model.get("questions");
    this.model = model;
    this.questions = questions;
    this.last = questions.length - 1;
    this.memory = el.closest("[data-attnbook-page]") ? new Memory(name, questions) : null;
    this.shown = -1; // the question that the elements show
    this.looked = -1; // the choice pressed last, whose reason is shown
    this.state = stateControls(el, name, () => ({ at: [model.get("at")], chosen: this.chosen }),
      (state) => this.restore(state));
    this.view = makeView(model.get("title"), this.last > 0, (by) => this.go(by), this.state.bar);
    const kept = this.memory?.recall();
    if (kept) put(model, { chosen: kept });
  }

  get at() {
    return within(this.model.get("at"), 0, this.last);
  }

  get chosen() {
    return this.model.get("chosen");
  }

  restore({ at: [n], chosen }) {
    const none = this.questions.map(() => -1);
    put(this.model, {
      at: within(Math.trunc(n), 0, this.last), chosen: areChoices(chosen, this.questions) ? chosen : none,
    });
    this.memory?.keep(this.chosen);
  }

  choose(n) {
    const { at, chosen, view } = this;
    this.looked = n;
    if (chosen[at] < 0) {
      put(this.model, { chosen: chosen.map((old, i) => (i === at ? n : old)) });
      this.memory?.keep(this.chosen);
    }
    this.draw();
    view.heard.textContent = `${view.verdict.textContent} ${view.count.textContent}`;
  }

  go(by) {
    const { view } = this, to = within(this.at + by, 0, this.last);
    if (to === this.at) return;
    put(this.model, { at: to });
    this.draw();
    view.heard.textContent = `${view.count.textContent} ${view.ask.textContent}`;
  }

  draw() {
    const { view, at, chosen } = this, question = this.questions[at], mine = chosen[at];
    if (at !== this.shown) {
      fillQuestion(view, question, (n) => this.choose(n));
      this.shown = at;
      this.looked = -1;
    }
    view.count.textContent = scoreLine(at, chosen, this.questions);
    markChoices(view.choices.children, question.right, mine);
    const read = this.looked >= 0 ? this.looked : mine, verdict = read === question.right ? "Right." : "Wrong.";
    view.verdict.replaceChildren(...(mine >= 0 ? [h("b", {}, verdict), ` ${question.why[read]}`] : []));
    disable(view.back, at === 0);
    disable(view.next, at === this.last);
  }
}

function render({ model, el }) {
  const quiz = new Quiz(model, el), redraw = onceAFrame(() => quiz.draw());
  const changes = { at: redraw, chosen: redraw, questions: (again) => again() };
  return live({ model, el, root: quiz.view.root, state: quiz.state, ask: redraw, changes, render });
}

export default { render };
