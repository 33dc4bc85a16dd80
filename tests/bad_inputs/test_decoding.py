"""Bad input to decoding: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.decoding import beam_search, select_rows
from attnbook.text.vocabulary import Vocabulary

NAN, INF = float("nan"), float("inf")
VOCAB = Vocabulary("abcdefgh")  # 11 tokens, 9 of them words and the end
ONE = Vocabulary(["a", "b", "<end>"], pad="<end>", bos="<end>", eos="<end>")
START = torch.full((2, 1), VOCAB.bos)
LOGITS = torch.randn(2, 11)


def search(
    start: torch.Tensor = START, max_len: int = 6, logits: torch.Tensor = LOGITS, **options
) -> object:
    return beam_search(
        lambda _tokens, state: (logits, state), None, start, max_len, VOCAB, **options
    )


def spoilt(value: float) -> torch.Tensor:
    return LOGITS.index_fill(1, torch.tensor([7]), value)


BAD = [
    (lambda: search(beam=0), "beam must be a whole number of at least 1, got 0"),
    (lambda: search(beam=1.5), "beam must be a whole number of at least 1, got 1.5"),
    (lambda: search(beam=10), "beam must be at most the 9 words, got 10"),
    (
        lambda: beam_search(lambda t, s: (LOGITS[:, :3], s), None, START, 6, ONE, beam=4),
        "beam must be at most the 3 words, got 4",
    ),
    (lambda: search(max_len=0), "max_len must be a whole number of at least 1, got 0"),
    (lambda: search(max_len=-3), "max_len must be a whole number of at least 1, got -3"),
    (lambda: search(length_penalty=-1.0), "length_penalty must be finite, at least 0, got -1.0"),
    (lambda: search(length_penalty=NAN), "length_penalty must be finite, at least 0, got nan"),
    (lambda: search(length_penalty=INF), "length_penalty must be finite, at least 0, got inf"),
    (lambda: search(START[:0]), "start must hold at least one token, got [0, 1]"),
    (lambda: search(START[:, :0]), "start must hold at least one token, got [2, 0]"),
    (lambda: search(START[0]), "start must be [batch token], got [1]"),
    (lambda: search(START.float()), "start must be token ids, whole numbers, got torch.float32"),
    (lambda: search(START + 10), "start must be token ids in 0..10, got 11"),
    (
        lambda: search(logits=LOGITS[:, 1:]),
        "logits must be [row vocab] with row = 2, vocab = 11, got [2, 10]",
    ),
    (
        lambda: search(logits=LOGITS[:1]),
        "logits must be [row vocab] with row = 2, vocab = 11, got [1, 11]",
    ),
    (
        lambda: search(logits=LOGITS[:, None]),
        "logits must be [row vocab] with row = 2, vocab = 11, got [2, 1, 11]",
    ),
    (lambda: search(logits=spoilt(NAN)), "logits must be numbers, got NaN after 0 tokens"),
    (lambda: search(logits=spoilt(INF)), "logits must be numbers, got NaN after 0 tokens"),
    (lambda: search(logits=LOGITS - INF), "logits must be numbers, got NaN after 0 tokens"),
    (
        lambda: select_rows((LOGITS, 3), torch.tensor([0])),
        "state must hold tensors, in tuples or mappings, got 3",
    ),
    (
        lambda: select_rows("state", torch.tensor([0])),
        "state must hold tensors, in tuples or mappings, got 'state'",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
