"""The stored BERT is what `make bert` makes: its data, its beginning, and its scores."""

import math
from functools import cache
from typing import Any

import pytest

from attnbook.learn.pretraining import SpeechPairs
from attnbook.model.bert import Bert
from attnbook.weights import int8
from attnbook.weights.pretrained import SOTU_BERT, sotu_bert
from tools import bert

SAID = int8.metadata(SOTU_BERT)


@cache
def _stored() -> tuple[Bert, SpeechPairs]:
    model, tokenizer = sotu_bert()
    return model, SpeechPairs(tokenizer)


@pytest.fixture
def stored(asset: Any) -> tuple[Bert, SpeechPairs]:
    asset("sotu")
    return _stored()


def test_the_file_is_small_and_says_what_made_it() -> None:
    assert SOTU_BERT == bert.PATH and SOTU_BERT.stat().st_size <= 1_200_000
    assert SAID["command"] == bert.COMMAND and SAID["seed"] == bert.SEED
    assert SAID["steps"] == bert.STEPS == 500 * len(SAID["losses"])
    assert 600 < SAID["seconds"] < 6000
    assert set(SAID["versions"]) == {"python", "attnbook", "torch", "numpy"}
    assert sotu_bert()[0].stack.config == bert.CONFIG


def test_it_learnt_from_this_data_by_this_recipe(asset: Any) -> None:
    asset("sotu")
    assert SAID["data"] == bert.data_hash()
    tokenizer = bert.tokenizer()
    assert list(tokenizer.vocab.tokens) == SAID["tokens"]
    pairs = SpeechPairs(tokenizer)
    model = bert.untrained(pairs)
    losses = bert.learn(model, pairs, steps=2)
    assert losses == pytest.approx(SAID["first_losses"][:2], abs=1e-3)


@pytest.mark.parametrize("batches", [2, pytest.param(bert.BATCHES, marks=pytest.mark.full)])
@pytest.mark.parametrize("n", bert.LENGTHS_SCORED)
def test_its_scores_are_true(stored: tuple[Bert, SpeechPairs], n: int, batches: int) -> None:
    """Within four standard errors of a slice; the whole but for rounding."""
    told = SAID["scores"][str(n)]
    asked = {"words": 64 * batches * 0.14 * n, "next": 64 * batches, "next_same": 64 * batches}
    for name, score in bert.scores(*stored, n, batches).items():
        error = math.sqrt(told[name] * (1 - told[name]) / asked[name])
        assert abs(score - told[name]) < (4 * error if batches < bert.BATCHES else 0.002), name


def test_it_guesses_words_and_next_sentences() -> None:
    for n in bert.LENGTHS_SCORED:
        told = SAID["scores"][str(n)]
        assert told["words"] > 2.5 * told["words_none"]
        assert told["words"] > told["words_both"] > told["words_left"] > told["words_none"]
        assert told["words_none"] > 3 * told["words_untrained"]
        assert abs(told["words"] - told["words_float32"]) < 0.005
        assert abs(told["next"] - told["next_float32"]) < 0.01
        assert told["next"] > told["next_same"] > 0.5
        assert abs(told["next_untrained"] - 0.5) < 0.05
    assert SAID["scores"]["128"]["next"] >= 0.7
