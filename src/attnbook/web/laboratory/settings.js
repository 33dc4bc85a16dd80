// What can be set in the laboratory: name, label, what it may be, where it starts. Python reads the same list.
const CHOICES = [
  ["task", "task", ["sort", "reverse", "copy", "add", "add_reversed", "words", "text"], "sort"],
  ["n_layers", "layers", [1, 2, 3, 4], 2],
  ["d_model", "d_model", [16, 32, 64], 32],
  ["n_heads", "heads", [1, 2, 4, 8], 4],
  ["positions", "positions", ["none", "learned", "sinusoidal", "rotary", "alibi"], "learned"],
  ["norm", "norm", ["pre", "post", "none"], "pre"],
  ["residual", "residual connections", [0, 1], 1],
  ["causal", "causal mask", [0, 1], 1],
  ["network", "feed-forward network", [0, 1], 1],
  ["activation", "activation", ["relu", "gelu_tanh"], "relu"],
  ["lr", "learning rate", [0.0003, 0.001, 0.003, 0.01, 0.03], 0.01],
  ["batch", "rows a step", [8, 16, 32, 64], 32],
  ["steps", "steps", [100, 200, 400, 600, 1000, 2000], 400],
  ["seed", "seed", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 1]
];

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
