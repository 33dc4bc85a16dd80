// The settings of the laboratory.
import CHOICES from "./choices.json" with { type: "json" };

export const choices = CHOICES.map(([name, label, values, start]) => ({ name, label, values, start }));
export const TASKS = {
  sort: "sort six letters", reverse: "reverse six letters", copy: "copy six letters, four dots later",
  add: "add two numbers", add_reversed: "add two numbers, last digit first", words: "number words to German",
  text: "go on with a text",
};
const WORDS = {
  sinusoidal: "waves", alibi: "ALiBi", gelu_tanh: "GELU", relu: "ReLU",
  adamw: "AdamW", adam: "Adam with L2", sgd: "SGD, momentum 0.9", muon: "Muon",
};
const SWITCHES = choices.filter(({ values }) => values.length === 2 && values[0] === 0).map(({ name }) => name);
export const TRAINING = ["optimizer", "lr", "schedule", "warmup", "decay_steps", "clip", "batch", "steps", "seed"];

// The name of a value on the page.
export function called(name, value) {
  if (name === "task") return TASKS[value];
  if (name === "decay_steps") return value === null ? "never" : value ? String(value) : "the last";
  if (name === "clip" && !value) return "off";
  return SWITCHES.includes(name) ? (value ? "on" : "off") : WORDS[value] ?? String(value);
}

// Settings from any object: a value that is not among the choices is replaced by the one in `before`, or by `start`.
export function settled(given, before = {}) {
  return Object.fromEntries(choices.map(({ name, values, start }) =>
    [name, [given[name], before[name], start].find((value) => values.includes(value))]));
}

// The settings, with `decay_steps` as the step from which the learning rate is zero: `steps` for "the last", null if
// the schedule is constant.
const resolved = (settings) => ({
  ...settings, decay_steps: settings.schedule === "constant" ? null : settings.decay_steps || settings.steps,
});

// The names of the settings that differ, and "text" if the hashes of two texts to learn do.
export function differing(now, before) {
  const [one, other] = [now, before].map(resolved), names = choices.map(({ name }) => name);
  const found = names.filter((name) => one[name] !== other[name]);
  return now.task === "text" && before.task === "text" && now.text !== before.text ? [...found, "text"] : found;
}

// The same in words.
export function changes(now, before) {
  const [one, other] = [now, before].map(resolved);
  const label = (wanted) => choices.find(({ name }) => name === wanted).label;
  return differing(now, before).map((name) => name === "text" ? "another text"
    : `${label(name)}: ${called(name, other[name])} → ${called(name, one[name])}`);
}

// Whether two settings train the same model in the same way, except for the seed and the number of steps.
export const alike = (now, before) => differing(now, before).every((name) => name === "seed" || name === "steps");

// What a reader should know about settings before a run, in sentences.
export function warning({ schedule, decay_steps, steps, causal, task }) {
  const idle = schedule !== "constant" && decay_steps && decay_steps < steps
    ? `From step ${decay_steps} on the learning rate is zero: the model learns nothing more. ` : "";
  const leak = causal ? "" : "Without the mask a place sees the token that it should predict: training finds it there; "
    + "writing, where nothing stands there yet, does not.";
  return task ? idle + leak : "";
}

// The first item that the model is asked, by task.
export const ITEMS = {
  sort: "h c a d b e", reverse: "h c a d b e", copy: "h c a d b e", add: "48+75", add_reversed: "48+75",
  words: "three hundred and forty two", text: "that nation",
};
