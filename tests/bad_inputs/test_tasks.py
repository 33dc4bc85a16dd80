"""Bad input to the tasks about positions: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest

from attnbook.text.tasks import latest_value, look_back

BAD = [
    (lambda: look_back(9, 0, distance=0), "distance must be a whole number of at least 1, got 0"),
    (lambda: look_back(9, 0, distance=9), "distance must lie in 1..8, got 9"),
    (
        lambda: look_back(9, 0, distance=1.5),
        "distance must be a whole number of at least 1, got 1.5",
    ),
    (lambda: look_back(9, 0, batch=0), "batch must be a whole number of at least 1, got 0"),
    (lambda: look_back(0, 0), "n must be a whole number of at least 1, got 0"),
    (lambda: look_back(9.0, 0), "n must be a whole number of at least 1, got 9.0"),
    (lambda: latest_value(0, 0), "n must be a whole number of at least 1, got 0"),
    (lambda: latest_value(9, 0, batch=-1), "batch must be a whole number of at least 1, got -1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
