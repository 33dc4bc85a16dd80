"""Bad input to filters and draws: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from attnbook.model.config import TransformerConfig
from attnbook.model.sampling import (
    Sampling,
    draw,
    min_p,
    repetition_penalty,
    row_seeds,
    sample,
    temperature,
    top_k,
    top_p,
    typical,
)
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

NAN, INF = float("nan"), float("inf")
VOCAB = Vocabulary("abcdefgh")  # 11 tokens
LOGITS = torch.randn(2, 11)
TOKENS = torch.tensor([[3, 4, 3], [10, 0, 2]])
START = torch.full((2, 1), VOCAB.bos)
SMALL = TransformerConfig(12, 3, 20, 1, max_len=8, positions="learned")
DECODER = TransformerDecoder(VOCAB, SMALL).eval()
ROTARY = TransformerDecoder(VOCAB, replace(SMALL, positions="rotary")).eval()


def drawn(
    start: torch.Tensor = START, max_len: int = 6, logits: torch.Tensor = LOGITS, **options
) -> object:
    return sample(lambda _tokens, state: (logits, state), None, start, max_len, VOCAB, **options)


def spoilt(value: float) -> torch.Tensor:
    return LOGITS.index_fill(1, torch.tensor([7]), value)


FINITE = "logits must be floats, the highest of each row finite, got"
FILTERS = [
    lambda logits: temperature(logits, 0.5),
    lambda logits: temperature(logits, 0),
    lambda logits: top_k(logits, 3),
    lambda logits: top_p(logits, 0.5),
    lambda logits: top_p(logits, 1),
    lambda logits: min_p(logits, 0.5),
    lambda logits: typical(logits, 0.5),
    lambda logits: typical(logits, 1),
    lambda logits: repetition_penalty(logits, TOKENS, 1.2),
    lambda logits: draw(logits, torch.tensor([0.1, 0.2])),
]


@pytest.mark.parametrize("only", FILTERS)
def test_scores_that_are_none(only: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for logits, came in (
        (spoilt(NAN), "nan"),
        (spoilt(INF), "inf"),
        (torch.cat([LOGITS[:1], LOGITS[:1] - INF]), "-inf"),
        (TOKENS, "torch.int64"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"{FINITE} {came}")):
            only(logits)


BAD = [
    (lambda: temperature(LOGITS, -0.1), "t must be finite, at least 0, got -0.1"),
    (lambda: temperature(LOGITS, NAN), "t must be finite, at least 0, got nan"),
    (lambda: temperature(LOGITS, INF), "t must be finite, at least 0, got inf"),
    (lambda: temperature(torch.tensor(1.0), 1), "logits must be [... vocab], got []"),
    (lambda: temperature(LOGITS[:, :0], 1), "logits must hold at least one token, got [2, 0]"),
    (lambda: top_k(LOGITS, 0), "k must be a whole number of at least 1, got 0"),
    (lambda: top_k(LOGITS, 2.0), "k must be a whole number of at least 1, got 2.0"),
    (lambda: top_p(LOGITS, -0.1), "p must lie in 0..1, got -0.1"),
    (lambda: top_p(LOGITS, 1.01), "p must lie in 0..1, got 1.01"),
    (lambda: top_p(LOGITS, NAN), "p must lie in 0..1, got nan"),
    (lambda: min_p(LOGITS, 1.5), "p must lie in 0..1, got 1.5"),
    (lambda: typical(LOGITS, -1), "p must lie in 0..1, got -1"),
    (
        lambda: repetition_penalty(LOGITS, TOKENS, 0),
        "penalty must be finite, above 0, got 0",
    ),
    (lambda: repetition_penalty(LOGITS, TOKENS, INF), "penalty must be finite, above 0, got inf"),
    (lambda: repetition_penalty(LOGITS, TOKENS + 1, 2.0), "tokens must be token ids in 0..10"),
    (lambda: repetition_penalty(LOGITS, TOKENS / 2, 2.0), "tokens must be token ids, whole"),
    (
        lambda: repetition_penalty(LOGITS, TOKENS[:1], 2.0),
        "tokens must be [row token] with row = 2, got [1, 3]",
    ),
    (
        lambda: repetition_penalty(LOGITS, TOKENS, 2.0, TOKENS),
        "mask must be boolean, True = may attend, got torch.int64",
    ),
    (
        lambda: repetition_penalty(LOGITS, TOKENS, 2.0, TOKENS[:, 1:] > 0),
        "mask must be [row token] with row = 2, token = 3, got [2, 2]",
    ),
    (lambda: Sampling(temperature=-1.0), "temperature must be finite, at least 0, got -1.0"),
    (lambda: Sampling(top_k=-1), "top_k must be a whole number of at least 0, got -1"),
    (lambda: Sampling(top_k=None), "top_k must be a whole number of at least 0, got None"),
    (lambda: Sampling(top_p=1.2), "top_p must lie in 0..1, got 1.2"),
    (lambda: Sampling(min_p=NAN), "min_p must lie in 0..1, got nan"),
    (lambda: Sampling(typical=-0.2), "typical must lie in 0..1, got -0.2"),
    (
        lambda: Sampling(repetition_penalty=0),
        "repetition_penalty must be finite, above 0, got 0",
    ),
    (
        lambda: draw(LOGITS, torch.tensor([0.5, 1.0])),
        "numbers must be from 0 up to 1, without 1, got 1.0",
    ),
    (
        lambda: draw(LOGITS, torch.tensor([-0.5, NAN])),
        "numbers must be from 0 up to 1, without 1, got -0.5",
    ),
    (lambda: draw(LOGITS, torch.tensor([0.5])), "numbers must be [row] with row = 2, got [1]"),
    (lambda: row_seeds(-1, 2), "seed must be a whole number of at least 0, got -1"),
    (lambda: row_seeds(0.5, 2), "seed must be a whole number of at least 0, got 0.5"),
    (lambda: row_seeds("7", 2), "seed must be a whole number of at least 0, got '7'"),
    (lambda: row_seeds([1, 2, 3], 2), "seed must be [row] with row = 2, got [3]"),
    (lambda: row_seeds([1, -2], 2), "seed must be a whole number of at least 0, got -2"),
    (lambda: row_seeds([1, 0.5], 2), "seed must be a whole number of at least 0, got 1.0"),
    (lambda: drawn(max_len=0), "max_len must be a whole number of at least 1, got 0"),
    (lambda: drawn(n=0), "n must be a whole number of at least 1, got 0"),
    (lambda: drawn(START[:, :0]), "start must hold at least one token, got [2, 0]"),
    (lambda: drawn(START + 10), "start must be token ids in 0..10, got 11"),
    (lambda: drawn(seed=[1, 2, 3], n=2), "seed must be [row] with row = 4, got [3]"),
    (lambda: drawn(stop=[[]]), "stop must hold sequences of ids in 0..10, got []"),
    (lambda: drawn(stop=["ab"]), "stop must hold sequences of ids in 0..10, got 'ab'"),
    (lambda: drawn(stop=[3, 4]), "stop must hold sequences of ids in 0..10, got 3"),
    (lambda: drawn(stop=[[3, 11]]), "stop must hold sequences of ids in 0..10, got [3, 11]"),
    (
        lambda: drawn(logits=LOGITS[:, 1:]),
        "logits must be [row vocab] with row = 2, vocab = 11, got [2, 10]",
    ),
    (
        lambda: drawn(logits=LOGITS[:1]),
        "logits must be [row vocab] with row = 2, vocab = 11, got [1, 11]",
    ),
    (lambda: drawn(logits=spoilt(NAN)), "logits must be numbers, got NaN after 0 tokens"),
    (lambda: drawn(logits=spoilt(INF)), "logits must be numbers, got NaN after 0 tokens"),
    (lambda: drawn(logits=LOGITS - INF), "logits must be numbers, got NaN after 0 tokens"),
    (lambda: DECODER.sample(TOKENS[:, :0], 3), "prompts must hold at least one token, got [2, 0]"),
    (lambda: DECODER.sample(TOKENS.flip(1) - 0, 0), "max_len must be a whole number of at least 1"),
    (lambda: DECODER.sample(TOKENS[:, :2], 3), "prompts must have their padding on the left"),
    (
        lambda: DECODER.sample(TOKENS, 3, mask=torch.tensor([[True] * 3, [True, True, False]])),
        "prompts must have their padding on the left, got some at the end",
    ),
    (
        lambda: DECODER.sample(TOKENS, 3, mask=TOKENS[:1] > 0),
        "mask must be [batch token] with batch = 2, token = 3, got [1, 3]",
    ),
    (lambda: DECODER.sample(TOKENS, 3, mask=TOKENS), "mask must be boolean"),
    (
        lambda: DECODER.sample(TOKENS, 7),
        "prompts and max_len must fit into 8 learned positions, got 3 + 7 tokens, of which the",
    ),
    (
        lambda: DECODER.generate(TOKENS.repeat(1, 4), 2),
        "prompts and max_len must fit into 8 learned positions, got 12 + 2 tokens, of which the",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_what_is_learned_alone_has_an_end() -> None:
    assert ROTARY.sample(TOKENS.repeat(1, 4), 2).tokens.shape[1] <= 2
