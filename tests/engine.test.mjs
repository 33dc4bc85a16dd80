// node --test tests/engine.test.mjs: the engine in the page, part by part. tests/test_engine.py holds it to PyTorch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { erf } from "../src/attnbook/web/engine/activations.js";
import { start } from "../src/attnbook/web/engine/client.js";
import { speedUp } from "../src/attnbook/web/engine/fast.js";
import { distances, slopes } from "../src/attnbook/web/engine/positions.js";
import { read } from "../src/attnbook/web/engine/safetensors.js";
import * as tensors from "../src/attnbook/web/engine/tensors.js";
import { causal } from "../src/attnbook/web/engine/transformer.js";
import { pieces, wordsAndMasks, wordsOf } from "../src/attnbook/web/engine/wordpiece.js";
import { kernels } from "../tools/kernels.mjs";

const tensor = (data, shape) => ({ data: Float32Array.from(data), shape });
const close = (got, want, slack = 1e-6) => {
  assert.equal(got.length, want.length);
  got.forEach((x, i) => assert.ok(Math.abs(x - want[i]) <= slack, `${i}: ${x} is not ${want[i]}`));
};

test("erf is exact to double precision", () => { // values of Python's math.erf
  const known = [[0.1, 0.1124629160182849], [0.5, 0.5204998778130465], [1, 0.8427007929497149], [2, 0.9953222650189527],
    [3.5, 0.9999992569016276], [5.9, 1], [7, 1]];
  for (const [x, want] of known) {
    assert.ok(Math.abs(erf(x) - want) < 1e-15, `erf(${x}) is ${erf(x)}`);
    assert.equal(erf(-x), -erf(x));
  }
  assert.equal(erf(0), 0);
});

