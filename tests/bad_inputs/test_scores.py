"""Bad input to score functions: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.scores import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    DotScore,
    LastKeyScore,
    ScaledDotScore,
    Score,
)

QUERY, KEYS = torch.randn(2, 3), torch.randn(2, 6, 5)
LEARNT = [BilinearScore(3, 5), AdditiveScore(3, 5, 4), ConcatScore(3, 5, 4)]


def of(score: Score, query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    return score(query, score.prepare(keys))


BAD = [
    (lambda: BilinearScore(0, 5), "d_query must be a whole number of at least 1, got 0"),
    (lambda: BilinearScore(3, -1), "d_key must be a whole number of at least 1, got -1"),
    (lambda: AdditiveScore(3, 5, 0), "d_hidden must be a whole number of at least 1, got 0"),
    (lambda: ConcatScore(3, 5.0, 4), "d_key must be a whole number of at least 1, got 5.0"),
    (
        lambda: of(DotScore(), QUERY, KEYS),
        "query must be [batch d] with batch = 2, d = 5, got [2, 3]",
    ),
    (
        lambda: of(ScaledDotScore(), QUERY, KEYS),
        "query must be [batch d] with batch = 2, d = 5, got [2, 3]",
    ),
    (
        lambda: of(DotScore(), KEYS, KEYS),
        "query must be [batch d] with batch = 2, d = 5, got [2, 6, 5]",
    ),
    (lambda: of(DotScore(), KEYS[:, 0], KEYS[0]), "keys must be [batch key d], got [6, 5]"),
    (
        lambda: of(DotScore(), torch.randn(1, 5), KEYS),
        "query must be [batch d] with batch = 2, d = 5, got [1, 5]",
    ),
    (lambda: of(LastKeyScore(), QUERY, KEYS[0]), "keys must be [batch key d_key], got [6, 5]"),
    (lambda: of(LastKeyScore(), QUERY[0], KEYS), "query must be [batch d_query]"),
    (lambda: of(LastKeyScore(), QUERY[:1], KEYS), "prepared must be [batch key] with batch = 1"),
    (lambda: LastKeyScore()(QUERY, KEYS), "prepared must be [batch key]"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("score", LEARNT, ids=lambda score: type(score).__name__)
@pytest.mark.parametrize(
    ("query", "keys", "message"),
    [
        (QUERY, KEYS[..., 1:], "keys must be [batch key d_key] with d_key = 5, got [2, 6, 4]"),
        (QUERY, KEYS[0], "keys must be [batch key d_key] with d_key = 5, got [6, 5]"),
        (QUERY[:, 1:], KEYS, "query must be [batch d_query] with d_query = 3, got [2, 2]"),
        (QUERY[None], KEYS, "query must be [batch d_query] with d_query = 3, got [1, 2, 3]"),
        (QUERY[:1], KEYS, "prepared must be [batch key"),
    ],
)
def test_what_does_not_fit_is_named(
    score: Score, query: torch.Tensor, keys: torch.Tensor, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        of(score, query, keys)


@pytest.mark.parametrize("score", LEARNT, ids=lambda score: type(score).__name__)
def test_prepared_keys_of_another_score_are_named(score: Score) -> None:
    with pytest.raises(ValueError, match=re.escape("prepared must be [batch key d_key] with")):
        score(QUERY, torch.randn(2, 6, 9))
