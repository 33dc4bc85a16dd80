"""Parts of drawings, and ways to write numbers, that several walks share."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from attnbook.show.drawing import (
    SMALL,
    Box,
    Number,
    Part,
    Stroke,
    Words,
    cells,
    grid,
    row,
    text,
)

SHOWN, TALL = 6, 44  # numbers shown of a vector; units: the height of a weight of 1


class Likely(NamedTuple):
    """The likeliest words, best first."""

    names: list[str]
    rows: Tensor  # [word d_model] of the output matrix
    logits: Tensor
    shares: Tensor


def written_sum(numbers: Sequence[float]) -> str:
    """A sum as text, such as 0.12 − 0.05 + 0.30."""
    first, *rest = (f"{x:z.2f}" for x in numbers)
    signs = [f" − {x[1:]}" if x.startswith("-") else f" + {x}" for x in rest]
    return first.replace("-", "−") + "".join(signs)


def brief(x: Tensor, digits: int = 2) -> str:
    """A number with `digits` decimals."""
    return f"{float(x):z.{digits}f}".replace("-", "−")


def small(words: str, beside: str) -> Part:
    """A label in small type, which appears with the part named `beside`."""
    return text(words, size=SMALL, beside=beside)


def strip(name: str, vector: Tensor, role: str = "state", shown: int = SHOWN) -> Part:
    """The first numbers of a vector side by side, and an ellipsis for the others."""
    return row(cells(vector[:shown], role, name=name, digits=2, width=36), "…", gap=4)


def towers(
    name: str, table: Tensor, role: str, shown: int, *, width: int = 24, height: int = 8
) -> list[Part]:
    """The first numbers of each vector `[d]` of a table as a column, all on one scale."""
    first = table[:, :shown]
    high = float(first.abs().max()) or 1.0
    look = {"down": True, "span": (-high, high), "width": width, "height": height}
    return [cells(x, role, name=name, **look) for x in first]


def scored(likely: Likely, name: str, digits: int) -> Part:
    """The likeliest words, their rows of the output matrix, and their logits."""
    rows = [
        [
            word,
            cells(vector[:4], name=name, digits=2, width=36),
            cells(logit[None], "weight", name="logits", digits=digits, width=40),
        ]
        for word, vector, logit in zip(likely.names, likely.rows, likely.logits, strict=True)
    ]
    return grid(rows, align="rl", gap=(10, 3))


def products(weights: Tensor, values: Tensor) -> str:
    """A weighted sum by its two largest weights, such as `0.93 · 0.41 + 0.06 · 0.12 + …`."""
    order = weights.argsort(descending=True)[:2]
    terms = [f"{float(weights[j]):.2f} · {float(values[j]):z.2f}".replace("-", "−") for j in order]
    return " + ".join(terms) + " + …" * (len(weights) > 2)


def upright(share: Tensor, width: Number, name: str) -> Part:
    """A share in 0..1 as an upright bar, with its number above.

    The bar is a zigzag line: a box would give away its height before it appears.
    """
    left, foot, tall = width / 2 - 8, 16 + TALL, TALL * float(share)
    turns = max(2, round(tall / 2.5) + 1)
    line = [
        (left + 16 * ((n + side) % 2), foot - 1 - max(0.0, tall - 2) * n / (turns - 1))
        for n in range(turns)
        for side in (0, 1)
    ]
    marks = (
        Box(left - 2, 16, 20, TALL, "cell", 0),
        Stroke(tuple(line), "line", width=3 if tall > 3 else 1),
        Words(width / 2, 7, f"{float(share):.2f}", SMALL),
    )
    return Part(width, foot, marks, name, "weight", share[None].double().numpy())
