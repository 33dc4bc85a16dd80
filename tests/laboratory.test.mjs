// node --test tests/laboratory.test.mjs: tasks, chance, and the ledger. tests/test_engine_training.py holds training to PyTorch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generator, hash } from "../src/attnbook/web/engine/random.js";
import { heldOut, makeTask } from "../src/attnbook/web/engine/tasks.js";
import { backward, gradient, pass, room } from "../src/attnbook/web/engine/tape.js";
import * as tensors from "../src/attnbook/web/engine/tensors.js";
import { sizes } from "../src/attnbook/web/engine/sizes.js";
import { atCost, bestOfSizes, bestWritten, lossAt, operationsWritten, span } from "../src/attnbook/web/laboratory/compute.js";
import * as keep from "../src/attnbook/web/laboratory/keep.js";
import { band, csv, judged, progressOf, rival, settle, since, told } from "../src/attnbook/web/laboratory/ledger.js";
import { alike, called, changes, choices, settled, warning } from "../src/attnbook/web/laboratory/settings.js";
import { range, verdict } from "../src/attnbook/web/laboratory/verdict.js";

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
  number, settings: settled(given), seeds: seeds.map((shares, n) => ({ seed: n + 1, done: 2, losses: [3, 2], tests: tests(...shares) })),
});
const five = (number, given, ...scores) => run(number, given, ...scores.map((score) => [score, score]));

test("a verdict compares bands of five seeds, over the steps that both made", () => {
  const blind = { positions: "none" }, whole = five(1, {}, 0.5, 0.52, 0.55, 0.6, 0.61);
  const outcome = (one, other = whole) => verdict(one, other).outcome;
  assert.equal(outcome(five(2, blind, 0.4, 0.41, 0.42, 0.45, 0.49)), "worse");
  assert.equal(outcome(five(2, blind, 0.62, 0.7, 0.8, 0.9, 0.9)), "better");
  assert.equal(outcome(five(2, blind, 0.3, 0.3, 0.3, 0.3, 0.51)), "cannot tell"); // a mean far off, and bands that touch
  const slow = run(1, {}, ...Array(5).fill([0, 0.2, 0.4, 1, 1])), soon = run(2, blind, ...Array(5).fill([0, 0.8, 0.8]));
  assert.deepEqual([verdict(soon, slow).until, outcome(soon, slow), outcome(slow, soon)], [50, "better", "worse"]);
  assert.deepEqual(range(run(1, {}, [0, 1], [0, 0.5])), { least: 0.25, most: 0.5, mean: 0.375, seeds: 2 });
});

test("fewer than five seeds need a larger distance, and one beside one says nothing", () => {
  const blind = { positions: "none" }, whole = five(1, {}, 0.5, 0.52, 0.55, 0.6, 0.6);
  const outcome = (...scores) => verdict(five(2, blind, ...scores), whole).outcome;
  assert.deepEqual([outcome(0.41), outcome(0.39), outcome(0.69), outcome(0.71)], ["open", "worse", "open", "better"]);
  assert.equal(verdict(whole, five(2, blind, 0.39)).outcome, "better");
  assert.equal(verdict(five(1, {}, 0.1), five(2, blind, 0.9)).outcome, "open");
  assert.equal(verdict(run(1, {}, [0]), whole).outcome, "open");
  assert.match(verdict(run(1, {}, [0]), whole).why, /before its first test/);
});

test("settings that are unchanged are never better", () => {
  const low = five(1, {}, 0.1, 0.1, 0.1, 0.1, 0.1), high = (given, ...more) => five(2, given, 0.9, 0.9, 0.9, 0.9, ...more);
  assert.equal(verdict(high({}, 0.9), low).outcome, "cannot tell");
  assert.equal(verdict(high({ seed: 6 }, 0.9), low).outcome, "cannot tell");
  assert.equal(verdict(high({}), low).outcome, "open");
  assert.equal(verdict(high({ n_heads: 1 }, 0.9), low).outcome, "better");
  // more steps of the same schedule are the same run for longer, more steps of a longer schedule are not
  const set = (given) => settled({ decay_steps: 400, ...given });
  assert.ok(alike(set({ steps: 100 }), set({ steps: 400 })) && !alike(settled({ steps: 100 }), settled({ steps: 400 })));
  assert.ok(alike(settled({ schedule: "constant", steps: 100 }), settled({ schedule: "constant", steps: 400 })));
});

