"""Bad input to attention: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

from attnbook.model.attention import (
    MultiHeadAttention,
    ScoredAttention,
    attend,
    combine,
    scaled_dots,
)
from attnbook.model.masks import causal_mask, padding_mask
from attnbook.model.positions import Alibi, RelativePositions, Rotary
from attnbook.model.scores import AdditiveScore, DotScore

NAN = float("nan")
X, MEMORY = torch.randn(4, 3, 24), torch.randn(4, 7, 24)
PLACES = torch.arange(3)[None]
SCORES, VALUES = torch.randn(2, 3, 6), torch.randn(2, 3, 6, 5)
QUERY, KEYS = torch.randn(2, 4), torch.randn(2, 6, 5)


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=torch.bool)


def heads(**options) -> MultiHeadAttention:
    return MultiHeadAttention(24, 4, **options)


def scored(
    query: torch.Tensor = QUERY, keys: torch.Tensor = KEYS, other: torch.Tensor = KEYS, **mask
) -> torch.Tensor:
    attention = ScoredAttention(AdditiveScore(4, 5, 7))
    return attention(query, keys, attention.prepare(other), **mask)


def cached(memory: torch.Tensor | None, x: torch.Tensor, *other: torch.Tensor) -> torch.Tensor:
    """A second call with a cache, of other vectors than the first."""
    attention, cache = heads(), {}
    attention(X, memory, cache=cache)
    return attention(x, *other, cache=cache)


BAD = [
    (
        lambda: attend(SCORES, VALUES[0]),
        "[... key] and [... key d_value], got [3, 6, 5] for [2, 3, 6]",
    ),
    (
        lambda: attend(SCORES[:, :2], VALUES[:, 0]),
        "values must have one dimension more than scores",
    ),
    (
        lambda: attend(SCORES, VALUES[:, :, 1:]),
        "values must be [#... key d_value] with ... = [2, 3], key = 6, got [2, 3, 5, 5]",
    ),
    (
        lambda: attend(SCORES, VALUES[:, 1:]),
        "values must be [#... key d_value] with ... = [2, 3], key = 6, got [2, 2, 6, 5]",
    ),
    (
        lambda: attend(SCORES[:1], VALUES),
        "values must be [#... key d_value] with ... = [1, 3], key = 6, got [2, 3, 6, 5]",
    ),
    (lambda: attend(SCORES, VALUES, torch.ones(2, 3, 6)), "mask must be boolean"),
    (
        lambda: attend(SCORES, VALUES, ones(2, 3, 5)),
        "mask must be [#... key] with ... = [2, 3], key = 6, got [2, 3, 5]",
    ),
    (
        lambda: attend(SCORES, VALUES, ones(2, 6)),
        "mask must be [#... key] with ... = [2, 3], key = 6, got [2, 6]",
    ),
    (lambda: attend(torch.tensor(1.0), VALUES[0, 0, 0]), "scores must be [... key], got []"),
    (lambda: combine(SCORES, VALUES), "values must be [#... key d_value] with ... = [2], key = 6"),
    (lambda: combine(SCORES, VALUES[:, 0, 1:]), "values must be [#... key d_value]"),
    (lambda: scaled_dots(KEYS, SCORES), "k must be [#... key d_head] with ... = [2], d_head = 5"),
    (lambda: scaled_dots(KEYS, VALUES), "k must be [#... key d_head] with ... = [2], d_head = 5"),
    (lambda: ScoredAttention(None), "score must be a Score of attnbook.model.scores, got None"),
    (lambda: ScoredAttention("dot"), "score must be a Score of attnbook.model.scores, got 'dot'"),
    (
        lambda: ScoredAttention(DotScore),
        "score must be a Score of attnbook.model.scores, got <class",
    ),
    (lambda: scored(QUERY[:1]), "prepared must be [batch key d_key] with batch = 1"),
    (lambda: scored(other=KEYS[:, 1:]), "must be [batch 1 key]"),
    (lambda: scored(keys=KEYS[0]), "keys must be [batch key d_key], got [6, 5]"),
    (
        lambda: scored(mask=ones(6)),
        "mask must be [#... key] with ... = [2, 1], key = 6, got [6, 1]",
    ),
    (
        lambda: scored(mask=ones(2, 5)),
        "mask must be [#... key] with ... = [2, 1], key = 6, got [2, 1, 5]",
    ),
    (lambda: scored(mask=torch.ones(2, 6)), "mask must be boolean"),
    (lambda: MultiHeadAttention(24, 5), "n_heads must divide d_model, 24, got 5"),
    (lambda: MultiHeadAttention(24, 0), "n_heads must be a whole number of at least 1, got 0"),
    (lambda: MultiHeadAttention(0, 4), "d_model must be a whole number of at least 1, got 0"),
    (lambda: MultiHeadAttention(24.0, 4), "d_model must be a whole number of at least 1, got 24.0"),
    (lambda: heads(d_head=0), "d_head must be a whole number of at least 1, got 0"),
    (lambda: heads(n_kv_heads=3), "n_kv_heads must divide n_heads, 4, got 3"),
    (lambda: heads(n_kv_heads=8), "n_kv_heads must divide n_heads, 4, got 8"),
    (lambda: heads(n_kv_heads=0), "n_kv_heads must be a whole number of at least 1, got 0"),
    (lambda: heads(positions="rotary"), "positions must be ScorePositions or None, got 'rotary'"),
    (lambda: heads(positions=Rotary), "positions must be ScorePositions or None, got <class"),
    (lambda: heads(qk_norm=True, norm_eps=-1.0), "eps must be finite, at least 0, got -1.0"),
    (lambda: heads(qk_norm=True, norm_eps=NAN), "eps must be finite, at least 0, got nan"),
    (lambda: heads(qk_norm=1e-5), "qk_norm must be True or False, got 1e-05"),
    (lambda: heads(qk_norm=True, norm_eps=True), "eps must be finite, at least 0, got True"),
    (lambda: heads(bias="no"), "bias must be True or False, got 'no'"),
    (
        lambda: heads()(X[..., 1:]),
        "x must be [batch query d_model] with d_model = 24, got [4, 3, 23]",
    ),
    (lambda: heads()(X[0]), "x must be [batch query d_model] with d_model = 24, got [3, 24]"),
    (
        lambda: heads()(X[None]),
        "x must be [batch query d_model] with d_model = 24, got [1, 4, 3, 24]",
    ),
    (lambda: heads()(X, MEMORY[..., 1:]), "memory must be [batch key d_model]"),
    (
        lambda: heads()(X, MEMORY[:2]),
        "memory must be [batch key d_model] with batch = 4, d_model = 24, got [2, 7, 24]",
    ),
    (
        lambda: heads()(X, MEMORY[:1]),
        "memory must be [batch key d_model] with batch = 4, d_model = 24, got [1, 7, 24]",
    ),
    (lambda: heads()(X, MEMORY, causal=True), "memory must be None with causal or positions"),
    (lambda: heads()(X, MEMORY, positions=PLACES), "memory must be None with causal or positions"),
    (lambda: heads(positions=Alibi(4))(X, MEMORY), "memory must be None with causal or positions"),
    (
        lambda: heads()(X, mask=causal_mask(3)),
        "mask must be [#batch #query key] with batch = 4, query = 3, key = 3, got [3, 3]",
    ),
    (
        lambda: heads()(X, mask=torch.ones(1, 3, 3)),
        "mask must be boolean, True = may attend, got torch.float32",
    ),
    (
        lambda: heads()(X, mask=ones(4, 3, 1)),
        "mask must be [#batch #query key] with batch = 4, query = 3, key = 3, got [4, 3, 1]",
    ),
    (lambda: heads()(X, mask=ones(2, 3, 3)), "mask must be [#batch #query key]"),
    (
        lambda: heads()(X[:1], mask=ones(4, 1, 3)),
        "mask must be [#batch #query key] with batch = 1, query = 3, key = 3, got [4, 1, 3]",
    ),
    (
        lambda: heads()(X, mask=padding_mask(torch.ones(4, 3).long(), 0)[:, :, None]),
        "mask must be [#batch #query key] with batch = 4, query = 3, key = 3, got [4, 3, 1]",
    ),
    (
        lambda: heads()(X, MEMORY, mask=ones(4, 3, 3)),
        "mask must be [#batch #query key] with batch = 4, query = 3, key = 7",
    ),
    (lambda: heads()(X, mask=ones(4, 1, 3, 3)), "mask must be [#batch #query key]"),
    (lambda: heads(positions=Alibi(4))(X, positions=PLACES[0]), "positions must be [#batch query]"),
    (
        lambda: heads()(X, positions=PLACES[:, 1:]),
        "positions must be [#batch query] with batch = 4, query = 3, got [1, 2]",
    ),
    (
        lambda: heads()(X, positions=PLACES.expand(2, 3)),
        "positions must be [#batch query] with batch = 4, query = 3, got [2, 3]",
    ),
    (lambda: heads(positions=RelativePositions(8, 3))(X), "q must be [batch n_heads query d_head]"),
    (
        lambda: heads(positions=Alibi(1))(X),
        "q must be [batch n_heads query d_head] with n_heads = 1, got [4, 4, 3, 6]",
    ),
    (
        lambda: heads(positions=Rotary(8))(X),
        "x must be [... n d_head] with d_head = 8, got [4, 4, 3, 6]",
    ),
    (
        lambda: cached(None, X[:2]),
        "cache must be [batch head past d_head] with batch = 2, got [4, 4, 3, 6]",
    ),
    (
        lambda: cached(MEMORY, X[:2], MEMORY[:2]),
        "cache must be [batch head key d_head] with batch = 2, key = 7, got [4, 4, 7, 6]",
    ),
    (
        lambda: cached(MEMORY, X, MEMORY[:, 1:]),
        "cache must be [batch head key d_head] with batch = 4, key = 6, got [4, 4, 7, 6]",
    ),
    (
        lambda: heads().load_torch(nn.MultiheadAttention(24, 4, add_bias_kv=True)),
        "no additional keys",
    ),
    (
        lambda: heads().load_torch(nn.MultiheadAttention(24, 4, add_zero_attn=True)),
        "no additional keys",
    ),
    (lambda: heads().load_torch(nn.MultiheadAttention(24, 4, kdim=5)), "one size of keys"),
    (
        lambda: heads().load_torch(nn.MultiheadAttention(24, 4, bias=False)),
        "reference must have the sizes",
    ),
    (
        lambda: heads().load_torch(nn.MultiheadAttention(24, 3)),
        "reference must have the sizes of this module",
    ),
    (
        lambda: heads().load_torch(nn.MultiheadAttention(20, 4)),
        "reference must have the sizes of this module",
    ),
    (
        lambda: heads(n_kv_heads=2).load_torch(nn.MultiheadAttention(24, 4)),
        "reference must have the sizes",
    ),
    (
        lambda: heads(d_head=5).load_torch(nn.MultiheadAttention(24, 4)),
        "reference must have the sizes",
    ),
    (
        lambda: heads(qk_norm=True).load_torch(nn.MultiheadAttention(24, 4)),
        "reference must have the sizes",
    ),
    (
        lambda: heads(positions=Alibi(4)).load_torch(nn.MultiheadAttention(24, 4)),
        "reference must have the sizes",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
