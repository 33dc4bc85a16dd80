"""What chips and the walk through heads say of arguments of a wrong type."""

from typing import Any

import pytest

from attnbook.walks import heads_step
from attnbook.web import HeadChips
from tests.helpers.head_chips import options
from tests.helpers.walks_heads import TOKENS, setting


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"steps": [0, 1.5, 2, 3, 4]}, r"steps must be 5 .* whole numbers, as maps, not \[0, 1.5"),
        ({"steps": [*"abcde"]}, r"steps must be 5 .* whole numbers, as maps, not \['a'"),
        ({"steps": [None] * 5}, r"steps must be 5 .* whole numbers, as maps, not \[None"),
        ({"scores": [1.0]}, r"scores must be numbers by one name or more, not \[1.0\]"),
    ],
)
def test_chips(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        HeadChips(**options(**changes))


@pytest.mark.parametrize("at", [0.5, True, None, -1])
def test_a_walk_through_heads(at: Any) -> None:
    attention, x = setting()
    with pytest.raises(ValueError, match=f"at must be a whole number of at least 0, got {at}"):
        heads_step(attention, x, TOKENS, at=at)
