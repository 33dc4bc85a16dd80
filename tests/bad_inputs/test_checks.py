"""What the checks themselves say."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.checks import (
    check_choice,
    check_ids,
    check_mask,
    check_range,
    check_shapes,
    check_whole,
)

T, NAN, INF = torch.zeros, float("nan"), float("inf")

BAD = [
    (lambda: check_shapes(q=(T(2, 3), "batch query d")), "q must be [batch query d], got [2, 3]"),
    (
        lambda: check_shapes(q=(T(2, 3), "batch d"), d=4),
        "q must be [batch d] with d = 4, got [2, 3]",
    ),
    (
        lambda: check_shapes(q=(T(2, 3), "batch d"), k=(T(5, 4), "key d")),
        "k must be [key d] with d = 3, got [5, 4]",
    ),
    (lambda: check_shapes(q=(T(2, 3), "n n")), "q must be [n n], got [2, 3]"),
    (
        lambda: check_shapes(m=(T(3, 4), "#batch key"), batch=2),
        "m must be [#batch key] with batch = 2, got [3, 4]",
    ),
    (lambda: check_shapes(x=(T(2, 3), "... d"), d=4), "x must be [... d] with d = 4, got [2, 3]"),
    (lambda: check_shapes(x=(T(()), "... d")), "x must be [... d], got []"),
    (
        lambda: check_shapes(x=(T(2, 3, 5), "... d"), m=(T(4, 5), "#... d")),
        "m must be [#... d] with ... = [2, 3], d = 5, got [4, 5]",
    ),
    (
        lambda: check_shapes(x=(T(3, 5), "... d"), m=(T(2, 3, 5), "#... d")),
        "m must be [#... d] with ... = [3], d = 5, got [2, 3, 5]",
    ),
    (
        lambda: check_shapes(x=(T(3, 5), "... d"), m=(T(1, 3, 5), "#... d")),
        "m must be [#... d] with ... = [3], d = 5, got [1, 3, 5]",
    ),
    (
        lambda: check_shapes(x=(T(3, 5), "... d"), m=(T(3, 1), "#... d")),
        "m must be [#... d] with ... = [3], d = 5, got [3, 1]",
    ),
    (
        lambda: check_mask(T(2, 3), mask=(T(2, 3), "batch key")),
        "mask must be boolean, True = may attend, got torch.float32",
    ),
    (
        lambda: check_mask(T(2, 3).bool(), mask=(T(2, 3).bool(), "batch key"), key=4),
        "mask must be [batch key] with key = 4",
    ),
    (lambda: check_whole(1, d=0), "d must be a whole number of at least 1, got 0"),
    (lambda: check_whole(0, a=3, b=-1), "b must be a whole number of at least 0, got -1"),
    (lambda: check_whole(0, d=1.5), "d must be a whole number of at least 0, got 1.5"),
    (lambda: check_whole(0, d=2.0), "d must be a whole number of at least 0, got 2.0"),
    (lambda: check_whole(0, d=NAN), "d must be a whole number of at least 0, got nan"),
    (lambda: check_whole(0, d=True), "d must be a whole number of at least 0, got True"),
    (lambda: check_whole(0, d="2"), "d must be a whole number of at least 0, got '2'"),
    (lambda: check_whole(0, d=None), "d must be a whole number of at least 0, got None"),
    (lambda: check_range(0, 1, share=1.5), "share must lie in 0..1, got 1.5"),
    (lambda: check_range(0, 1, share=NAN), "share must lie in 0..1, got nan"),
    (lambda: check_range(0, INF, eps=-1e-9), "eps must be finite, at least 0, got -1e-09"),
    (lambda: check_range(0, INF, eps=INF), "eps must be finite, at least 0, got inf"),
    (lambda: check_range(0, INF, eps=NAN), "eps must be finite, at least 0, got nan"),
    (
        lambda: check_choice(("left", "right"), side="both"),
        "side must be one of 'left', 'right', got 'both'",
    ),
    (
        lambda: check_choice(("left", "right"), side=None),
        "side must be one of 'left', 'right', got None",
    ),
    (
        lambda: check_ids("tokens", torch.tensor([[0, 5]]), 5),
        "tokens must be token ids in 0..4, got 5",
    ),
    (
        lambda: check_ids("tokens", torch.tensor([[0, -1]]), 5),
        "tokens must be token ids in 0..4, got -1",
    ),
    (
        lambda: check_ids("tokens", T(2, 3), 5),
        "tokens must be token ids, whole numbers, got torch.float32",
    ),
    (
        lambda: check_ids("tokens", T(2, 3).bool()),
        "tokens must be token ids, whole numbers, got torch.bool",
    ),
    (lambda: check_ids("tokens", T(3).long(), 5), "tokens must be [batch token], got [3]"),
    (
        lambda: check_ids("tokens", T(2, 0).long(), 5),
        "tokens must hold at least one token, got [2, 0]",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
