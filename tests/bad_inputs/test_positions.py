"""Bad input to positions: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.positions import (
    Alibi,
    LearnedPositions,
    RelativePositions,
    Rotary,
    ScorePositions,
    SinusoidalPositions,
    positions_of,
    sinusoidal,
    tree_distance,
)

NAN, INF = float("nan"), float("inf")
X, Q = torch.randn(2, 5, 8), torch.randn(2, 4, 5, 8)
PLACES = torch.arange(5)[None]


def bias(scheme: ScorePositions, queries: torch.Tensor, keys: torch.Tensor) -> object:
    return scheme.bias(Q, queries, keys)


BAD = [
    (lambda: sinusoidal(-1, 8), "n must be a whole number of at least 0, got -1"),
    (lambda: sinusoidal(2.5, 8), "n must be a whole number of at least 0, got 2.5"),
    (lambda: sinusoidal(3, 5), "d_model must be even, two numbers for each wave, got 5"),
    (lambda: sinusoidal(3, 0), "d_model must be a whole number of at least 2, got 0"),
    (lambda: sinusoidal(3, 8, base=0.0), "base must be above 0 and finite, got 0.0"),
    (lambda: sinusoidal(3, 8, base=-2.0), "base must be above 0 and finite, got -2.0"),
    (lambda: sinusoidal(3, 8, base=NAN), "base must be above 0 and finite, got nan"),
    (lambda: sinusoidal(3, 8, base=INF), "base must be above 0 and finite, got inf"),
    (lambda: SinusoidalPositions()(X[0]), "x must be [batch token d_model], got [5, 8]"),
    (
        lambda: SinusoidalPositions()(X[..., 1:]),
        "d_model must be even, two numbers for each wave, got 7",
    ),
    (
        lambda: SinusoidalPositions()(X, PLACES[0]),
        "positions must be [#batch token] with batch = 2, token = 5, got [5]",
    ),
    (
        lambda: SinusoidalPositions()(X, PLACES[:, 1:]),
        "positions must be [#batch token] with batch = 2, token = 5, got [1, 4]",
    ),
    (
        lambda: SinusoidalPositions()(X, PLACES.expand(3, 5)),
        "positions must be [#batch token] with batch = 2, token = 5, got [3, 5]",
    ),
    (lambda: LearnedPositions(0, 8), "max_len must be a whole number of at least 1, got 0"),
    (lambda: LearnedPositions(6, -1), "d_model must be a whole number of at least 1, got -1"),
    (
        lambda: LearnedPositions(6, 8)(X[..., :1]),
        "x must be [batch token d_model] with d_model = 8, got [2, 5, 1]",
    ),
    (
        lambda: LearnedPositions(6, 1)(X),
        "x must be [batch token d_model] with d_model = 1, got [2, 5, 8]",
    ),
    (
        lambda: LearnedPositions(6, 8)(X[0]),
        "x must be [batch token d_model] with d_model = 8, got [5, 8]",
    ),
    (lambda: LearnedPositions(4, 8)(X), "x must have at most 4 tokens, got 5"),
    (lambda: LearnedPositions(6, 8)(X, PLACES + 2), "positions must lie in 0..5, got 6"),
    (
        lambda: LearnedPositions(6, 8)(X, PLACES - 1),
        "positions must lie in 0..5, got -1",
    ),
    (
        lambda: LearnedPositions(6, 8)(X, PLACES[:, 1:]),
        "positions must be [#batch token] with batch = 2, token = 5, got [1, 4]",
    ),
    (lambda: positions_of(PLACES), "mask must be boolean, True = may attend, got torch.int64"),
    (lambda: positions_of(PLACES[0] > 1), "mask must be [batch token], got [5]"),
    (lambda: Rotary(5), "d_head must be even, two numbers for each wave, got 5"),
    (lambda: Rotary(0), "d_head must be a whole number of at least 2, got 0"),
    (lambda: Rotary(4, base=0.0), "base must be above 0 and finite, got 0.0"),
    (lambda: Rotary(4, base=-1.0), "base must be above 0 and finite, got -1.0"),
    (lambda: Rotary(4, base=NAN), "base must be above 0 and finite, got nan"),
    (lambda: Rotary(4, pairing="both"), "pairing must be one of 'half', 'interleaved', got 'both'"),
    (lambda: Rotary(4)(X), "x must be [... n d_head] with d_head = 4, got [2, 5, 8]"),
    (lambda: Rotary(8)(X[0, 0]), "x must be [... n d_head] with d_head = 8, got [8]"),
    (lambda: Rotary(8)(X.long()), "x must be of floating point, got torch.int64"),
    (
        lambda: Rotary(8)(X, PLACES[0, 1:]),
        "positions must be [#... n] with ... = [2], n = 5, got [4]",
    ),
    (
        lambda: Rotary(8)(X, PLACES.expand(3, 5)),
        "positions must be [#... n] with ... = [2], n = 5, got [3, 5]",
    ),
    (
        lambda: Rotary(8).rotate(Q, PLACES.expand(4, 5)),
        "positions must be [#... n] with ... = [2, 4], n = 5, got [4, 1, 5]",
    ),
    (lambda: RelativePositions(0, 3), "d_head must be a whole number of at least 1, got 0"),
    (lambda: RelativePositions(8, -1), "max_distance must be a whole number of at least 0, got -1"),
    (
        lambda: RelativePositions(8, 2.5),
        "max_distance must be a whole number of at least 0, got 2.5",
    ),
    (
        lambda: bias(RelativePositions(6, 3), PLACES, PLACES),
        "q must be [batch n_heads query d_head] with d_head = 6, got [2, 4, 5, 8]",
    ),
    (
        lambda: bias(RelativePositions(8, 3), PLACES[:, 1:], PLACES),
        "positions must be [#batch query] with batch = 2, query = 5, got [1, 4]",
    ),
    (
        lambda: bias(RelativePositions(8, 3), PLACES, PLACES[0]),
        "key_positions must be [#batch key] with batch = 2, got [5]",
    ),
    (
        lambda: bias(RelativePositions(8, 3), PLACES, PLACES.expand(3, 5)),
        "key_positions must be [#batch key] with batch = 2, got [3, 5]",
    ),
    (lambda: Alibi(0), "n_heads must be a whole number of at least 1, got 0"),
    (lambda: Alibi(4.0), "n_heads must be a whole number of at least 1, got 4.0"),
    (
        lambda: bias(Alibi(5), PLACES, PLACES),
        "q must be [batch n_heads query d_head] with n_heads = 5, got [2, 4, 5, 8]",
    ),
    (
        lambda: bias(Alibi(4), PLACES[:, 1:], PLACES),
        "positions must be [#batch query] with batch = 2, query = 5, got [1, 4]",
    ),
    (
        lambda: bias(Alibi(4), PLACES, PLACES[0]),
        "key_positions must be [#batch key] with batch = 2, got [5]",
    ),
    (lambda: tree_distance([]), "-1 exactly once, got []"),
    (lambda: tree_distance([1, 0]), "-1 exactly once, got [1, 0]"),
    (lambda: tree_distance([-1, -1]), "-1 exactly once, got [-1, -1]"),
    (lambda: tree_distance([-1, 5]), "parents must be indices of 2 words"),
    (lambda: tree_distance([-1, -2]), "parents must be indices of 2 words"),
    (lambda: tree_distance([-1, 2, 1]), "parents must form one tree, got [-1, 2, 1]"),
    (lambda: tree_distance([-1, 1]), "parents must form one tree, got [-1, 1]"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
