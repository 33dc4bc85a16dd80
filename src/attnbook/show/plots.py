"""A common style for the book's figures."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from attnbook.show import charts

# Okabe and Ito 2008: colours that colour-blind readers can tell apart; line styles for grey print.
BLUE, ORANGE, GREEN = "#0072b2", "#e69f00", "#009e73"
PINK, SKY, RED = "#cc79a7", "#56b4e9", "#d55e00"
LINE = 14  # points from one line of text to the next
INK, FAINT = "#333333", "#d9d9d9"
# One colour for each role in the whole book; `colours.css` has these and the dark theme's.
ROLES = {
    "query": "#1c68b8",
    "key": "#a85918",
    "value": "#1e5834",
    "state": "#64062f",
    "weight": "#380067",
}


def use_style() -> None:
    """Set matplotlib's defaults to the book's: palette, plain axes, a phone's width.

    A notebook then shows each figure as SVG, with colours of its own for a dark page
    (`attnbook.show.charts`).
    """
    charts.show()
    plt.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, SKY, RED])
            + cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1))]),
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 12,
            "axes.titleweight": "bold",
            "figure.dpi": 140,
            "figure.figsize": (charts.WIDE, 3.2),
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "figure.titlesize": 12,
            "figure.titleweight": "bold",
            "font.size": charts.LEAST,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )


def label_lines(ax: Axes, names: Sequence[str], gap: float | int | None = None) -> None:
    """Write each line's name at its right end in its colour, moving names that would overlap.

    Args:
        ax: axes with one line for each name, in order; set its limits and scales first.
        names: the names.
        gap: smallest distance between two names, relative to the height of the axes; by default
            one line of text.

    Raises:
        ValueError: if the numbers of names and lines differ, a line has no end, or gap is not
            in 0..1.
    """
    lines = list(ax.get_lines())
    if isinstance(names, str):
        raise ValueError(f"names must be a list of names, got the text {names!r}")
    if len(lines) != len(names):
        raise ValueError(f"names must be one for each of {len(lines)} lines, got {len(names)}")
    if gap is None:
        high = ax.get_window_extent().height / ax.figure.dpi * 72
        gap = min(1, LINE / high)
    if not 0 <= gap <= 1:
        raise ValueError(f"gap must lie in 0..1, got {gap}")
    points = [np.asarray(line.get_xydata()) for line in lines]
    for name, line in zip(names, points, strict=True):
        if not len(line) or not np.isfinite(line[-1]).all():
            end = line[-1].tolist() if len(line) else "no point"
            raise ValueError(f"ax must have lines that end in a finite point, got {end} for {name}")
    ends = [line[-1] for line in points]
    heights = [ax.transAxes.inverted().transform(ax.transData.transform(end))[1] for end in ends]
    order = sorted(range(len(lines)), key=lambda i: heights[i])
    last = -float("inf")
    for i in order:
        last = heights[i] = max(heights[i], last + gap)
    last = max(1, min(heights)) + gap
    for i in order[::-1]:  # keep out of the title
        last = heights[i] = min(heights[i], last - gap)
    for i in order:
        ax.annotate(
            names[i],
            (ends[i][0], ends[i][1]),
            xytext=(1.02, heights[i]),
            textcoords="axes fraction",
            color=lines[i].get_color(),
            va="center",
        )


def bertviz_weights(
    attention: Sequence[Float[Tensor, "1 head query key"]],
) -> list[Float[Tensor, "1 head query key"]]:
    """Weights for bertviz's views, rounded to three decimals.

    bertviz writes every weight into the notebook with all 17 digits, although only 3 are visible.

    Args:
        attention: the weights of each layer, as `transformers` gives them.

    Returns:
        The rounded weights in float64, since 0.083 in float32 is written as 0.08299999684095383.

    Raises:
        ValueError: if a layer's weights have another shape, such as those of a batch of texts.
    """
    for layer, weights in enumerate(attention):
        came = list(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
        if not isinstance(came, list) or len(came) != 4 or came[0] != 1:
            raise ValueError(
                f"attention must hold [1 head query key] a layer, got {came} for layer {layer}"
            )
    return [weights.detach().double().round(decimals=3) for weights in attention]
