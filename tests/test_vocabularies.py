"""Vocabularies in their files: they come back, and are those that `make vocabularies` stores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from attnbook.text.tokenizers import SPECIAL, BytePair, WordPiece
from attnbook.weights.int8 import metadata
from attnbook.weights.vocabularies import FOLDER, VOCABULARIES, load_vocabulary, save_vocabulary
from tools import vocabularies

TWICE = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("abc", "d")]  # abc is made twice


@pytest.mark.parametrize(
    "made",
    [
        BytePair(TWICE, ("<a>", "<b>")),
        BytePair([]),
        WordPiece([*SPECIAL, "the", "##é", "中"], lowercase=False),
    ],
)
def test_they_come_back(made: Any, tmp_path: Path) -> None:
    save_vocabulary(tmp_path / "v.safetensors", made, {"source": "here"})
    again: Any = load_vocabulary(tmp_path / "v.safetensors")
    assert type(again) is type(made) and again.vocab.tokens == made.vocab.tokens
    assert metadata(tmp_path / "v.safetensors")["source"] == "here"
    if isinstance(made, BytePair):
        assert (again.merges, again.special) == (made.merges, made.special)
    else:
        assert again.lowercase == made.lowercase


def test_the_stored_ones_are_those_of_the_models(asset: Any) -> None:
    for name in ("gpt2-bpe", "minilm"):
        asset(name)
    made = vocabularies.tokenizers()
    assert list(made) == list(VOCABULARIES)
    for name, wanted in made.items():
        stored: Any = load_vocabulary(name)
        assert stored.vocab.tokens == wanted.vocab.tokens
        said = metadata(FOLDER / f"{name}.safetensors")
        assert {each: said[each] for each in vocabularies.said(name)} == vocabularies.said(name)
    sizes = {name: (FOLDER / f"{name}.safetensors").stat().st_size for name in VOCABULARIES}
    assert sum(sizes.values()) < 450_000


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    for made in (BytePair([], digits=True), BytePair([], ("<a>",), tokens=["<a>", *letters()])):
        with pytest.raises(ValueError, match="tokenizer must have at most 65536 tokens in their"):
            save_vocabulary(path, made)
    with pytest.raises(ValueError, match="path must be a safetensors file"):
        load_vocabulary(path)
    save_file({"x": np.zeros(2)}, path)
    with pytest.raises(ValueError, match=r"path must hold merges or tokens, got .* with \['x'\]"):
        load_vocabulary(path)


def letters() -> tuple[str, ...]:
    return BytePair([]).vocab.tokens[:256]
