// node --test tests/laboratory.test.mjs: tasks, chance, and the ledger. tests/test_engine_training.py holds training to PyTorch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generator, hash } from "../src/attnbook/web/engine/random.js";
import { heldOut, makeTask } from "../src/attnbook/web/engine/tasks.js";
import { backward, gradient, pass, room } from "../src/attnbook/web/engine/tape.js";
import * as tensors from "../src/attnbook/web/engine/tensors.js";
import { band, changes, csv, progressOf, rival, score, since, told, verdict } from "../src/attnbook/web/laboratory/ledger.js";
import { called, choices, settled } from "../src/attnbook/web/laboratory/settings.js";

const TABLE = "one=eins\ntwenty one=ein und zwanzig\nforty two=zwei und vierzig\n" + Array.from({ length: 40 }, (_, n) => `n${n}=m${n}`).join("\n");
const spelt = (task, ids) => ids.map((id) => task.tokens[id]);

test("numbers by chance are even, normal, and the same from the same seed", () => {
  const { uniform, normal, whole } = generator(3), n = 20000;
  const [even, bell, counts] = [[], [], Array(7).fill(0)];
  for (let i = 0; i < n; i++) [even[i], bell[i]] = [uniform(), normal()];
  for (let i = 0; i < n; i++) counts[whole(7)] += 1;
  const mean = (x) => x.reduce((sum, y) => sum + y, 0) / n;
  assert.ok(Math.abs(mean(even) - 0.5) < 0.01 && even.every((x) => x >= 0 && x < 1));
  assert.ok(Math.abs(mean(bell)) < 0.03 && Math.abs(mean(bell.map((x) => x * x)) - 1) < 0.05);
  assert.ok(counts.every((count) => Math.abs(count - n / 7) < 250), String(counts));
  assert.equal(generator(3).uniform(), even[0]);
  assert.notEqual(generator(4).uniform(), even[0]);
});