test("chance alone is seldom called a difference", () => {
  const { normal } = generator(5), draw = (n) => Array.from({ length: n }, () => 0.5 + 0.05 * normal());
  for (const count of [1, 2, 5]) {
    let told = 0;
    for (let n = 0; n < 2000; n++) {
      told += ["better", "worse"].includes(verdict(five(2, { n_heads: 1 }, ...draw(count)), five(1, {}, ...draw(5))).outcome);
    }
    assert.ok(told / 2000 < 0.05, `${count} seeds: ${told / 2000}`);
  }
});

test("a verdict says what is compared with what", () => {
  const whole = five(1, {}, 0.5, 0.52, 0.55, 0.6, 0.61), one = { ...five(2, { n_heads: 1 }, 0.44), beside: 1 };
  const found = settle(one, [whole, one]);
  assert.deepEqual([one.result, one.until], ["open", 25]);
  assert.equal(judged(one, whole, found), "Right on average over the steps 0 to 25, which both made: run 2 44 % (1 seed), "
    + "run 1 50 to 61 % (5 seeds). Still open: it may be chance: press 5 seeds.");
  assert.equal(settle({ ...one, beside: 7 }, [whole, one]), undefined);
});

test("a run is compared with the one that differs least, of equals that with more seeds, then the newest", () => {
  const whole = run(1, {}, [0, 1]), blind = run(2, { positions: "none" }, [0, 1]), bare = { residual: 0 };
  const among = (runs, given) => rival(runs, settled(given))?.number;
  assert.equal(among([whole, blind], bare), 1); // two things would have changed since run 2
  assert.equal(among([whole, blind], { ...bare, positions: "none" }), 2);
  assert.equal(among([whole, blind], { positions: "none" }), 1); // not with a single seed of the same
  assert.equal(among([whole, five(2, { positions: "none" }, 0, 0, 0, 0, 0)], { positions: "none" }), 2);
  assert.equal(among([whole], {}), 1);
  assert.equal(among([whole, run(2, {}, [0, 1])], bare), 2);
  assert.equal(among([run(1, {}, [0, 1], [0, 1]), run(2, {}, [0, 1])], bare), 1);
  assert.equal(among([whole, run(2, { seed: 2 }, [0, 1])], bare), 2); // a seed is no change
  assert.equal(among([whole, run(2, { task: "add" }, [0, 1])], {}), 1); // not one of another task
  assert.equal(among([whole, run(2, bare, [0])], bare), 1); // nor one without a step
  assert.equal(among([run(1, { task: "add" }, [0, 1])], {}), undefined);
  const changed = "residual connections: on → off";
  assert.equal(since(settled(bare), [whole, blind]), `${changed}, beside run 1`);
  assert.equal(since(settled(bare), [whole]), changed);
  assert.equal(since(settled({}), [run(1, { task: "add" }, [0, 1])]), "task: add two numbers → sort six letters");
  assert.equal(since(settled({}), [whole]) + since(settled({}), []), "");
});

test("runs of another text are not compared", () => {
  const read = (text) => ({ ...settled({ task: "text" }), text }), one = { ...run(1, {}, [0, 1]), settings: read(3) };
  assert.deepEqual([rival([one], read(4)), rival([one], read(3))], [undefined, one]);
  assert.deepEqual(changes(read(4), read(3)), ["another text"]);
});

