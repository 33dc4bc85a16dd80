// What can be set in the laboratory.
import CHOICES from "./choices.json" with { type: "json" };

export const choices = CHOICES.map(([name, label, values, start]) => ({ name, label, values, start }));
export const TASKS = {
  sort: "sort six letters", reverse: "reverse six letters", copy: "copy six letters, four dots later",
  add: "add two numbers", add_reversed: "add two numbers, last digit first", words: "number words to German",
  text: "go on with a text",
};
const WORDS = { sinusoidal: "waves", alibi: "ALiBi", gelu_tanh: "GELU", relu: "ReLU" };
const SWITCHES = choices.filter(({ values }) => values.length === 2 && values[0] === 0).map(({ name }) => name);

// How a value is called on the page.
export function called(name, value) {
  if (name === "task") return TASKS[value];
  return SWITCHES.includes(name) ? (value ? "on" : "off") : WORDS[value] ?? String(value);
}

// Settings from anything: a value that is not among the choices is replaced by the one `before`, or by the start.
export function settled(given, before = {}) {
  return Object.fromEntries(choices.map(({ name, values, start }) =>
    [name, [given[name], before[name], start].find((value) => values.includes(value))]));
}
