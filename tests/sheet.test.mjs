// node --test tests/sheet.test.mjs: the sheet of attention, without a page. tests/test_attention_sheet.py holds it to
// PyTorch.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as sheet from "../src/attnbook/web/shared/sheet.js";

const given = (more = {}) => ({ // three words, d = 2, d_k = 4, d_v = 1
  x: [[1, 0.5], [-1, 2], [0, 1]], w_q: [[1, 0, 2, -1], [0, 1, 1, 1]], w_k: [[2, 1, 0, 0], [1, 1, -1, 3]],
  w_v: [[3], [-2]], mask: false, root: true, ...more,
});
const text = (all, from, ...cell) => sheet.written(all, from, ...cell).map(([words]) => words).join("");

test("every cell follows from what is given", () => {
  const all = sheet.compute(given());
  assert.deepEqual(all.q, [[1, 0.5, 2.5, -0.5], [-1, 2, 0, 3], [0, 1, 1, 1]]);
  assert.deepEqual(all.k[1], [0, 1, -2, 6]);
  assert.deepEqual(all.v, [[2], [-7], [-2]]);
  assert.equal(all.scores[0][1], (0.5 - 5 - 3) / 2);
  for (const row of all.weights) assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-12);
  const [a, b, c] = all.weights[2];
  assert.ok(Math.abs(all.out[2][0] - (2 * a - 7 * b - 2 * c)) < 1e-12);
});

test("without the root scores are the products themselves; the mask hides later words alone", () => {
  const all = sheet.compute(given()), loud = sheet.compute(given({ root: false }));
  assert.deepEqual(loud.scores, all.scores.map((row) => row.map((score) => 2 * score)));
  const masked = sheet.compute(given({ mask: true }));
  assert.deepEqual(masked.weights.map((row) => row.map((w) => w > 0)), [[true, false, false], [true, true, false],
    [true, true, true]]);
  assert.deepEqual([masked.out[0], masked.weights[2]], [[2], all.weights[2]]);
});

test("a cell names the two vectors that made it, and what is given names what is made of it", () => {
  const all = sheet.compute(given());
  assert.deepEqual(sheet.operands(all, "k", 2, 3), [[["x", 2, 0], ["x", 2, 1]], [["w_k", 0, 3], ["w_k", 1, 3]]]);
  assert.deepEqual(sheet.operands(all, "scores", 2, 0).map((cells) => cells.map(String)),
    [["q,2,0", "q,2,1", "q,2,2", "q,2,3"], ["k,0,0", "k,0,1", "k,0,2", "k,0,3"]]);
  assert.deepEqual(sheet.operands(all, "weights", 1, 2), [[["scores", 1, 2]],
    [["scores", 1, 0], ["scores", 1, 1], ["scores", 1, 2]]]);
  assert.deepEqual(sheet.operands(all, "out", 1, 0)[1], [["v", 0, 0], ["v", 1, 0], ["v", 2, 0]]);
  assert.deepEqual(sheet.operands(all, "w_q", 0, 0), []);
  assert.deepEqual(sheet.uses(all, "w_v", 1, 0), ["v.0.0", "v.1.0", "v.2.0"]);
  assert.equal(sheet.uses(all, "x", 1, 0).length, 4 + 4 + 1);
});

test("the arithmetic is written out with its numbers, and a mask says what it does", () => {
  const all = sheet.compute(given()), masked = sheet.compute(given({ mask: true }));
  assert.equal(text(all, given(), "v", 1, 0), "−1.00 × 3.00 + 2.00 × −2.00 = −7.00");
  assert.equal(text(all, given(), "scores", 0, 1),
    "(1.00 × 0.00 + 0.50 × 1.00 + 2.50 × −2.00 + −0.50 × 6.00) / √4 = −3.75");
  assert.equal(text(all, given({ root: false }), "scores", 0, 1).slice(0, 11), "1.00 × 0.00");
  assert.equal(text(masked, given({ mask: true }), "scores", 0, 1), "hidden by the mask = −∞");
  assert.equal(text(masked, given({ mask: true }), "weights", 1, 2), "hidden by the mask: e−∞ = 0.00");
  const powers = sheet.written(masked, given({ mask: true }), "weights", 1, 1).filter(([, , raised]) => raised);
  assert.deepEqual(powers.map(([words, block]) => [words, block]), [["10.0", "scores"], ["2.50", "scores"],
    ["10.0", "scores"]]);
  assert.equal(text(all, given(), "x", 1, 1), "2.00");
  const cases = [[9.994, "9.99"], [-9.996, "−10.0"], [99.94, "99.9"], [-123.4, "−123"], [-Infinity, "−∞"],
    [-0.001, "0.00"]];
  for (const [x, want] of cases) assert.equal(sheet.brief(x), want);
});

test("a reference is read, and what is no cell is none; numbers are kept with two decimals", () => {
  const all = sheet.compute(given());
  assert.deepEqual(sheet.cellOf(all, "q.2.3"), ["q", 2, 3]);
  for (const wrong of ["", "q.2", "q.3.0", "q.0.4", "q.0.0.0", "p.0.0", "q.a.b", undefined, "__proto__.0.0"]) {
    assert.equal(sheet.cellOf(all, wrong), null, String(wrong));
  }
  assert.deepEqual([1.234, -0.001, 50, -50, 0.1 + 0.2].map(sheet.kept), [1.23, 0, 9.99, -9.99, 0.3]);
});

test("a cell is named, with what it is made of", () => {
  const said = (...cell) => [sheet.naming(cell, ["a", "b", "c"], ["one"]), sheet.madeOf(cell, ["a", "b", "c"], ["one"])];
  assert.deepEqual(said("x", 1, 0), ["x of “b”, number 1", ""]);
  assert.deepEqual(said("w_k", 1, 3), ["W_K, row 2, column 4", ""]);
  assert.deepEqual(said("k", 2, 3), ["key of “c”, number 4", " = x of “c” · W_K, column 4"]);
  assert.deepEqual(said("scores", 0, 2), ["score, “a” → “c”", " = query of “a” · key of “c”"]);
  assert.deepEqual(said("weights", 0, 2), ["weight, “a” → “c”", " = its share in the softmax of row “a”"]);
  assert.deepEqual(said("out", 2, 0), ["output of “c”, one", " = weights of “c” · values, one"]);
});
