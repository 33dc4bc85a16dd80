// The state of Playground as a link stores it, and its choices.
import { packFolds, unpackFolds } from "./folds.js";
import { within } from "../shared/math.js";

export const LETTERS = 500; // most letters of a prompt
export const NUMBERS = ["temperature", "top_k", "top_p", "min_p", "seed", "place", "head", "checkpoint"];

export const PACES = [["4 tokens a second", 4], ["15 a second", 15], ["as fast as it can", Infinity]];
export const LEAD = "Begin a text. The model says what could come next; a random number picks one. "
  + "Each time you press Write, the numbers are new. "
  + "Press any token to see what else could have stood there, and any bar to take that instead.";

// A state that was stored before checkpoints existed has none.
export const checkpointsOf = (model) => model.get("checkpoints") ?? [{ name: model.get("weights"), step: 0 }];
export const chosenOf = (model) => model.get("checkpoint") ?? 0;

// `begun`: how many tokens had been written when the last Write began.
export function readState(model, begun) {
  const written = model.get("written");
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, [Number(model.get(name) ?? 0)]]));
  return { text: [model.get("text")], written: written.length ? written : [-1], ...numbers,
    unfolded: [packFolds(model.get("unfolded"))], begun: [begun] };
}

// The traits of a state from a link, which may hold anything; `size`, `layers` and `heads` are the model's.
export function traitsOf(given, { size, layers, heads }, model) {
  const [t, k, p, m, seed, place, head, checkpoint] = NUMBERS.map((name) => given[name][0]);
  const whole = (x, low, high = Infinity) => within(Math.trunc(x), low, high);
  return {
    text: given.text[0].slice(0, LETTERS).replace(/[\ud800-\udbff]$/, ""),
    written: given.written.filter((id) => Number.isInteger(id) && id >= 0 && id < size),
    temperature: Math.max(0, t), top_k: whole(k, 0), top_p: within(p, 0.01, 1), min_p: within(m, 0, 1),
    seed: whole(seed, 0, 1e6), place: whole(place, -1), head: whole(head, -1, layers * heads - 1),
    checkpoint: whole(checkpoint, 0, checkpointsOf(model).length - 1), unfolded: unpackFolds(given.unfolded[0]),
  };
}

// Says what the model no longer reads of a text whose window begins at `start`, and whether the text is full.
export function windowWritten({ config, full, most }, start) {
  if (!config) return "";
  const slid = start > 0 ? `The model reads at most ${config.max_len} tokens. Here its window has slid on: `
    + `it no longer knows the first ${start}, which are faint. ` : "";
  return slid + (full ? `A text of ${most} tokens is the longest: take some back to go on.` : "");
}
