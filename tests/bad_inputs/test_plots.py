"""What drawing says of a wrong argument: which one, what it must be, what came."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch

from attnbook.show import plots
from attnbook.show.plots import label_lines

SIZES = r"attention must hold \[1 head query key\] a layer, got"
bertviz_weights: Callable[[Any], Any] = plots.bertviz_weights  # given what it must not be
LAYER = torch.full((1, 2, 3, 3), 1 / 3)


def label(*ends: float, **options: Any) -> None:
    """Names two lines, of which the second ends there."""
    figure, ax = plt.subplots()
    ax.plot([0, 1], [1, 2])
    ax.plot(range(len(ends)), ends)
    try:
        label_lines(ax, **{"names": ["rise", "fall"], **options})
    finally:
        plt.close(figure)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: label(2, 1, names="ab"), "names must be a list of names, got the text 'ab'"),
    (lambda: label(2, 1, names=["rise"]), "names must be one for each of 2 lines, got 1"),
    (lambda: label(2, 1, names=[]), "names must be one for each of 2 lines, got 0"),
    (lambda: label(2, 1, gap=-0.1), "gap must lie in 0..1, got -0.1"),
    (lambda: label(2, 1, gap=float("nan")), "gap must lie in 0..1, got nan"),
    (lambda: label(2, 1, gap=6), "gap must lie in 0..1, got 6"),
    (lambda: label(), "ax must have lines that end in a finite point, got no point for fall"),
    (lambda: label(2, float("nan")), r"a finite point, got \[1.0, nan\] for fall"),
    (lambda: label(2, float("inf")), r"a finite point, got \[1.0, inf\] for fall"),
    (lambda: bertviz_weights(LAYER), rf"{SIZES} \[2, 3, 3\] for layer 0"),
    (lambda: bertviz_weights([LAYER, LAYER[0]]), rf"{SIZES} \[2, 3, 3\] for layer 1"),
    (lambda: bertviz_weights([LAYER.expand(4, 2, 3, 3)]), rf"{SIZES} \[4, 2, 3, 3\] for layer 0"),
    (lambda: bertviz_weights([LAYER.tolist()]), f"{SIZES} list for layer 0"),
    (lambda: bertviz_weights([None]), f"{SIZES} NoneType for layer 0"),
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[said[:60] for _, said in CALLS])
def test_the_error_says_what_is_wrong(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_what_is_right_is_drawn():
    label(2, 1, gap=0)
    assert bertviz_weights([]) == []
    assert bertviz_weights([LAYER.half()])[0].dtype == torch.float64