test("a text's hash is FNV-1a", () => { // the known values of its definition
  assert.deepEqual([hash(""), hash("a"), hash("foobar")], [0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
});

test("every task gives what its name says, and asks for the output alone", () => {
  const wanted = {
    sort: (input) => [...input].sort(), reverse: (input) => [...input].reverse(), copy: (input) => input.slice(0, 6),
    add: (input) => { const [a, b] = input.join("").split("+").map(Number); return [...String(a + b).padStart(3, "0")]; },
    add_reversed: (input) => wanted.add(input).reverse(),
    words: (input) => [...TABLE.split("\n").find((line) => line.startsWith(`${input.join(" ")}=`)).split("=")[1].split(" "), "."],
  };
  for (const [name, answer] of Object.entries(wanted)) {
    const task = makeTask(name, { table: TABLE }), random = generator(1);
    for (let n = 0; n < 200; n++) {
      const { ids, from, to } = task.draw(random, n % 2 === 0), input = spelt(task, ids.slice(0, from - 1));
      assert.equal(task.tokens[ids[from - 1]], ">");
      assert.deepEqual(spelt(task, ids.slice(from)), answer(input), name);
      assert.ok(to === ids.length && ids.length <= task.length);
      if (name === "copy") assert.equal(input.slice(6).join(""), "····");
    }
  }
});

test("what is held out is never drawn to train on: one input in eight", () => {
  const task = makeTask("sort", {}), random = generator(2), inputs = (held, n) => Array.from({ length: n }, () => {
    const { ids, from } = task.draw(random, held);
    return spelt(task, ids.slice(0, from - 1));
  });
  assert.ok(inputs(false, 500).every((input) => !heldOut(input)) && inputs(true, 500).every(heldOut));
  const share = Array.from({ length: 4000 }, (_, n) => heldOut([String(n), "x"])).filter(Boolean).length / 4000;
  assert.ok(Math.abs(share - 1 / 8) < 0.03, String(share));
  const text = "abcdefgh".repeat(30) + "ijklmnop".repeat(4), lesson = makeTask("text", { text });
  const letters = (held) => new Set(Array.from({ length: 300 }, () => spelt(lesson, lesson.draw(random, held).ids)).flat());
  assert.ok(!letters(false).has("p") && !letters(true).has("a"));
});

test("an item of the reader is read kindly, and refused in words", () => {
  const ask = (name, text) => makeTask(name, { table: TABLE }).ask(text);
  const sort = makeTask("sort", {}), row = sort.ask(" H cAdbe ");
  assert.deepEqual(spelt(sort, row.ids), [..."hcadbe>abcdeh"]);
  assert.equal(row.held, heldOut([..."hcadbe"]));
  assert.match(ask("sort", "hcadbz").error, /Type 6 letters of a to j/);
  assert.match(ask("reverse", "abc").error, /Type 6 letters/);
  const add = makeTask("add", {});
  assert.deepEqual(spelt(add, add.ask("7 + 48").ids), [..."07+48>055"]);
  for (const wrong of ["148+1", "4-8", "1+2+3", ""]) assert.match(ask("add", wrong).error, /two numbers/);
  assert.deepEqual(ask("words", "Twenty-One").error, undefined);
  assert.match(ask("words", "minus one").error, /a number in words/);
  assert.throws(() => makeTask("text", { text: "short" }), /at least 128 characters, not 5/);
});

test("room of a pass is used again, and zero again", () => {
  const first = pass(() => room(7).fill(3)), second = pass(() => room(7)), third = pass(() => [room(7), room(7)]);
  assert.ok(second === first && second.every((x) => x === 0));
  assert.ok(third.includes(first) && third[0] !== third[1]);
  assert.notEqual(room(7), room(7)); // outside a pass nothing is shared
});

test("a tensor that two functions use gets both their gradients", () => {
  const x = { data: Float32Array.from([2, -3]), shape: [1, 2] };
  const sum = (y) => tensors.linear(y, { data: Float32Array.from([1, 1]), shape: [1, 2] });
  const loss = backward(() => sum(tensors.add(tensors.times(x, x), tensors.scaled(x, 5))));
  assert.deepEqual([loss, [...gradient(x)]], [13 - 5, [2 * 2 + 5, 2 * -3 + 5]]);
});

const tests = (...shares) => shares.map((exact, n) => ({ step: 25 * n, loss: 1 - exact, exact, tokens: exact }));
const run = (number, given, ...seeds) => ({
  number, settings: settled(given), seeds: seeds.map((shares, n) => ({ seed: n + 1, losses: [3, 2], tests: tests(...shares) })),
});

test("a run beside another one is judged over the steps that both made", () => {
  const slow = run(1, {}, [0, 0.2, 0.4, 1, 1]), soon = run(2, { positions: "none" }, [0, 0.8, 0.8]);
  assert.equal(verdict(soon, slow), "better");
  assert.equal(verdict(slow, soon), "worse");
  assert.equal(verdict(slow, run(3, {}, [0, 0.2, 0.45, 1, 1])), "the same");
  assert.equal(score(run(1, {}, [0, 1], [0, 0.5])), 0.375);
});

test("a run is compared with the one that differs least, the newest of equals", () => {
  const whole = run(1, {}, [0, 1]), blind = run(2, { positions: "none" }, [0, 1]), bare = { residual: 0 };
  const among = (runs, given) => rival(runs, settled(given))?.number;
  assert.equal(among([whole, blind], bare), 1); // two things would have changed since run 2
  assert.equal(among([whole, blind], { ...bare, positions: "none" }), 2);
  assert.equal(among([whole, run(2, {}, [0, 1])], bare), 2);
  assert.equal(among([whole, run(2, { task: "add" }, [0, 1])], {}), 1); // not one of another task
  assert.equal(among([whole, run(2, bare, [0])], bare), 1); // nor one without a step
  assert.equal(among([run(1, { task: "add" }, [0, 1])], {}), undefined);
  const changed = "residual connections: on → off";
  assert.equal(since(settled(bare), [whole, blind]), `${changed}, beside run 1`);
  assert.equal(since(settled(bare), [whole]), changed);
  assert.equal(since(settled({}), [run(1, { task: "add" }, [0, 1])]), "task: add two numbers → sort six letters");
  assert.equal(since(settled({}), [whole, blind]) + since(settled({}), []), "");
});

test("the ledger says what changed, when 95 % were right, and how many seeds", () => {
  const first = run(1, {}, [0, 0.9, 0.97]), second = run(2, { residual: 0, positions: "sinusoidal" }, [0, 0.5], [0, 1, 1]);
  assert.deepEqual(changes(second.settings, first.settings), ["positions: learned → waves", "residual connections: on → off"]);
  assert.deepEqual([told(first).good, told(second).good, told(first).steps], [50, null, 50]);
  assert.deepEqual(band(second.seeds, ({ exact }) => exact).at(-1), { step: 25, mean: 0.75, least: 0.5, most: 1 });
  assert.equal(progressOf(second, [first, second]), "Run 2 (positions: learned → waves; residual connections: on → off): step 2 of 400, "
    + "each of 2 seeds, loss 0.250, 75 % of held-out items right");
  const lines = csv([first, { ...second, bet: "worse", result: "better" }]).trim().split("\n");
  assert.equal(lines.length, 1 + 3 + 2 + 3);
  const cells = Object.fromEntries(lines[0].split(",").map((name, n) => [name, lines.at(-1).split(",")[n]]));
  assert.deepEqual([cells.run, cells.residual, cells.seed, cells.step, cells.exact, cells.bet], ["2", "0", "2", "50", "1", "worse"]);
});

test("settings from anything are settings", () => {
  const start = Object.fromEntries(choices.map(({ name, start: value }) => [name, value]));
  assert.deepEqual(settled({}), start);
  assert.deepEqual(settled({ n_layers: 99, task: "<img>", lr: 0.001, more: 1 }), { ...start, lr: 0.001 });
  assert.deepEqual(settled({ lr: -1, seed: 2 }, { lr: 0.001, seed: 5 }), { ...start, lr: 0.001, seed: 2 });
  for (const { values, start: value } of choices) assert.ok(values.includes(value));
  assert.deepEqual([called("causal", 0), called("positions", "alibi"), called("n_layers", 3)], ["off", "ALiBi", "3"]);
});
