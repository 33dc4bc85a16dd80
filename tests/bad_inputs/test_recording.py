"""Bad input to recording: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

from attnbook.model.attention import MultiHeadAttention
from attnbook.model.recording import recorded

X = torch.randn(2, 5, 24)


class NoWeights(nn.Module):
    """An attention that keeps its weights for itself, as a fused one does."""

    def __init__(self, out: object):
        super().__init__()
        self.out = out

    def forward(self) -> object:
        return self.out


def record(model: nn.Module, *others: type[nn.Module], calls: tuple = ()) -> None:
    with recorded(model, *others):
        for inputs in calls:
            model(*inputs)


def twice() -> None:
    attention = MultiHeadAttention(24, 4)
    with recorded(attention):
        record(attention)


BAD = [
    (lambda: record(nn.Linear(3, 4)), "model must hold attention to record, got Linear"),
    (
        lambda: record(MultiHeadAttention(24, 4).out),
        "model must hold attention to record, got Linear",
    ),
    (
        lambda: record(MultiHeadAttention(24, 4), calls=((X,), (X[:1],))),
        "calls recorded together must have one batch, got [2, 4] and [1, 4] at ",
    ),
    (
        lambda: record(NoWeights((X, None)), NoWeights, calls=((),)),
        "others must give (out, weights), got no weights at ",
    ),
    (
        lambda: record(NoWeights((X,)), NoWeights, calls=((),)),
        "others must give (out, weights), got no weights at ",
    ),
    (
        lambda: record(NoWeights(X), NoWeights, calls=((),)),
        "others must give (out, weights), got no weights at ",
    ),
    (lambda: twice(), "model must not be in another recorded block already"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
