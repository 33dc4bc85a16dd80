"""Bad input to masks: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.masks import causal_mask, masked_softmax, padding_mask

TOKENS = torch.tensor([[4, 5, 0], [6, 0, 0]])
SCORES = torch.randn(2, 3, 5)

BAD = [
    (lambda: padding_mask(TOKENS[0], 0), "tokens must be [batch token], got [3]"),
    (lambda: padding_mask(TOKENS[None], 0), "tokens must be [batch token], got [1, 2, 3]"),
    (
        lambda: padding_mask(TOKENS.float(), 0),
        "tokens must be token ids, whole numbers, got torch.float32",
    ),
    (
        lambda: padding_mask(TOKENS > 0, 0),
        "tokens must be token ids, whole numbers, got torch.bool",
    ),
    (lambda: padding_mask(TOKENS[:0], 0), "tokens must hold at least one token, got [0, 3]"),
    (lambda: padding_mask(TOKENS, -1), "pad must be a whole number of at least 0, got -1"),
    (lambda: padding_mask(TOKENS, None), "pad must be a whole number of at least 0, got None"),
    (lambda: causal_mask(-1), "n must be a whole number of at least 0, got -1"),
    (lambda: causal_mask(2.5), "n must be a whole number of at least 0, got 2.5"),
    (lambda: causal_mask(3, past=-2), "past must be a whole number of at least 0, got -2"),
    (
        lambda: masked_softmax(SCORES, torch.ones(5)),
        "mask must be boolean, True = may attend, got torch.float32",
    ),
    (
        lambda: masked_softmax(SCORES, TOKENS.new_ones(5)),
        "mask must be boolean, True = may attend, got torch.int64",
    ),
    (
        lambda: masked_softmax(SCORES, torch.ones(4).bool()),
        "mask must be [#... key] with ... = [2, 3], key = 5, got [4]",
    ),
    (
        lambda: masked_softmax(SCORES, torch.ones(2, 3, 1).bool()),
        "mask must be [#... key] with ... = [2, 3], key = 5, got [2, 3, 1]",
    ),
    (
        lambda: masked_softmax(SCORES, torch.ones(2, 5).bool()),
        "mask must be [#... key] with ... = [2, 3], key = 5, got [2, 5]",
    ),
    (
        lambda: masked_softmax(SCORES[0], torch.ones(2, 3, 5).bool()),
        "mask must be [#... key] with ... = [3], key = 5, got [2, 3, 5]",
    ),
    (
        lambda: masked_softmax(SCORES[:1], torch.ones(4, 1, 5).bool()),
        "mask must be [#... key] with ... = [1, 3], key = 5, got [4, 1, 5]",
    ),
    (
        lambda: masked_softmax(torch.tensor(1.0), torch.tensor(True)),
        "scores must be [... key], got []",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
