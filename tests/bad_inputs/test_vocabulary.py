"""Bad input to vocabulary and batches: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.text.vocabulary import Vocabulary, pad_batch

VOCAB, NAN = Vocabulary("ab"), float("nan")  # ids 0 .. 4

BAD = [
    (lambda: Vocabulary(["a", "b", "a"]), "words must be distinct, got twice: ['a']"),
    (lambda: Vocabulary(["<s>", "<s>"]), "words must be distinct, got twice: ['<s>']"),
    (lambda: Vocabulary(["a", 3]), "words must be strings, got 3"),
    (lambda: Vocabulary(["a"], pad=0), "words must be strings, got 0"),
    (lambda: VOCAB.decode([3, -1]), "ids must be token ids in 0..4, got -1"),
    (lambda: VOCAB.decode([3, 5]), "ids must be token ids in 0..4, got 5"),
    (lambda: VOCAB.decode([VOCAB.eos, 99]), "ids must be token ids in 0..4, got 99"),
    (lambda: VOCAB.decode([3.7]), "ids must be token ids, whole numbers, got torch.float32"),
    (
        lambda: VOCAB.decode(torch.tensor([3.0])),
        "ids must be token ids, whole numbers, got torch.float32",
    ),
    (lambda: VOCAB.decode(torch.tensor([[3, 4]])), "ids must be [token], got [1, 2]"),
    (lambda: VOCAB.decode([[3, 4]]), "ids must be [token], got [1, 2]"),
    (lambda: pad_batch([], 0), "sequences must hold at least one sequence, got none"),
    (lambda: pad_batch([[1.7]], 0), "sequences and pad must be token ids, whole numbers, got 1.7"),
    (lambda: pad_batch([[1.0]], 0), "sequences and pad must be token ids, whole numbers, got 1.0"),
    (
        lambda: pad_batch([[1, NAN]], 0),
        "sequences and pad must be token ids, whole numbers, got nan",
    ),
    (lambda: pad_batch([["a"]], 0), "sequences and pad must be token ids, whole numbers, got 'a'"),
    (
        lambda: pad_batch([[3], [4, 5]], 0.5),
        "sequences and pad must be token ids, whole numbers, got 0.5",
    ),
    (
        lambda: pad_batch([[3], [4, 5]], None),
        "sequences and pad must be token ids, whole numbers, got None",
    ),
    (lambda: pad_batch([[3]], 0, side="top"), "side must be one of 'left', 'right', got 'top'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("words", [["c"], ["a", "c"], ["A"], [""]])
def test_an_unknown_word_is_named(words: list[str]) -> None:
    with pytest.raises(KeyError, match=f"word {words[-1]!r} is not among the 5 tokens"):
        VOCAB.encode(words)
