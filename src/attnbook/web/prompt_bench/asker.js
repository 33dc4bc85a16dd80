// Gets answers to prompts of PromptBench from storage, from a kernel or, if the page has loaded it, from the model.
import { answerTo, built, problem, same } from "./prompt.js";

const PATIENCE = 4000; // ms to wait for a kernel

export class Asker {
  // `changed` is called when there is something new to show; the field `how` says what it is.
  constructor(model, onPage, changed) {
    Object.assign(this, { model, changed, template: model.get("template"), presets: model.get("presets") });
    this.silent = onPage; // no kernel answers
    this.language = undefined; // the model, once it runs in the page
    this.number = 0; // of the newest question
    this.waiting = new Map(); // what to do with a kernel's answers, by question number
    this.asked = undefined; // the newest question
    this.answer = this.of = this.before = undefined; // the newest answer, its question, and the previous answer
    this.how = "none"; // none, stored, asking, told, or wrong
    this.words = ""; // what is wrong, or how far the model has read
    this.hear = this.hear.bind(this);
    model.on("msg:custom", this.hear);
  }

  // From now on the model in the page answers.
  begin(language) {
    this.language = language;
    this.asked = undefined;
  }
  preset(asked) {
    return this.presets.find((each) => same(each.asked, asked));
  }
  show(how, { answer, words = "" } = {}) {
    if (answer && !(this.of && same(this.of, this.asked))) [this.before, this.of] = [this.answer, this.asked];
    Object.assign(this, { how, words, answer: answer ?? this.answer });
    this.changed();
  }

  ask(asked) {
    if (this.asked && same(asked, this.asked)) return;
    this.asked = asked;
    const number = ++this.number, wrong = problem(asked, this.template), stored = this.preset(asked);
    this.forget();
    if (wrong) return this.show("wrong", { words: wrong });
    if (stored) this.show("stored", { answer: stored.answer });
    if (this.language) return this.compute(asked, number);
    if (stored) return;
    this.show("asking");
    this.send({ ask: asked }, ({ answer, error }) =>
      (answer ? this.show("told", { answer }) : this.show("wrong", { words: `${error}.` })), () => this.show("none"));
  }
  async compute(asked, number) {
    const { language, template } = this, { names, sizes } = language.told;
    const said = (read, all) => ({ words: `${read} of ${all} tokens read.` });
    const heard = (read, all) => number === this.number && this.show("asking", said(read, all));
    this.show("asking");
    try {
      const found = await answerTo(asked, { template, room: sizes.room, names, heard,
        encode: (...given) => language.encode(...given), next: (...given) => language.next(...given) });
      if (number !== this.number) return;
      if (found?.wrong) this.show("wrong", { words: found.wrong });
      else if (found) this.show("told", { answer: found.answer });
      else this.show("wrong", { words: "The model was asked something else. Change the prompt to ask again." });
    } catch (error) {
      if (number === this.number) language.fail(error);
    }
  }
  // The ids of the current prompt.
  ids() {
    return this.language.encode(built(this.asked, this.template), this.asked.chat);
  }

  // ---- a kernel
  // `done` receives the kernel's answer; `missed` is called if none comes, as on a page without a kernel.
  send(what, done, missed) {
    const number = ++this.number, late = () => { this.silent = true; missed(); };
    this.waiting.set(number, { done, timer: this.silent ? 0 : setTimeout(late, PATIENCE) });
    this.model.send({ ...what, number });
    if (this.silent) missed();
  }
  hear({ number, ...told } = {}) {
    const waits = this.waiting.get(number);
    if (!waits) return;
    clearTimeout(waits.timer);
    this.waiting.delete(number);
    this.silent = false;
    waits.done(told);
  }
  forget() {
    for (const { timer } of this.waiting.values()) clearTimeout(timer);
    this.waiting.clear();
  }
  stop() {
    this.model.off("msg:custom", this.hear);
    this.number = -1;
    this.forget();
  }
}
