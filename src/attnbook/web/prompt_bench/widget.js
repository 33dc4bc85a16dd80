// PromptBench: the reader gives a language model a prompt of their own, and sees what comes next.
import { Asker } from "./asker.js";
import { makeExamples } from "./examples.js";
import { makeFields } from "./fields.js";
import { fromLink, same, toLink } from "./prompt.js";
import { makeCandidates, makeNext, makeSent, spoken } from "./view.js";
import { Writer } from "./writer.js";
import { makeLoader } from "../shared/loader.js";
import { language, offered } from "../shared/published.js";
import { within } from "../shared/math.js";
import { button, h, keepFocus, live, onceAFrame, put, stateControls } from "../shared/ui.js";

const PAUSE = 400; // ms after the last key until the model is asked
const LEAD = "Choose a prompt or write your own. The model only ever says what comes next: the candidates are compared "
  + "as continuations.";
const LOADER = {
  offers: "With the model you can ask prompts of your own: what is shown now is stored.",
  runs: "The model runs in this page and answers while you write.",
};
const SAID = {
  stored: "A stored answer: Python computed it when this page was made.",
  told: "",
  asking: "The model reads …",
  none: "The answer to this prompt is not stored, and no model is there to ask. The bars below are of another prompt.",
};

class PromptBench {
  constructor(model, el) {
    const onPage = Boolean(el.closest("[data-attnbook-page]")), site = onPage ? offered() : undefined;
    this.model = model;
    this.language = site && language(site);
    this.asker = new Asker(model, onPage, () => this.ask());
    this.loader = onPage ? makeLoader({ site, language: this.language, ...LOADER }) : null;
    this.makeParts();
    this.state = stateControls(el, model.get("name"), () => this.read(), (state) => this.restore(state));
    this.root = this.layOut(model.get("title"));
    this.ask = onceAFrame(() => keepFocus(this.root, () => this.draw(), this.presets[0]));
  }

  makeParts() {
    const { model } = this;
    const choose = (asked) => () => this.change(asked, 0);
    this.presets = model.get("presets").map(({ name, asked }) => button(name, choose(asked)));
    this.fields = makeFields((some) => this.change(some), { template: model.get("template") });
    this.examples = makeExamples((examples, written) => this.change({ examples }, written ? PAUSE : 0));
    this.sent = makeSent(model.get("special"));
    this.candidates = makeCandidates();
    this.next = makeNext();
    this.writer = new Writer(model, this.asker, model.get("special"), () => this.ask());
    this.said = h("p", { className: "attn-note attn-how" });
    this.heard = h("p", { className: "attn-heard", "aria-live": "polite" });
  }
  layOut(title) {
    const { fields, loader } = this;
    return h("div", { className: "attn attn-prompts", role: "group", "aria-label": title || "Prompt bench" },
      ...(title ? [h("p", { className: "attn-title" }, title)] : []), h("p", { className: "attn-lead" }, LEAD),
      h("div", { className: "attn-row attn-presets", role: "group", "aria-label": "Prompts" }, ...this.presets),
      fields.form, fields.text, this.examples.node, fields.candidates, fields.chat, fields.system, fields.begin,
      ...(loader ? [h("div", { className: "attn-own" }, loader.row, loader.words)] : []),
      this.sent.node, this.said, this.candidates.node, this.next.node, this.writer.node, this.heard, this.state.bar);
  }

  // ---- what the reader does
  get asked() {
    return this.model.get("asked");
  }
  // Changes parts of the prompt; the model is asked once nothing has changed for `pause` ms.
  change(some, pause = PAUSE) {
    put(this.model, { asked: { ...this.asked, ...some } });
    this.wait(pause);
  }
  read() {
    const { model } = this;
    return { ...toLink(this.asked), temperature: [model.get("temperature")], seed: [model.get("seed")] };
  }
  restore({ temperature: [temperature], seed: [seed], ...state }) {
    const asked = fromLink(state), { model } = this;
    this.writer.halt();
    put(model, { asked: { ...asked, chat: asked.chat && Boolean(model.get("template")) },
      temperature: within(temperature, 0, 20), seed: within(Math.trunc(seed), 0, 1e6) });
    this.wait(0);
  }
  wait(pause) {
    clearTimeout(this.timer);
    this.timer = pause ? setTimeout(() => { this.timer = 0; this.ask(); }, pause) : 0;
    this.ask();
  }

  // The model's stage has changed: once it is ready, it answers.
  hearModel() {
    const { stage, told } = this.language;
    if (stage === "failed") this.asker.begin(undefined);
    if (stage === "ready" && !this.asker.language) {
      const likely = this.model.get("presets").flatMap(({ answer }) => answer.next);
      const same = told.names.length === this.model.get("sizes").vocab;
      if (!same || likely.some(([id, name]) => told.names[id] !== name)) {
        return this.language.fail(new Error("it is another model than the stored one"));
      }
      this.asker.begin(this.language);
    }
    if (stage === "loading") this.loader.draw();
    else this.ask();
  }

  // ---- drawing
  draw() {
    const { asked, asker } = this;
    this.fields.draw(asked);
    this.examples.draw(asked);
    this.presets.forEach((node, n) =>
      node.setAttribute("aria-pressed", same(this.model.get("presets")[n].asked, asked)));
    if (!this.timer) asker.ask(asked);
    const { answer, before, how, words } = asker, old = !["stored", "told"].includes(how);
    if (answer && (answer !== this.shown || old !== this.faded)) this.drawAnswer(answer, before, old);
    for (const { node } of [this.sent, this.next]) node.hidden = !answer;
    this.said.textContent = words || SAID[how];
    this.said.classList.toggle("attn-wrong", how === "wrong");
    const heard = old ? this.said.textContent : spoken(answer);
    if (how !== "asking" && this.heard.textContent !== heard) this.heard.textContent = heard;
    this.writer.draw(!old && !this.timer);
    this.loader?.draw();
  }
  // `old`: the answer is to another prompt than the current one.
  drawAnswer(answer, before, old) {
    this.sent.draw(answer.tokens, old);
    this.candidates.draw(answer, before, old);
    this.next.draw(answer, before, old);
    [this.shown, this.faded] = [answer, old];
  }
}

function render({ model, el }) {
  const bench = new PromptBench(model, el), { root, state, ask } = bench;
  const stop = live({ model, el, root, state, ask, changes: { asked: ask, temperature: ask, seed: ask }, render });
  const unwatch = bench.language?.watch(() => bench.hearModel());
  bench.loader?.look(ask);
  if (bench.language?.stage === "ready") bench.hearModel();
  return () => {
    unwatch?.();
    clearTimeout(bench.timer);
    bench.writer.stop();
    bench.asker.stop();
    stop();
  };
}

export default { render };
