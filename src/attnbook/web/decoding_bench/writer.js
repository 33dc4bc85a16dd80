// Lets the model of DecodingBench write, one drawn token after another, until it is stopped or the text ends.
export class Writer {
  #timer; // for the next token; undefined while nothing is being written

  constructor(bench) {
    this.bench = bench;
  }
  get busy() {
    return this.#timer !== undefined;
  }
  // Whether what is shown stays until the model has answered.
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
  // Called after a place was drawn.
  goOn() {
    if (!this.busy) return;
    const { bench } = this, which = bench.view?.drawn.which;
    if (bench.over) return this.halt();
    if (which === undefined) return bench.answers.ask(bench.path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      bench.path = [...bench.path, which];
      if (this.waits) bench.answers.ask(bench.path); // now, not in the next frame
    });
  }
}
