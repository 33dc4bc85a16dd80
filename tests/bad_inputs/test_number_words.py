"""Bad input to number words: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import numpy as np
import pytest

from attnbook.text.number_words import MAX_DIGITS, Numbers, number_pair, split_german

TOO_LARGE = 10**MAX_DIGITS

BAD = [
    (lambda: number_pair(-1), "number must be a whole number of at least 0, got -1"),
    (lambda: number_pair(TOO_LARGE), "number must lie in 0..999999999999, got 1000000000000"),
    (lambda: number_pair(1.5), "number must be a whole number of at least 0, got 1.5"),
    (lambda: number_pair(3.0), "number must be a whole number of at least 0, got 3.0"),
    (lambda: number_pair(float("nan")), "number must be a whole number of at least 0, got nan"),
    (lambda: number_pair("42"), "number must be a whole number of at least 0, got '42'"),
    (
        lambda: split_german("zweifel"),
        "text must consist of German number morphemes, got 'zweifel'",
    ),
    (lambda: Numbers(0), "max_digits must be a whole number of at least 1, got 0"),
    (lambda: Numbers(13), "max_digits must lie in 1..12, got 13"),
    (lambda: Numbers(2.0), "max_digits must be a whole number of at least 1, got 2.0"),
    (lambda: Numbers(held_out=-1), "held_out must be a whole number of at least 0, got -1"),
    (lambda: Numbers(held_out=1.5), "held_out must be a whole number of at least 0, got 1.5"),
    (lambda: Numbers(extra=[7, -1]), "number must be a whole number of at least 0, got -1"),
    (lambda: Numbers(extra=[TOO_LARGE]), "number must lie in 0..999999999999"),
    (
        lambda: Numbers(1).batch(0, batch_size=0),
        "batch_size must be a whole number of at least 1, got 0",
    ),
    (
        lambda: Numbers(1).batch(0, batch_size=2.5),
        "batch_size must be a whole number of at least 1, got 2.5",
    ),
    (lambda: Numbers(1).encode([]), "at least one sequence, got none"),
    (lambda: Numbers(1).encode([3, -4]), "number must be a whole number of at least 0, got -4"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_numbers_of_numpy_are_numbers() -> None:
    for number in (0, 42, 3_000_001, 2_000_000):
        assert number_pair(np.int64(number)) == number_pair(number)
