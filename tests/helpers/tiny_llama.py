"""A small model of the Llama family in a GGUF file, with random weights in blocks of few bits, and
what the page's engine makes of such a file, by Node."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from attnbook import assets
from attnbook.model.config import SMOLLM2
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.text.tokenizers.bytepair import LETTERS
from attnbook.weights import llama as package
from tests.helpers.engine import ENGINE
from tools.notebooks import ROOT

# All sizes differ, and rows hold several blocks of 32 numbers.
SIZES = {"d": 96, "heads": 3, "shared": 1, "ff": 160, "layers": 2}
MERGES = ["Ġ t", "h e", "Ġt he", "i n", "r e", "Ġ a", "Ġa n", "Ġan d", "1 2"]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

RUN = """
import { readFileSync } from "node:fs";
import { openFile } from "ENGINE/llama.js";
import { kernels } from "ENGINE/plain.js";
import { readHead } from "ENGINE/gguf.js";
const { job, ways, compiled, ...given } = JSON.parse(readFileSync(0, "utf8"));
const module = compiled && new Uint8Array(readFileSync(compiled));
const file = (path) => new Uint8Array(readFileSync(path));
const list = (floats) => Array.from(floats);
const jobs = {
  product(way, { type, rows, columns, blocks, x }) {
    const w = Uint8Array.from(blocks), n = columns, at = 2 ** 16;
    const end = at + Math.ceil(w.length / 16) * 16, k = kernels(way, end + 16 * n + 4 * rows);
    new Uint8Array(k.buffer).set(w, at);
    new Float32Array(k.buffer).set(x, end / 4);
    k.pack(end, n, end + 4 * n);
    k[`product${type}`](at, rows, n, end + 4 * n, end + 8 * n);
    return list(new Float32Array(k.buffer, end + 8 * n, rows));
  },
  read(way, { path, texts }) {
    const { model, words } = openFile(file(path), file(path).length, way, 64);
    return texts.map(({ ids, layers, patience }) => {
      let calls = 0, told;
      do told = model.read({ ids, layers, patience }), calls += 1; while (!told.done);
      const weights = told.weights.map((layer) => layer.map((token) => token.map(list)));
      return { calls, logits: list(told.logits), weights };
    });
  },
  greedy(way, { path, prompts, n, parts }) {
    const all = file(path), cut = parts ?? all.length;
    const { model, end } = openFile(all.subarray(0, cut), all.length, way);
    for (let at = cut; at < all.length; at += cut) model.put(at, all.subarray(at, at + cut));
    return prompts.map((prompt) => {
      const ids = [...prompt], first = model.read({ ids }).logits;
      for (let logits = first; ids.length < prompt.length + n;) {
        if (ids.length > prompt.length) logits = model.read({ ids }).logits;
        ids.push(logits.indexOf(logits.reduce((a, b) => Math.max(a, b))));
        if (ids.at(-1) === end) break;
      }
      return { logits: list(first), ids: ids.slice(prompt.length) };
    });
  },
  words(way, { path, texts, rows = [] }) {
    const bytes = file(path), { words } = openFile(bytes, bytes.length, way, 4);
    const names = words.names.slice(0, 300);
    const marked = texts.map((text) => words.encode(text, { special: true }));
    return { ids: texts.map(words.encode), marked, texts: rows.map(words.decode), names };
  },
  head: (way, { path, bytes }) => {
    const { facts, tensors } = readHead(file(path).subarray(0, bytes));
    return { facts, tensors: Object.fromEntries(tensors) };
  },
  async memory() { // the worker as pages run it, asked for a file of ten thousand gigabytes
    const { script } = await import("ROOT/tools/bundling.mjs"), part = file(given.path);
    const told = [];
    globalThis.postMessage = (message) => told.push(message);
    (0, eval)(await script("./engine/language.js"));
    const call = (name, given) => globalThis.onmessage({ data: { number: 1, name, given } });
    call("begin", { part, total: 1e13 });
    call("begin", { part, total: part.length });
    return told.map(({ result, error }) => error ?? result.names.length);
  },
  open(way, { path }) {
    openFile(file(path), file(path).length, way);
  },
};
const told = await Promise.all(ways.map((way) => jobs[job](way === "simd" ? module : null, given)));
console.log(JSON.stringify(told));
"""


def llama(job: str, compiled: Path | None = None, **given: Any) -> Any:
    """The results of a job with the compiled kernels, and with those in JavaScript; without a
    `compiled` file with the latter alone."""
    node, script = (
        shutil.which("node") or "node",
        RUN.replace("ENGINE", ENGINE.as_uri()).replace("ROOT", ROOT.as_uri()),
    )
    ways = given.pop("ways", ["simd", "plain"] if compiled else ["plain"])
    asked = {"job": job, "ways": ways, "compiled": compiled and str(compiled), **given}
    command = [node, "--input-type=module", "-e", script]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def blocks(weight: np.ndarray, kind: Type) -> np.ndarray:
    return gguf.quants.quantize(weight.astype(np.float32), kind)


def write_tiny_llama(path: Path, tied: bool = True, **other: Any) -> Path:
    """Write the file: matrices in Q4_1, the embedding in Q8_0, norms in 32 bits, and a tokenizer
    that lacks a byte. `other`: tensors instead of those, by their names."""
    rng, (d, heads, shared, ff, layers) = np.random.default_rng(0), SIZES.values()
    tokens = [*SPECIAL, *(c for c in LETTERS.values() if c != LETTERS[0xC3])]
    tokens += [pair.replace(" ", "") for pair in MERGES]
    file, few = gguf.GGUFWriter(path, "llama"), d // heads * shared
    file.add_context_length(512)
    file.add_embedding_length(d)
    file.add_block_count(layers)
    file.add_feed_forward_length(ff)
    file.add_head_count(heads)
    file.add_head_count_kv(shared)
    file.add_rope_dimension_count(d // heads)
    file.add_rope_freq_base(100_000.0)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("smollm")
    file.add_token_list(tokens)
    file.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    file.add_token_merges(MERGES)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_pad_token_id(2)
    shapes = {"attn_q": (d, d), "attn_k": (few, d), "attn_v": (few, d), "attn_output": (d, d)}
    shapes |= {"ffn_gate": (ff, d), "ffn_up": (ff, d), "ffn_down": (d, ff)}
    shapes |= {"attn_norm": (d,), "ffn_norm": (d,)}
    every = {f"blk.{n}.{name}": shape for n in range(layers) for name, shape in shapes.items()}
    ends = {"token_embd": (len(tokens), d), "output_norm": (d,)}
    ends |= {} if tied else {"output": (len(tokens), d)}
    for name, shape in (every | ends).items():
        scale, kind = (1.5 if name.endswith(("_q", "_k")) else 1.0), Type.Q4_1
        weight = rng.normal(0, scale / d**0.5, shape)
        if len(shape) == 1:
            weight, kind = rng.uniform(0.5, 1.5, shape), Type.F32
        elif name in ends:
            weight, kind = 3 * weight, Type.Q8_0
        weight, kind = other.get(name, (weight, kind))
        data = weight.astype(np.float32) if kind == Type.F32 else blocks(weight, kind)
        file.add_tensor(f"{name}.weight", data, raw_dtype=kind)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path


def read_tiny_llama(path: Path, tied: bool = True) -> tuple[TransformerDecoder, BytePair]:
    """The model and the tokenizer that the package reads of such a file, alone in its folder."""
    d, heads, shared, ff, layers = SIZES.values()
    sizes = {"d_model": d, "n_heads": heads, "n_kv_heads": shared, "d_ff": ff, "n_layers": layers}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assets, "fetch", lambda name: path.parent)
        patch.setattr(package, "SMOLLM2", replace(SMOLLM2, **sizes, tied=tied))
        if not tied:
            patch.setitem(package.GGUF_NAMES, "output.", "head.")
        return package.load_smollm2()
