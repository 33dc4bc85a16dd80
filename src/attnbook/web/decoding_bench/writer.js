// Lets the model of DecodingBench write, token by token what the numbers fall on, until it is stopped or the text ends.
export class Writer {
  #timer; // of the next token; undefined, if nothing is written

  constructor(bench) {
    this.bench = bench;
  }
  get busy() {
    return this.#timer !== undefined;
  }
  // What is shown stays until the model has answered.
  get waits() {
    return Boolean(this.#timer) && !this.bench.over && !this.bench.placeOf(this.bench.path);
  }

  press() {
    if (this.busy) return this.halt();
    this.#timer = 0;
    this.bench.ask();
  }
  halt() {
    if (!this.busy) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.bench.model.save_changes();
    this.bench.ask();
  }
  // After a place was drawn.
  goOn() {
    if (!this.busy) return;
    const { bench } = this, which = bench.view?.drawn.which;
    if (bench.over) return this.halt();
    if (which === undefined) return bench.answers.ask(bench.path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      bench.model.set("written", [...bench.path, which]);
      if (this.waits) bench.answers.ask(bench.path); // before the next frame
    });
  }
}
