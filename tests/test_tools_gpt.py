"""The stored GPT is what `make gpt` makes: its data, its beginning, its scores, what it wrote."""

import gzip
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.web.playground.widget import checkpoint_files
from attnbook.weights import int8
from attnbook.weights.pretrained import SOTU_GPT, sotu_gpt
from tools import gpt
from tools.bert import data_hash

SAID = int8.metadata(SOTU_GPT)
TOLD = SAID["bits_per_byte"]
BEGINNING = 3000  # bytes of each held-out speech that a quick look reads


@cache
def _stored() -> tuple[TransformerDecoder, BytePair]:
    return sotu_gpt()


@pytest.fixture
def stored(asset: Any) -> tuple[TransformerDecoder, BytePair]:
    asset("sotu")
    return _stored()


def test_the_file_is_small_and_says_what_made_it() -> None:
    assert SOTU_GPT == gpt.PATH and len(gzip.compress(SOTU_GPT.read_bytes())) <= 3_000_000
    assert SAID["command"] == gpt.COMMAND and SAID["seed"] == gpt.SEED
    assert SAID["steps"] == gpt.STEPS == gpt.EVERY * len(SAID["losses"])
    assert SAID["device"] == "NVIDIA H200" and 100 < SAID["seconds"] < 600
    assert set(SAID["versions"]) == {"python", "attnbook", "torch", "numpy"}
    assert _stored()[0].stack.config == gpt.CONFIG
    assert SAID["losses"] == sorted(SAID["losses"], reverse=True)


def test_it_learnt_from_this_data_by_this_recipe(
    stored: tuple[TransformerDecoder, Any], tmp_path: Path
) -> None:
    assert SAID["data"] == data_hash()
    assert gpt.tokenizer().merges == stored[1].merges
    keeper = gpt.Keeper(tmp_path / "kept", (2, 0, 1))
    losses = gpt.first_losses(on_step=[keeper])
    assert losses == pytest.approx(SAID["first_losses"], abs=1e-3)
    whole, size = tmp_path / "gpt.safetensors", (tmp_path / "kept/0.safetensors").stat().st_size
    shutil.copy(gpt.PATH, whole)
    assert [*keeper.store(whole, most=int(3.5 * size))] == [2, 0]  # as many as fit, in this order
    found = checkpoint_files(whole)
    assert [step for step, _ in found] == [0, 2, gpt.STEPS]
    first, merges = int8.load_int8(found[0][1], TransformerDecoder)
    assert merges.merges == stored[1].merges
    for name, weight in gpt.untrained().state_dict().items():  # to half a level of 127
        assert (first.state_dict()[name] - weight).abs().max() <= weight.abs().max() / 250
    assert [*keeper.store(whole)] == [2, 0, 1] and len(checkpoint_files(whole)) == 4


@pytest.mark.full
def test_its_scores_are_true(stored: tuple[TransformerDecoder, BytePair]) -> None:
    texts = gpt.texts("validation")
    assert gpt.score(*stored, texts) == pytest.approx(TOLD["model"], abs=0.002)
    packed = gpt.packed(texts)
    assert packed == pytest.approx({name: TOLD[name] for name in packed}, abs=0.002)


def test_the_score_of_a_slice_is_near(stored: tuple[TransformerDecoder, BytePair]) -> None:
    texts = [text[:BEGINNING] for text in gpt.texts("validation")]
    assert gpt.score(*stored, texts) == pytest.approx(TOLD["model"], abs=0.15)
    assert gpt.score(gpt.untrained().eval(), stored[1], texts[:2]) > TOLD["model"] + 1


def test_it_needs_fewer_bits_than_what_compresses_files() -> None:
    assert TOLD["model"] < 0.9 * min(TOLD[name] for name in (*gpt.PACKERS, "xz_after"))
    assert abs(TOLD["model"] - TOLD["float32"]) < 0.01
    assert TOLD["untrained"] > TOLD["gzip"]


def test_the_stored_checkpoints_are_of_this_model_and_few() -> None:
    files = checkpoint_files(SOTU_GPT)
    assert sum(path.stat().st_size for _, path in files) <= gpt.MOST_BYTES
    assert {step for step, _ in files[:-1]} <= {*gpt.CHECKPOINTS}
    for _, path in files:
        model, pieces = int8.load_int8(path, TransformerDecoder)
        assert model.stack.config == gpt.CONFIG and pieces.merges == _stored()[1].merges


def test_it_wrote_while_it_learnt(stored: tuple[TransformerDecoder, BytePair]) -> None:
    samples = SAID["samples"]
    assert list(samples) == [str(step) for step in gpt.SAMPLED] and SAID["prompt"] == gpt.PROMPT
    known = set(" ".join(gpt.texts("train")).split())

    def words(text: str) -> float:
        return sum(word in known for word in text.split()) / len(text.split())

    assert words(samples["0"]) + 0.2 < words(samples[str(gpt.STEPS)]) > 0.7
    assert gpt.sample(gpt.untrained().eval(), stored[1]) == samples["0"]
