"""Bad input to efficient attention: the error says what is wrong."""

# pyright: reportArgumentType=false, reportCallIssue=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.efficient import linear_attention, linear_attention_step, window_attention

Q, K, V = torch.randn(2, 3, 6, 5), torch.randn(2, 3, 6, 5), torch.randn(2, 3, 6, 4)
ONE = [t[:, :, 0] for t in (Q, K, V)]
STATE = linear_attention_step(*ONE)[1]


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=torch.bool)


BAD = [
    (lambda: window_attention(Q, K, V, -1), "window must be a whole number of at least 0, got -1"),
    (
        lambda: window_attention(Q, K, V, 1.5),
        "window must be a whole number of at least 0, got 1.5",
    ),
    (
        lambda: window_attention(Q[0], K[0], V[0], 3),
        "q must be [batch head n d_head], got [3, 6, 5]",
    ),
    (
        lambda: window_attention(Q[:1], K, V, 3),
        "with batch = 1, head = 3, n = 6, d_head = 5, got [2, 3, 6, 5]",
    ),
    (lambda: window_attention(Q, K[:, :2], V, 3), "k must be [batch head n d_head]"),
    (lambda: window_attention(Q, K[..., 1:], V, 3), "k must be [batch head n d_head]"),
    (lambda: window_attention(Q, K[:, :, 1:], V, 3), "k must be [batch head n d_head]"),
    (
        lambda: window_attention(Q, K, V[:, :, 1:], 3),
        "v must be [batch head n d_value] with batch = 2, head = 3, n = 6, got [2, 3, 5, 4]",
    ),
    (
        lambda: window_attention(*(t[:, :, :0] for t in (Q, K, V)), 3),
        "tokens must be a whole number of at least 1, got 0",
    ),
    (lambda: linear_attention(Q[0], K, V), "q must be [batch head query d_head], got [3, 6, 5]"),
    (
        lambda: linear_attention(Q[:1], K, V),
        "k must be [batch head key d_head] with batch = 1, head = 3, d_head = 5, got [2, 3, 6, 5]",
    ),
    (lambda: linear_attention(Q, K[..., 1:], V), "k must be [batch head key d_head]"),
    (
        lambda: linear_attention(Q, K, V[:, :, 1:]),
        "v must be [batch head key d_value] with batch = 2, head = 3, key = 6, got [2, 3, 5, 4]",
    ),
    (
        lambda: linear_attention(Q[:, :, 1:], K, V, causal=True),
        "k must be [batch head n d_head] with batch = 2, head = 3, n = 5",
    ),
    (
        lambda: linear_attention(Q[:, :, :0], K[:, :, :0], V[:, :, :0], causal=True),
        "tokens must be a whole number of at least 1, got 0",
    ),
    (lambda: linear_attention(Q, K, V, mask=torch.ones(2, 6)), "mask must be boolean"),
    (
        lambda: linear_attention(Q, K, V, mask=ones(2, 5)),
        "mask must be [batch key] with batch = 2, key = 6, got [2, 5]",
    ),
    (
        lambda: linear_attention(Q, K, V, mask=ones(1, 6)),
        "mask must be [batch key] with batch = 2, key = 6, got [1, 6]",
    ),
    (
        lambda: linear_attention(Q, K, V, mask=ones(2, 1, 6)),
        "mask must be [batch key] with batch = 2, key = 6, got [2, 1, 6]",
    ),
    (
        lambda: linear_attention_step(ONE[0], ONE[1][..., 1:], ONE[2]),
        "k must be [batch head n d_head]",
    ),
    (lambda: linear_attention_step(Q, K, V), "q must be [batch head"),
    (
        lambda: linear_attention_step(*ONE, STATE[..., 1:]),
        "state must be [batch head d_head d_sum] with batch = 2, head = 3",
    ),
    (lambda: linear_attention_step(*ONE, STATE[:1]), "state must be [batch head d_head d_sum]"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