test("a linear map takes a row of its matrix for each number that it gives", () => {
  const x = tensor([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [2, 5]);
  const weight = tensor([1, 0, 0, 0, 0, 0, 1, 0, 0, 2, 1, 1, 1, 1, 1], [3, 5]);
  const { data, shape } = tensors.linear(x, weight, tensor([10, 20, 30], [3]));
  assert.deepEqual([shape, [...data]], [[2, 3], [11, 32, 45, 16, 47, 70]]);
  assert.throws(() => tensors.linear(x, tensor([1, 2, 3, 4], [1, 4])), /vectors of size 4 met vectors of size 5/);
});

test("take gives rows, and names what is no row", () => {
  const table = tensor([1, 2, 3, 4, 5, 6], [3, 2]);
  assert.deepEqual([...tensors.take(table, [2, 0, 2]).data], [5, 6, 1, 2, 5, 6]);
  for (const wrong of [3, -1, undefined]) assert.throws(() => tensors.take(table, [wrong]), /is no row of 3/);
});

test("masked keys have no weight and no say, not even NaN; who may see nothing gets zeros", () => {
  const scores = tensor([1, 9, 1, 5, 6, 7], [1, 2, 3]), mask = (i, j) => i === 0 && j !== 1;
  const weights = tensors.maskedSoftmax(scores, mask);
  assert.deepEqual([...weights.data], [0.5, 0, 0.5, 0, 0, 0]);
  const out = tensors.combine(weights, tensor([1, 2, NaN, Infinity, 3, 6], [1, 3, 2]));
  assert.deepEqual([...out.data], [2, 4, 0, 0]);
});

test("a causal mask sees itself and what came before", () => {
  const rows = (past) => [0, 1].map((i) => [0, 1, 2].map((j) => Number(causal(past)(i, j))));
  assert.deepEqual(rows(0), [[1, 0, 0], [1, 1, 0]]);
  assert.deepEqual(rows(1), [[1, 1, 0], [1, 1, 1]]);
});

test("large scores do not overflow", () => {
  close(tensors.maskedSoftmax(tensor([1000, 999, -1000], [1, 1, 3])).data, [0.7310586, 0.2689414, 0]);
});

test("norms of a vector, and of one that is all alike", () => {
  const x = tensor([1, 3, 5, 2, 2, 2], [2, 3]), eps = 4 / 3;
  const gain = tensor([1, 2, 1], [3]), bias = tensor([0, 1, 0], [3]);
  close(tensors.layerNorm(x, gain, bias, eps).data, [-1, 1, 1, 0, 1, 0]); // variance 8 / 3, and eps makes it 4
  close(tensors.rmsNorm(x, gain, 13 / 3).data, [0.25, 1.5, 1.25, ...[1, 2, 1].map((n) => (2 * n) / Math.sqrt(25 / 3))]);
  close(tensors.layerNorm(tensor([2, 2, 2], [1, 3]), gain, bias, 1e-12).data, [0, 1, 0]);
});

test("heads are split and joined", () => {
  const x = tensor(Array.from({ length: 24 }, (_, n) => n), [4, 6]), heads = tensors.split(x, 3);
  assert.deepEqual(heads.shape, [3, 4, 2]);
  assert.deepEqual([...heads.data.slice(8, 12)], [2, 3, 8, 9]); // head 1 of the words 0 and 1
  assert.deepEqual(tensors.join(heads), x);
});

test("slopes of ALiBi, of a power of two and of others", () => {
  close(slopes(4), [2 ** -2, 2 ** -4, 2 ** -6, 2 ** -8]);
  close(slopes(3), [2 ** -4, 2 ** -8, 2 ** -2]);
  assert.equal(distances(4, [5, 6], [5, 6, 9])(1, 0, 2), -(2 ** -4) * 4);
});

// A file of named tensors, the numbers of each in a typed array.
function file(entries, metadata = {}) {
  let at = 0;
  const header = { __metadata__: metadata };
  for (const [name, [dtype, shape, array]] of Object.entries(entries)) {
    header[name] = { dtype, shape, data_offsets: [at, (at += array.byteLength)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header)), bytes = new Uint8Array(8 + text.length + at);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(text.length), true);
  bytes.set(text, 8);
  let place = 8 + text.length;
  for (const [, , array] of Object.values(entries)) {
    bytes.set(new Uint8Array(array.buffer), place);
    place += array.byteLength;
  }
  return bytes.buffer;
}

test("compiled kernels give the same products; a matrix that four numbers do not fit is left as it was", async () => {
  const numbers = (count) => Array.from({ length: count }, (_, n) => Math.sin(7 * n + count));
  const make = () => new Map([["bias", [3]], ["odd", [3, 5]], ["wide", [3, 8]], ["long", [9, 4]]].map(([name, shape]) =>
    [name, tensor(numbers(shape.reduce((a, b) => a * b)), shape)]));
  const ours = make(), theirs = make();
  speedUp(ours, await kernels());
  assert.deepEqual([...ours].filter(([, { times }]) => times).map(([name]) => name), ["wide", "long"]);
  for (const [name, rows] of [["odd", 2], ["wide", 1], ["wide", 6], ["long", 5], ["wide", 2]]) {
    const columns = theirs.get(name).shape[1], x = tensor(numbers(rows * columns), [rows, columns]);
    const bias = name === "long" ? undefined : theirs.get("bias");
    close(tensors.linear(x, ours.get(name), bias).data, tensors.linear(x, theirs.get(name), bias).data);
    close(ours.get(name).data, theirs.get(name).data, 0);
  }
  const without = make();
  speedUp(without, new Uint8Array([1, 2, 3])); // what no browser can run
  assert.deepEqual(without, make());
});

test("8 bits are multiplied by the scale of their row, whatever comes first in the file", () => {
  const { metadata, parameters } = read(file({
    "a.weight.scale": ["F32", [2], new Float32Array([0.5, 2])],
    "a.weight": ["I8", [2, 3], new Int8Array([1, -127, 3, 4, 5, 127])],
    "rope.scale": ["F32", [1], new Float32Array([7])], // no matrix is called rope
  }, { seed: "3" }));
  assert.deepEqual(metadata, { seed: "3" });
  assert.deepEqual([...parameters.keys()].sort(), ["a.weight", "rope.scale"]);
  assert.deepEqual(parameters.get("a.weight"), tensor([0.5, -63.5, 1.5, 8, 10, 254], [2, 3]));
});

test("what is no such file is refused in words", () => {
  const good = file({ a: ["F32", [2], new Float32Array(2)] });
  assert.throws(() => read(new ArrayBuffer(3)), /no safetensors file: 3 bytes/);
  assert.throws(() => read(new Uint8Array(16).fill(60).buffer), /its header would take/);
  assert.throws(() => read(good.slice(0, -1)), /a goes on after the end of the file/);
  assert.throws(() => read(file({ a: ["F64", [1], new Float64Array(1)] })), /a holds F64, not one of F32, I8/);
});

test("a text is split into words as BERT's tokenizer splits it", () => {
  const cases = [
    ["We can't!", ["we", "can", "'", "t", "!"]],
    ["  Ünïcode\tÀ la\ncarte ", ["unicode", "a", "la", "carte"]],
    ["ΟΔΟΣ ΟΔΟΣ.", ["οδοσ", "οδοσ", "."]], // no final sigma: each letter by itself
    ["İstanbul $5+3=8", ["istanbul", "$", "5", "+", "3", "=", "8"]],
    ["a\u00adb\u200bc\u0000d\ufffde\u2028f\u00a0g", ["abcde", "f", "g"]],
    ["我们wash。貓", ["我", "们", "wash", "。", "貓"]],
    ["don’t — stop…", ["don", "’", "t", "—", "stop", "…"]],
    ["👩‍👩‍👧 ok", ["👩👩👧", "ok"]],
    ["", []], [" \n ", []],
  ];
  for (const [text, want] of cases) assert.deepEqual(wordsOf(text), want, text);
  assert.deepEqual(wordsOf("Ünïcode We", false), ["Ünïcode", "We"]);
  assert.deepEqual(wordsAndMasks("We [MASK]s, [mask][ MASK ]"), ["we", "[MASK]", "s", ",", "[MASK]", "[", "mask", "]"]);
});

test("the longest piece is taken first, and a word with a rest is unknown", () => {
  const ids = new Map(["un", "una", "##aff", "##afford", "##able", "##a", "貓"].map((token, id) => [token, id]));
  assert.deepEqual(pieces("unaffordable", ids), null); // una, then ffordable: never back to un
  assert.deepEqual(pieces("unaffa", new Map([...ids].filter(([token]) => token !== "una"))), [0, 2, 5]);
  assert.deepEqual(pieces("貓", ids), [6]);
  assert.equal(pieces("unx", ids), null);
  assert.equal(pieces(`貓${"able".repeat(24)}`, ids).length, 25);
  assert.equal(pieces(`貓${"able".repeat(25)}`, ids), null); // 101 characters
});

// A worker that answers when it is told to.
class Worker {
  static made = [];
  constructor(address) {
    Object.assign(this, { address, asked: [], ended: false });
    Worker.made.push(this);
  }
  postMessage(message) { this.asked.push(message); }
  terminate() { this.ended = true; }
  answer(fields, message = this.asked.at(-1)) {
    this.onmessage({ data: { number: message.number, ...fields } });
    return new Promise((done) => setTimeout(done));
  }
}
globalThis.Worker = Worker;

test("of questions that come faster than answers only the newest is asked", async () => {
  const client = start("// a worker"), [worker] = Worker.made.slice(-1), got = {};
  const ask = (text) => client.newest("answer", text).then((result) => (got[text] = result));
  for (const text of ["a", "b", "c"]) ask(text);
  assert.deepEqual(worker.asked.map(({ given }) => given), ["a"]);
  await worker.answer({ result: 1 });
  assert.deepEqual(worker.asked.map(({ given }) => given), ["a", "c"]);
  assert.deepEqual(got, { a: undefined, b: undefined }); // stale, and never asked
  await worker.answer({ result: 3 });
  assert.equal(got.c, 3);
  ask("d");
  await worker.answer({ result: 4 });
  assert.deepEqual([worker.asked.length, got.d], [3, 4]);
  client.stop();
  assert.ok(worker.ended);
});

test("an error of the worker comes to who asked, and the next question is asked all the same", async () => {
  const client = start("// a worker"), [worker] = Worker.made.slice(-1), heard = [];
  client.newest("answer", "a").catch((error) => heard.push(error.message));
  const next = client.newest("answer", "b");
  await worker.answer({ error: "no such row" });
  await worker.answer({ result: "fine" });
  assert.deepEqual([heard, await next], [["no such row"], "fine"]);
  const lost = [client.call("load"), client.call("load")].map((call) => call.catch((error) => error.message));
  worker.onerror({ message: "" });
  assert.deepEqual(await Promise.all(lost), Array(2).fill("the worker did not start"));
  client.stop();
});

test("a worker that died is started again by the next question, and what it says late is not heard", async () => {
  const client = start("// a worker"), dead = Worker.made.at(-1);
  const opened = client.open(() => ["load", "weights"]);
  await dead.answer({ result: "said" });
  assert.equal(await opened, "said");
  const lost = client.call("answer", "a").catch((error) => error.message);
  dead.onerror({ message: "out of memory" });
  assert.equal(await lost, "out of memory");
  assert.ok(dead.ended);
  assert.equal(Worker.made.at(-1), dead); // not before somebody asks
  await dead.answer({ result: "late" });

  const next = client.call("answer", "b"), worker = Worker.made.at(-1);
  assert.notEqual(worker, dead);
  assert.deepEqual([worker.address, worker.asked.map(({ name, given }) => [name, given])],
    [dead.address, [["load", "weights"]]]);
  await worker.answer({ result: "said" });
  await worker.answer({ result: "fine" });
  assert.equal(await next, "fine");
  client.stop();
});
