// One run of the laboratory: a decoder, its task and its training. `settings` are the reader's choices, named as in
// TransformerConfig where it has them, and the `text` or `table` of a task that needs one.
import { clip, OPTIMIZERS, rate } from "./optimizers.js";
import { generator, hash } from "./random.js";
import { configured, sizes } from "./sizes.js";
import { backward, pass } from "./tape.js";
import { makeTask } from "./tasks.js";
import { crossEntropy, firstParameters, IGNORED, nextLogits } from "./training.js";
import { causal } from "./transformer.js";

const TESTED = 64, EVERY = 25; // held-out rows, steps between two tests

// The rows of a batch as the model reads them, each without its last token and padded to one length, and their targets.
function packed(rows) {
  const n = Math.max(...rows.map(({ ids }) => ids.length)) - 1, read = [], targets = [];
  for (const { ids, from } of rows) {
    for (let i = 0; i < n; i++) {
      read.push(ids[i] ?? ids.at(-1));
      targets.push(i + 1 < from ? IGNORED : ids[i + 1] ?? IGNORED);
    }
  }
  return { read, targets };
}

// How much of the outputs of `tested` these rows match: the share of tokens, and of whole outputs.
function compared(rows, tested) {
  let tokens = 0, exact = 0, count = 0;
  rows.forEach((ids, r) => {
    const { ids: wanted, from, to } = tested[r];
    let good = 0;
    for (let n = from; n < to; n++) good += ids[n] === wanted[n];
    [tokens, count, exact] = [tokens + good, count + to - from, exact + (good === to - from)];
  });
  return { tokens: tokens / count, exact: exact / rows.length };
}

class Lesson {
  constructor(settings) {
    const task = makeTask(settings.task, settings), same = generator(0), head = settings.d_model / settings.n_heads;
    if (settings.positions === "rotary" && head % 2) {
      throw new Error(`rotary turns pairs, and a head has ${head} number`);
    }
    this.settings = settings;
    this.task = task;
    this.config = configured(settings, task);
    this.sizes = sizes(settings, task);
    this.parameters = firstParameters(this.config, task.tokens.length, settings.seed);
    this.all = [...this.parameters.values()];
    this.update = OPTIMIZERS[settings.optimizer](this.parameters);
    this.mask = settings.causal ? causal() : undefined;
    this.random = generator(hash(`rows ${settings.seed}`));
    this.tested = Array.from({ length: TESTED }, () => task.draw(same, true));
    this.step = 0;
  }

  // The logits and blocks for `batch` rows, concatenated in `read`.
  forward(read, batch) {
    return nextLogits((name) => this.parameters.get(name), this.config, read, { mask: this.mask, batch });
  }

  learn() {
    const { batch, lr, clip: longest } = this.settings;
    const { read, targets } = packed(Array.from({ length: batch }, () => this.task.draw(this.random, false)));
    const loss = pass(() => backward(() => crossEntropy(this.forward(read, batch).logits, targets)));
    if (longest) clip(this.all, longest);
    this.update(lr * rate(this.step, this.settings));
    this.step += 1;
    return loss;
  }

  // Writes the likeliest token at each place of the outputs into copies of the rows, all rows at once: the model reads
  // what it has written so far, and nothing after it.
  written(rows) {
    const size = this.task.tokens.length, out = rows.map(({ ids }) => [...ids]);
    const end = Math.max(...rows.map(({ to }) => to));
    for (let n = Math.min(...rows.map(({ from }) => from)); n < end; n++) {
      const read = out.flatMap((ids) => Array.from({ length: n }, (_, i) => ids[i] ?? ids.at(-1)));
      pass(() => {
        const { data } = this.forward(read, rows.length).logits;
        rows.forEach(({ from, to }, r) => {
          if (n >= from && n < to) out[r][n] = largestOf(data, ((r + 1) * n - 1) * size, size);
        });
      });
    }
    return out;
  }

  // Tests on held-out rows: the loss, and the shares of whole outputs and of tokens that are right.
  test() {
    const { step } = this, { read, targets } = packed(this.tested);
    if (this.task.running) return { step, ...this.testText(read, targets) };
    const loss = pass(() => crossEntropy(this.forward(read, TESTED).logits, targets).data[0]);
    return { step, loss, ...compared(this.written(this.tested), this.tested) };
  }
  // Each token of a text is predicted from the true ones before it.
  testText(read, targets) {
    const size = this.task.tokens.length;
    let right = 0, loss;
    pass(() => {
      const { logits } = this.forward(read, TESTED);
      loss = crossEntropy(logits, targets).data[0];
      targets.forEach((target, i) => (right += target === largestOf(logits.data, i * size, size)));
    });
    return { loss, tokens: right / targets.length, exact: null };
  }

  // Trains for `steps` steps, or as many as fit into `ms` milliseconds, at least one; returns their losses and the
  // tests due.
  train({ steps = Infinity, ms = Infinity }) {
    const start = performance.now(), losses = [], tests = this.step ? [] : [this.test()];
    do {
      losses.push(this.learn());
      if (this.step % EVERY === 0) tests.push(this.test());
    } while (losses.length < steps && performance.now() - start < ms);
    return { step: this.step, losses, tests };
  }

  // The model's answer to a text typed by the reader, with all its attention weights: [layer head query key].
  look({ text }) {
    const { task, config } = this, asked = task.ask(text);
    if (asked.error) return asked;
    const [ids] = this.written([asked]), stop = ids.indexOf(task.end, asked.from), end = stop < 0 ? ids.length : stop;
    const names = (from) => from.map((id) => task.tokens[id]);
    const wanted = task.running ? null : names(asked.ids.slice(asked.from).filter((id) => id !== task.end));
    return pass(() => {
      const { blocks } = this.forward(ids.slice(0, end), 1);
      const data = blocks.flatMap(({ attention }) => [...attention.weights.data]);
      return {
        input: names(ids.slice(0, asked.from)), output: names(ids.slice(asked.from, end)), wanted, held: asked.held,
        joiner: task.joiner, weights: { data, shape: [config.n_layers, config.n_heads, end] },
      };
    });
  }
}

export const begin = (settings) => new Lesson(settings);

function largestOf(data, start, size) {
  let best = 0;
  for (let n = 1; n < size; n++) if (data[start + n] > data[start + best]) best = n;
  return best;
}
