"""Shared by the tests of the page's engine: run it in Node and compare with PyTorch."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save_file
from torch import Tensor, nn

from attnbook import web
from attnbook.model.config import TransformerConfig

ENGINE = Path(web.__file__).parent / "engine"
SMALL = TransformerConfig(d_model=24, n_heads=3, d_ff=20, n_layers=2, max_len=13)
# The bench's numbers at a place, computed by its module.
LIVE = """
import { readFileSync } from "node:fs";
import { exactly, prospect } from "ENGINE/../decoding_bench/tree.js";
import { inOrder } from "ENGINE/sampling.js";
const { logp, sizes, cases } = JSON.parse(readFileSync(0, "utf8"));
const place = exactly([], inOrder(Float32Array.from(logp)));
const shown = cases.map(({ filters, seed }) => prospect(place, sizes, filters, seed, 0));
console.log(JSON.stringify(shown));
"""
# What the bench's other rules write; the model's scores are those of the last token, in a table.
RULED = """
import { readFileSync } from "node:fs";
import { beams, draws } from "ENGINE/../decoding_bench/rules.js";
import { inOrder } from "ENGINE/sampling.js";
const { scores, cases } = JSON.parse(readFileSync(0, "utf8"));
const next = async (ids) => inOrder(Float64Array.from(scores[ids.at(-1)]));
const shown = [];
for (const { ids, ...how } of cases) {
  let heard = [];
  const found = await (how.beam ? beams : draws)(next, ids, how, (row) => (heard = row));
  shown.push({ ...found, heard });
}
console.log(JSON.stringify(shown));
"""
KERNELS = """
import { kernels } from "ENGINE/../../../../tools/kernels.mjs";
console.log(JSON.stringify([...await kernels()]));
"""
# The worker as pages run it: what it answers, and how many memories it has made.
WORKER = """
import { readFileSync } from "node:fs";
import { script } from "ENGINE/../../../../tools/bundling.mjs";
const { file, questions } = JSON.parse(readFileSync(0, "utf8")), told = [];
const { Memory } = WebAssembly;
let memories = 0;
WebAssembly.Memory = class extends Memory {
  constructor(given) {
    super(given);
    memories += 1;
  }
};
globalThis.postMessage = (message) => told.push(message);
(0, eval)(await script("./engine/worker.js"));
const call = (name, given) => globalThis.onmessage({ data: { number: told.length, name, given } });
call("load", new Uint8Array(readFileSync(file)).buffer);
questions.forEach((question) => call("answer", question));
const [, ...answers] = told.map(({ result, error }) => error ?? [...(result.logits?.data ?? [])]);
console.log(JSON.stringify({ memories, answers }));
"""
RUN = """
import { readFileSync } from "node:fs";
import { openBert } from "ENGINE/bert.js";
import { bytePair } from "ENGINE/bytepair.js";
import { speedUp } from "ENGINE/fast.js";
import { openGpt } from "ENGINE/gpt.js";
import { read } from "ENGINE/safetensors.js";
import { uniform } from "ENGINE/random.js";
import { fall, leave, ranked } from "ENGINE/sampling.js";
import { block, causal, inside, stack } from "ENGINE/transformer.js";
import { wordsOf } from "ENGINE/wordpiece.js";
const plain = (value) => (value?.data ? { shape: value.shape, data: [...value.data] } : value);
const all = (answer) =>
  Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, plain(value)]));
const buffer = (file) => new Uint8Array(readFileSync(file)).buffer;
const tensor = ({ data, shape }) => ({ data: Float32Array.from(data), shape });
const rows = (mask) => mask && ((i, j) => mask[i][j]);
const jobs = {
  split: ({ texts, lowercase }) => texts.map((text) => wordsOf(text, lowercase)),
  answers({ file, questions, kernels }) {
    const given = read(buffer(file));
    if (kernels) speedUp(given.parameters, readFileSync(kernels));
    const model = (given.metadata.merges ? openGpt : openBert)(given);
    return questions.map((question) => all(model.answer(question)));
  },
  bytes({ merges, special, texts, rows }) {
    const { encode, decode, written, names } = bytePair(merges, special);
    const [ids, decoded, parts] = [texts.map(encode), rows.map(decode), rows.map(written)];
    return { ids, decoded, parts, names };
  },
  samples: ({ cases }) => cases.map(({ logits, filters, seed, numbers }) => {
    const u = logits.map((z) => z ?? -Infinity), order = [...ranked(u)];
    const left = leave(order.map((id) => u[id]), filters), { stages, count, mass } = left;
    numbers ??= [0, 1, 2].map((n) => uniform(seed, n));
    const drawn = numbers.map((x) => fall(left, x)).map((one) => ({ ...one, id: order[one.rank] }));
    return { order, stages, count, mass, numbers, drawn };
  }),
  stack({ file, config, tokens, segments, cases }) {
    const { parameters } = read(buffer(file)), p = (name) => parameters.get(name);
    return cases.map(({ mask, positions }) => {
      const given = { segments, positions, mask: mask === "causal" ? causal() : rows(mask) };
      const { states, blocks, out } = stack(p, config, tokens, given);
      const weights = blocks.map(({ attention }) => plain(attention.weights));
      return { states: states.map(plain), weights, out: plain(out) };
    });
  },
  block({ file, config, x, memory, mask, memoryMask }) {
    const { parameters } = read(buffer(file));
    const { positions } = x, reads = { memory: tensor(memory), memoryMask: rows(memoryMask) };
    const given = { ...reads, mask: rows(mask), positions };
    return plain(block((name) => parameters.get(name), config, tensor(x), given).out);
  },
};
const { job, ...given } = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(jobs[job](given)));
"""


def node(job: str, run: str = RUN, **given: Any) -> Any:
    """The result of a job of `run`."""
    script = run.replace("ENGINE", ENGINE.as_uri())
    done = subprocess.run(
        [shutil.which("node") or "node", "--input-type=module", "-e", script],
        input=json.dumps({"job": job, **given}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def array(told: dict[str, Any]) -> np.ndarray:
    return np.array(told["data"]).reshape(told["shape"])


def shaken(module: nn.Module) -> Any:
    """Random parameters, including norms and biases."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    for name, parameter in module.named_parameters():
        if "norm" in name and name.endswith("weight"):
            nn.init.uniform_(parameter, 0.5, 1.5)
    return module.eval()


def written(state: dict[str, Tensor], file: Path, **metadata: object) -> str:
    texts = {name: json.dumps(value) for name, value in metadata.items()}
    save_file(state, file, texts)
    return str(file)


def same(told: dict[str, Any], tensor: Tensor, slack: float = 1e-4) -> None:
    assert array(told).shape == tuple(tensor.shape)
    np.testing.assert_allclose(array(told), tensor.detach().numpy(), rtol=0, atol=slack)


MODERN = replace(
    SMALL,
    normalizer="rms",
    activation="silu",
    gated=True,
    positions="rotary",
    n_heads=6,
    n_kv_heads=2,
    d_head=10,
    bias=False,
    qk_norm=True,
    embedding_scale=False,
)
SENTENCES = [
    "We must ask the people of this country to keep the peace.",
    "The Congress of the United States has the power to declare war.",
    "I recommend that the appropriation for the Navy be increased this year.",
    "Our farmers, filibustering or not, can't sell what they grow!",
]
