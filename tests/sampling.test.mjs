// node --test tests/sampling.test.mjs: how the page draws. tests/test_draws.py holds it to attnbook.model.sampling.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generator, uniform } from "../src/attnbook/web/engine/random.js";
import { fall, leave, ranked } from "../src/attnbook/web/engine/sampling.js";

const OFF = { temperature: 1, topK: 0, topP: 1, minP: 0 };
const falling = (logits) => Float64Array.from(ranked(logits), (id) => logits[id]);
const drawn = (logits, filters, number) => ranked(logits)[fall(leave(falling(logits), filters), number).rank];

test("scores are put in order to their last bit; of equal ones the first is first, and what is left out is last", () => {
  const { uniform: next } = generator(5), near = Array.from({ length: 400 }, () => 3 + 1e-12 * next());
  const equal = near.map((_, n) => [2, -Infinity, 7, 2][n % 4]);
  for (const logits of [near, [...near, 1e5], equal, near.map((z) => 1e6 * (z - 3))]) {
    const wanted = logits.map((_, id) => id).sort((a, b) => (logits[b] > logits[a]) - (logits[b] < logits[a]) || a - b);
    assert.deepEqual([...ranked(logits)], wanted);
  }
});

test("a number falls where the tokens lie side by side, the likeliest first", () => {
  const logits = [0, -Infinity, Math.LN2, 0, -Infinity, 0], fifths = [0, 0.39, 0.41, 0.59, 0.61, 0.79, 0.81, 1 - 2 ** -53];
  assert.equal(leave(falling(logits), OFF).count, 4);
  assert.deepEqual(fifths.map((x) => drawn(logits, OFF, x)), [2, 2, 0, 0, 3, 3, 5, 5]);
  const alike = [1, 1, -Infinity, 1, 1]; // on the borders themselves the next one is drawn
  assert.deepEqual([0, 0.25, 0.5, 0.75].map((x) => drawn(alike, OFF, x)), [0, 1, 3, 4]);
  const tiny = [0, -1, -800]; // no number falls on what has no width
  for (const x of [0.99999, 1 - 2 ** -32, 1 - 2 ** -53]) assert.equal(drawn(tiny, OFF, x), 1);
  const { rank, from, to } = fall(leave(falling(alike), OFF), 0.6);
  assert.deepEqual([rank, from, to], [2, 0.5, 0.75]);
});

test("at temperature 0 the first of the likeliest is alone", () => {
  const { count, mass, stages } = leave(falling([1, 5, 2, 5]), { ...OFF, temperature: 0 });
  assert.deepEqual([count, mass, stages.topK.count], [1, 1, 1]);
  for (const x of [0, 0.5, 0.999]) assert.equal(drawn([1, 5, 2, 5], { ...OFF, temperature: 0 }, x), 1);
});

test("the n-th number of a seed is the same one after another or asked for at once", () => {
  const { uniform: next } = generator(77);
  for (let n = 0; n < 50; n++) assert.equal(uniform(77, n), next());
  assert.equal(uniform(0, 0), 0.26642920868471265); // the first number of mulberry32(0)
  assert.equal(uniform(2 ** 32 + 5, 3), uniform(5, 3));
});
