// What the laboratory teaches: tasks as rows of tokens, "input > output"; one input in eight is never trained on.
import { hash } from "./random.js";

const KEPT = 8; // one in this many inputs is held out
const ASK = ">", END = "."; // end an input, and an output of varying length
const LETTERS = [..."abcdefghij"], DIGITS = [..."0123456789"];
const COUNT = 6, DELAY = 4, SIZE = 2; // letters of an input, dots between it and its copy, digits of a number
const SPAN = 48, LEAST = 16; // most characters that a text model sees, fewest held out

const some = (random, from, count) => Array.from({ length: count }, () => from[random.whole(from.length)]);
const spelt = (number, digits) => [...String(number).padStart(digits, "0")];
const words = (text) => text.trim().split(/\s+/).filter(Boolean);

// Maps letters to letters: `change` returns the output.
const letters = (change, dots = 0) => ({
  tokens: [...LETTERS, ...(dots ? ["·"] : [])],
  draw: (random) => some(random, LETTERS, COUNT),
  pad: (input) => [...input, ...Array(dots).fill("·")],
  answer: change,
  read: (text) => [...text.toLowerCase()].filter((letter) => letter.trim()),
  fault: (input) => input.length !== COUNT || input.some((letter) => !LETTERS.includes(letter))
    ? `Type ${COUNT} letters of ${LETTERS[0]} to ${LETTERS.at(-1)}.` : "",
});
const sums = (reversed) => ({
  tokens: [...DIGITS, "+"],
  draw: (random) => [...some(random, DIGITS, SIZE), "+", ...some(random, DIGITS, SIZE)],
  answer(input) {
    const [a, b] = input.join("").split("+").map(Number), sum = spelt(a + b, SIZE + 1);
    return reversed ? sum.reverse() : sum;
  },
  read: (text) => [...text.replace(/\s/g, "").split("+").map((number) => number.padStart(SIZE, "0")).join("+")],
  fault: (input) => /^\d\d\+\d\d$/.test(input.join("")) ? "" : "Type two numbers of at most two digits, like 48+7.",
});
// `table`: one number per line, "forty two=zwei und vierzig".
function numbers(table) {
  const pairs = new Map(table.trim().split("\n").map((line) => line.split("=")));
  const inputs = [...pairs.keys()], known = new Set(inputs.flatMap(words));
  return {
    tokens: [...known, ...new Set([...pairs.values()].flatMap(words)), END],
    draw: (random) => words(inputs[random.whole(inputs.length)]),
    answer: (input) => [...words(pairs.get(input.join(" "))), END],
    longest: Math.max(...[...pairs].map(([one, other]) => words(one).length + words(other).length + 2)),
    read: (text) => words(text.toLowerCase().replaceAll("-", " ")),
    fault: (input) => pairs.has(input.join(" ")) ? "" : `Type a number in words, like "${inputs.at(-1)}".`,
  };
}
const TASKS = {
  sort: () => letters((input) => [...input].sort()),
  reverse: () => letters((input) => [...input].reverse()),
  copy: () => letters((input) => input, DELAY),
  add: () => sums(false),
  add_reversed: () => sums(true),
  words: ({ table }) => numbers(table),
};
export const heldOut = (input) => hash(input.join(" ")) % KEPT === 0;

// Makes a task by name: its tokens; `draw(random, held)`, which returns a row { ids, from, to } whose output is at
// from .. to - 1, from those trained on or those held out; `ask(text)`, which turns what the reader typed into a row or
// an error; `length`, that of the longest row.
export function makeTask(name, given) {
  if (name === "text") return textTask(given.text);
  const { tokens: own, draw, answer, read, fault, pad = (input) => input, longest } = TASKS[name](given);
  const tokens = [...own, ASK], number = new Map(tokens.map((token, id) => [token, id]));
  const encode = (row) => row.map((token) => number.get(token));
  function row(input) {
    const asked = [...pad(input), ASK], ids = encode([...asked, ...answer(input)]);
    return { ids, from: asked.length, to: ids.length };
  }
  const sample = row(draw({ whole: () => 0 })), length = longest ?? sample.ids.length;
  return {
    tokens, length, end: number.get(END), joiner: longest ? " " : "",
    draw(random, held) {
      let input;
      do input = draw(random); while (heldOut(input) !== held);
      return row(input);
    },
    ask(text) {
      const input = read(text), error = fault(input);
      return error ? { error } : { ...row(input), held: heldOut(input) };
    },
  };
}

// A text, character by character; its last eighth is held out. Every place except the first is an output.
function textTask(text) {
  const letters = [...text], tokens = [...new Set(letters)].sort(), number = new Map(tokens.map((c, id) => [c, id]));
  const ids = letters.map((letter) => number.get(letter)), cut = ids.length - Math.floor(ids.length / KEPT);
  const length = Math.min(SPAN, ids.length - cut);
  if (length < LEAST) throw new Error(`a text must have at least ${LEAST * KEPT} characters, not ${ids.length}`);
  return {
    tokens, length, joiner: "", running: true,
    draw(random, held) {
      const start = held ? cut + random.whole(ids.length - cut - length + 1) : random.whole(cut - length + 1);
      return { ids: ids.slice(start, start + length), from: 1, to: length };
    },
    ask(written) {
      const known = [...written].filter((letter) => number.has(letter)).slice(-(length >> 1));
      if (!known.length) return { error: "Type some characters of the text, and the model goes on." };
      return { ids: known.map((letter) => number.get(letter)), from: known.length, to: length };
    },
  };
}
