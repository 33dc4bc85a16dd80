"""What a drawing says of a wrong argument: which one, what it must be, what came."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attnbook.show import drawing
from attnbook.show.drawing import arrow, box, brace, cells, column, dial, frame, grid, row, text
from attnbook.show.picture import Picture
from attnbook.web import Drawing, Step

bars: Callable[..., Any] = drawing.bars  # given what it must not be
BODY = column(
    row(*(cells([1.0, 2.0], name="many") for _ in range(3))),
    cells([0.5, 0.5], name="two"),
    box("one", name="one"),
)
NUMBERS = "values must be a full table of numbers, got"
KNOWN = r"a part must be one of those named \(many, two, one\), got"


def pictured(*arrows: drawing.Arrow) -> Picture:
    return Picture(BODY, *arrows)


def walked(*steps: Any, **options: Any) -> Drawing:
    return Drawing(BODY, **{"alt": "Three, two and one", "steps": steps, **options})


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: cells(None), r"values must be .*, got \[\]"),
    (lambda: cells("text"), f"{NUMBERS} 'text'"),
    (lambda: cells([[1], [1, 2]]), NUMBERS),
    (lambda: cells([1j]), NUMBERS),
    (lambda: cells(torch.zeros(2, device="meta")), NUMBERS),
    (lambda: cells([]), r"values must be \[column\] or \[row column\], got \[0\]"),
    (lambda: cells(np.zeros((1, 1, 1))), r"values must be .*, got \[1, 1, 1\]"),
    (lambda: cells([1], digits=-1), "digits must be a whole number of at least 0, got -1"),
    (lambda: cells([1], span=(1, 1)), r"span must be a smaller and a larger number, got \(1, 1\)"),
    (lambda: cells([1], "Query"), "role must be one of '', 'query', .*, got 'Query'"),
    (lambda: box("a", name="a.b"), "name must be like 'scores' .*, got 'a.b'"),
    (lambda: text("\ud83d"), "words must be Unicode text, got half a character in"),
    (lambda: text("a\ufffe"), "words must be Unicode text"),
    (lambda: bars(["a"], [0.5, 0.5]), r"values must be 1, as labels, got \[2\]"),
    (lambda: bars(["a"], [1.5]), r"values must be shares in 0..1, got \[1.5\]"),
    (lambda: bars(["a"], [float("nan")]), "values must be shares in 0..1"),
    (lambda: bars(["a" * 90], [0.5]), "width must leave room for bars beside 'aaa"),
    (lambda: dial([[0, 1]], ["a", "b"]), "labels and roles must be 1, or none, got 2 and 0"),
    (lambda: dial([[0, 1]], size=2), "size must leave room for a circle, got 2"),
    (lambda: dial([[0, 1]], ["a"], size=-4), "size must leave room for a circle, got -4"),
    (lambda: grid([]), r"rows must be rows of one length, got lengths \[\]"),
    (lambda: grid([["a"], ["a", "b"]]), r"rows must be rows of one length, got lengths \[1, 2\]"),
    (lambda: grid([["a"]], align="x"), "align must be letters l, c, r, got 'x'"),
    (lambda: brace(BODY, "x", side="left"), "side must be one of 'bottom', 'top', got 'left'"),
    (lambda: arrow("a", "b", "red"), "role must be one of '', 'query', .*, got 'red'"),
    (lambda: arrow("a", "b", side="up"), "side must be one of '', 'left', 'right', got 'up'"),
    (lambda: arrow("a", "b", weights=[2]), r"weights must be shares in 0..1, got \[2.0\]"),
    (lambda: Picture(box("w" * 60)), "body must be at most 356 wide, so that a phone shows it"),
    (lambda: Picture(frame(row(*[BODY] * 5))), "body must be at most 356 wide"),
    (lambda: pictured(arrow("one", "none")), f"{KNOWN} 'none'"),
    (lambda: pictured(arrow("one", "")), f"{KNOWN} ''"),
    (lambda: pictured(arrow("many", "two.*")), "must join one to many .*, got 3 and 2"),
    (lambda: pictured(arrow("one", "two.2")), "'two' has 2 parts, counted from 0, got 'two.2'"),
    (lambda: pictured(arrow("many", "one", weights=[1])), "weights must be 3, .*, got 1"),
    (lambda: pictured().values("one"), "name must be of a part that shows numbers, got 'one'"),
    (lambda: walked(alt="Boxes"), "alt must say what one sees, not 'Boxes'"),
    (lambda: walked(Step("x", "one"), Step("x", "three")), f"step 2: {KNOWN} 'three'"),
    (lambda: walked(Step("See [that](that).")), f"step 1: {KNOWN} 'that'"),
    (lambda: walked(window=20), r"window must be 100\.\.1000 units high, not 20"),
    (lambda: walked(name="A b"), "name must be like 'learnt-map'"),
    (lambda: walked(steps="one"), "steps must be a list of Step"),
    (lambda: walked(steps=["one"]), "steps must be a list of Step"),
]


@pytest.mark.parametrize(("call", "says"), CALLS)
def test_a_wrong_argument_is_named(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_a_step_that_is_not_there_is_refused() -> None:
    drawing = walked(Step("x", "one"), Step("y", "two"))
    drawing.step = 2
    for wrong in (0, 3):
        with pytest.raises(ValueError, match=rf"step must be 1\.\.2, not {wrong}"):
            drawing.step = wrong