test("fewer steps say that the rate falls sooner, unless its end is set", () => {
  assert.deepEqual(changes(settled({ steps: 100 }), settled({})), ["rate is zero from step: 400 → 100", "steps: 400 → 100"]);
  const set = { decay_steps: 400 };
  assert.deepEqual(changes(settled({ ...set, steps: 100 }), settled(set)), ["steps: 400 → 100"]);
  assert.deepEqual(changes(settled({ schedule: "constant" }), settled({})),
    ["schedule of the rate: cosine → constant", "rate is zero from step: 400 → never"]);
  assert.match(warning(settled({ decay_steps: 100 })), /From step 100 on the learning rate is zero/);
  assert.equal(warning(settled({})) + warning(settled({ decay_steps: 100, schedule: "constant" })), "");
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
  assert.equal(csv([{ ...first, sizes: { operations: 10 } }]).trim().split("\n").at(-1).split(",").at(-4), "500");
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

test("what a step costs is counted: two operations a number of a matrix and token, three times", () => {
  const settings = settled({ n_layers: 3, d_model: 16, batch: 8 }), task = makeTask("sort", {}), d = 16, n = 12;
  const block = 4 * (d * d + d) + (d * 4 * d + 4 * d) + (4 * d * d + d) + 4 * d, found = sizes(settings, task);
  assert.equal(found.body, 3 * block);
  assert.equal(found.size, 3 * block + 11 * d + 13 * d + 2 * d); // tokens, places, the last norm
  assert.equal(found.length, 13);
  const matrices = 3 * (4 * d * d + 8 * d * d) + 11 * d;
  assert.equal(found.operations, 3 * 8 * n * (2 * matrices + 4 * 3 * n * d));
  const bare = sizes({ ...settings, network: 0 }, task);
  assert.equal(found.body - bare.body, 3 * ((8 * d * d + 5 * d) + 2 * d));
});

const costly = (number, body, operations, ...seeds) => ({
  ...run(number, {}, ...seeds), sizes: { size: 9, body, length: 13, operations },
});

test("runs are compared after equal operations, each seed between its tests", () => {
  const one = costly(1, 100, 10, [0, 0.4, 0.8], [0, 0.2, 0.2]), big = costly(2, 900, 40, [0, 0.9, 0.9]);
  const { mean, least, most } = lossAt(one, 375); // step 37.5
  assert.ok(Math.abs(least - 0.4) < 1e-12 && Math.abs(most - 0.8) < 1e-12 && Math.abs(mean - 0.6) < 1e-12);
  assert.deepEqual([lossAt(one, 501), lossAt(one, 0), lossAt({ ...one, sizes: null }, 300)], [null, null, null]);
  assert.deepEqual(span([one, big]), [250, 2000]);
  assert.equal(span([run(1, {}, [0])]), null);
  assert.deepEqual(atCost([big, one], 500).map(({ run: { number } }) => number), [1]); // run 2 has made half a test
  assert.equal(operationsWritten(2.34e9), "2.3 · 10⁹");
});

test("the best size is that of its best run, and may not be told from others", () => {
  const at = (number, body, ...losses) => costly(number, body, 10, ...losses.map((loss) => [0, 1 - loss]));
  const small = at(1, 100, 0.5, 0.6), slow = at(2, 900, 0.8, 0.9), fast = at(3, 900, 0.3, 0.4), large = at(4, 2000, 0.4, 0.5);
  const points = atCost([large, slow, fast, small], 250);
  assert.deepEqual(bestOfSizes(points).map(({ run: { number } }) => number), [1, 3, 4]);
  assert.equal(bestWritten(points, 250), "After 2.5 · 10² operations the lowest loss is that of run 3 (900 parameters): 0.350. "
    + "Its band touches that of run 4 (2,000 parameters): between these one cannot tell.");
  assert.match(bestWritten(atCost([small, fast], 250), 250), /Its band touches no other\.$/);
  assert.match(bestWritten(atCost([small, at(5, 300, 0.2)], 250), 250), /5 seeds tell more\.$/);
  assert.match(bestWritten(atCost([small], 250), 250), /Two sizes are compared at least/);
});

const memory = (full = false) => {
  const all = new Map();
  return {
    all, getItem: (key) => all.get(key) ?? null,
    setItem(key, text) { if (full) throw new Error("full"); all.set(key, text); },
  };
};
const whole = (number, more = {}) => ({
  ...costly(number, 100, 10, [0, 0.5], [0.25, 1]), id: `id${number}`, bet: "worse", beside: 1, result: "open", until: 25, ...more,
});

test("runs come back from the browser, a file and a link as they were", () => {
  const storage = memory(), shelf = new keep.Shelf("lab", storage), given = whole(3);
  assert.deepEqual(shelf.read(), { last: 0, runs: [], rest: [] });
  assert.ok(shelf.put(given) && new keep.Shelf("other", storage).read().runs.length === 0);
  const back = [shelf.read().runs[0], keep.parse(keep.written([given]))[0], keep.unpacked(keep.packed([given]))[0]];
  for (const run of back) {
    assert.deepEqual(keep.bare(run), keep.bare(given));
    assert.ok(keep.same(run, given) && !keep.same(run, whole(3, { settings: settled({ n_heads: 1 }) })));
  }
  const turned = { ...given, settings: Object.fromEntries(Object.entries(given.settings).reverse()) };
  assert.ok(keep.same(turned, given)); // a kernel orders names in its own way
  assert.equal(encodeURIComponent(keep.packed([given])), keep.packed([given]));
  const text = { ...settled({ task: "text" }), text: 77 };
  assert.equal(keep.parse(keep.written([whole(1, { settings: text })]))[0].settings.text, 77);
});

test("what is kept is put once, deleted for good, and no number is given twice", () => {
  const storage = memory(), [mine, other] = [new keep.Shelf("lab", storage), new keep.Shelf("lab", storage)];
  mine.put(whole(2));
  other.put(whole(3)); // of another page
  mine.put(whole(2, { result: "worse" }));
  assert.deepEqual(mine.read().runs.map(({ number, result }) => [number, result]), [[3, "open"], [2, "worse"]]);
  mine.remove(["id3"]);
  mine.put(whole(2));
  assert.deepEqual([mine.read().last, mine.read().runs.length], [3, 1]);
  assert.equal(new keep.Shelf("lab", memory(true)).put(whole(1)), false);
  assert.equal(new keep.Shelf("lab", null).put(whole(1)), false);
});

test("a run whose loss is no number comes back, and stays out of the best size", () => {
  const lost = whole(1), storage = memory(), shelf = new keep.Shelf("lab", storage);
  lost.seeds[0].tests.at(-1).loss = NaN;
  shelf.put(lost);
  const found = shelf.read().runs[0].seeds[0].tests.at(-1).loss;
  assert.ok(Number.isNaN(found) && Number.isNaN(keep.parse(keep.written([lost]))[0].seeds[0].tests.at(-1).loss));
  assert.deepEqual(atCost([lost, whole(2)], 250).map(({ run: { number } }) => number), [2]);
});

test("runs of another edition of the page are not shown, and stay", () => {
  const storage = memory(), shelf = new keep.Shelf("lab", storage), own = "attnbook.laboratory.lab";
  shelf.put(whole(1));
  const given = JSON.parse(storage.getItem(own));
  given.runs[0].settings.lr = "of later days";
  storage.setItem(own, JSON.stringify(given));
  shelf.put(whole(2));
  shelf.remove(["id2"]);
  assert.deepEqual(shelf.read().runs, []);
  assert.equal(JSON.parse(storage.getItem(own)).runs[0].settings.lr, "of later days");
});

test("what is no run is not taken", () => {
  const bad = (change) => {
    const given = JSON.parse(keep.written([whole(1)]));
    change(given.runs[0]);
    return JSON.stringify(given);
  };
  const refused = [
    (run) => { run.settings.task = "fly"; }, (run) => { run.settings.lr = "0.01"; }, (run) => { delete run.settings; },
    (run) => { run.seeds = []; }, (run) => { run.seeds = {}; }, (run) => { run.seeds[0].tests[1][0] = 0; },
    (run) => { run.seeds[0].tests[0][1] = "1"; }, (run) => { run.seeds[0].tests[0][3] = 2; }, (run) => { run.seeds[0].done = null; },
  ];
  for (const change of refused) assert.throws(() => keep.parse(bad(change)), /A run in this file cannot be read/, String(change));
  const odd = keep.parse(bad((run) => { [run.bet, run.result, run.sizes.body, run.settings.more] = ["<b>", 3, -1, 1]; }))[0];
  assert.deepEqual([odd.bet, odd.result, odd.sizes, "more" in odd.settings], [null, null, null, false]);
  assert.throws(() => keep.parse("{"), /holds no JSON/);
  assert.throws(() => keep.parse("[1]"), /holds no runs/);
  assert.throws(() => keep.parse(keep.written(Array(201).fill(whole(1)))), /more than 200 runs/);
  assert.throws(() => keep.unpacked("%%%"), /cannot be read/);
  for (const text of ["nothing", "[]", '{"last":"x","runs":[1,null,{"seeds":1}]}']) {
    const storage = memory();
    storage.setItem("attnbook.laboratory.lab", text);
    assert.deepEqual(new keep.Shelf("lab", storage).read().runs, []);
  }
});
