"""Drawings made of parts with automatic layout: text, boxes, cells, bars, dials, grids, arrows.

    scores = cells([2.1, -0.3, 0.8], "weight", name="scores", digits=1)
    picture = Picture(column(box("query", "query", name="q"), scores), arrow("q", "scores"))

A part knows its size; `row`, `column`, `grid`, `frame` and `brace` combine parts. Arrows, steps and
captions refer to a part by its `name`: "scores" is every part of that name, "scores.2" the third of
them (or the third cell, if there is one such part), and "scores.*" each of them. A `role` gives a
part the colour that this role has in the whole book.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attnbook.checks import check_choice, check_whole
from attnbook.show.lettering import HEAVY, clean, text_width, written

ROLES = ("query", "key", "value", "state", "weight")
WIDTH = 360  # units: a phone's column in pixels, so that text of size 11 is legible
BIG, TEXT, SMALL = 15, 13, 11  # sizes of text
FAINTEST, DEEPEST = 0.04, 0.48  # opacity of a cell's colour; text is legible on both
Number = float | int
NAME = re.compile(r"[A-Za-z][\w-]*")


@dataclass(frozen=True)
class Box:
    """A rectangle; `shade` is the opacity of its colour, None for an outline without a fill."""

    x: Number
    y: Number
    width: Number
    height: Number
    look: str
    shade: Number | None = None

    def moved(self, x: Number, y: Number) -> "Box":
        return replace(self, x=self.x + x, y=self.y + y)


@dataclass(frozen=True)
class Words:
    """A line of text, vertically centred at y."""

    x: Number
    y: Number
    text: str
    size: int
    look: str = ""
    anchor: str = "middle"

    def moved(self, x: Number, y: Number) -> "Words":
        return replace(self, x=self.x + x, y=self.y + y)


@dataclass(frozen=True)
class Stroke:
    """A line through points, or a cubic curve (first point, then three for each segment)."""

    points: tuple[tuple[Number, Number], ...]
    look: str
    curved: bool = False
    width: Number = 1.5

    def moved(self, x: Number, y: Number) -> "Stroke":
        return replace(self, points=tuple((a + x, b + y) for a, b in self.points))


Mark = Box | Words | Stroke


@dataclass(frozen=True)
class Part:
    """Marks and smaller parts in a rectangle.

    Attributes:
        width, height: in units; a drawing is `WIDTH` wide.
        inside: marks, and parts with the position of their upper left corner.
        name, role: see the module's docstring.
        values: the numbers that the part shows, if any.
        cell: whether the part is a cell of the part that contains it.
        beside: the name of another part: this one appears and lights up with it, as a label does.
    """

    width: Number
    height: Number
    inside: tuple[Mark | tuple[Number, Number, "Part"], ...]
    name: str = ""
    role: str = ""
    values: np.ndarray | None = None
    cell: bool = False
    beside: str = ""

    def __post_init__(self) -> None:
        if self.name and not NAME.fullmatch(self.name):
            raise ValueError(f"name must be like 'scores' (a-z, 0-9, - and _), got {self.name!r}")
        check_choice(("", *ROLES), role=self.role)


@dataclass(frozen=True)
class Arrow:
    """An arrow, made by `arrow`."""

    start: str
    end: str
    role: str
    weights: np.ndarray | None
    side: str
    drawn: bool


def text(words: str, role: str = "", *, name: str = "", size: int = TEXT, beside: str = "") -> Part:
    """Text without a box. It appears and lights up with the part named `beside`, as a label does.

    A line break begins a new line.
    """
    lines = clean(words).split("\n")
    line = 1.25 * size
    look = "strong" if role or size == BIG else ""
    width = max(text_width(each, size) for each in lines)
    inside = [Words(width / 2, (n + 0.5) * line, each, size, look) for n, each in enumerate(lines)]
    return Part(width, line * len(lines), tuple(inside), name, role, beside=beside)


def heading(words: str) -> Part:
    """The heading of a drawing, in as many lines as it needs."""
    width, line, lines = WIDTH - 4, 1.3 * BIG, [""]
    for word in clean(words).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and HEAVY * text_width(longer, BIG) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    marks = [
        Words(width / 2, (n + 0.5) * line, each, BIG, "heading") for n, each in enumerate(lines)
    ]
    return Part(width, line * len(lines), tuple(marks))


def box(words: str, role: str = "", *, name: str = "", width: Number = 0, size: int = TEXT) -> Part:
    """Text in a box of at least `width`."""
    inner = text(words, size=size)
    width, height = max(width, inner.width + 0.7 * size), inner.height + 8
    at = ((width - inner.width) / 2, 4, inner)
    inside = (Box(0, 0, width, height, "box", DEEPEST / 2 if role else FAINTEST), at)
    return Part(width, height, inside, name, role)


def cells(
    values: Any,
    role: str = "",
    *,
    name: str = "",
    digits: int | None = None,
    down: bool = False,
    span: tuple[Number, Number] | None = None,
    width: Number | None = None,
    height: Number | None = None,
) -> Part:
    """Numbers as shaded cells: the larger the number, the deeper the colour of the role.

    Args:
        values: `[column]` or `[row column]`; NaN is crossed out, like a masked score.
        role, name: see the module's docstring.
        digits: decimals of the number in each cell. None: colour without a number.
        down: whether a list of values runs downwards.
        span: the values of the faintest and the deepest colour. None: 0 and the largest value or,
            if some are negative, minus and plus the largest absolute value.
        width, height: of one cell. None: 12, or the room that its number needs.

    Raises:
        ValueError: if values are not a list or a table of numbers, or span is not increasing.
    """
    given = numbers(values)
    table = given if given.ndim == 2 else given[:, None] if down else given[None]
    if digits is not None:
        check_whole(0, digits=digits)
    known = table[np.isfinite(table)]
    high = float(np.abs(known).max(initial=0)) or 1.0
    low, high = (-high if (known < 0).any() else 0.0, high) if span is None else span
    if not low < high:
        raise ValueError(f"span must be a smaller and a larger number, got {span}")
    texts = [[written(x, digits) for x in line] for line in table]
    needed = max(text_width(each, SMALL) for line in texts for each in line) + 7
    width = (12 if digits is None else max(needed, 20)) if width is None else width
    height = (12 if digits is None else 20) if height is None else height
    inside = []
    for i, j in np.ndindex(table.shape):
        shade = np.clip((table[i, j] - low) / (high - low), 0, 1)
        cell = _cell(float(shade), texts[i][j], width, height)
        inside.append((j * width, i * height, cell))
    rows, columns = table.shape
    return Part(columns * width, rows * height, tuple(inside), name, role, given)


def _cell(share: float, words: str, width: Number, height: Number) -> Part:
    hidden = np.isnan(share)
    shade = 0 if hidden else FAINTEST + (DEEPEST - FAINTEST) * share
    marks: list[Mark] = [Box(0, 0, width, height, "cell", shade)]
    if hidden:
        marks.append(Stroke(((2, height - 2), (width - 2, 2)), "crossed", width=1))
    elif words:
        marks.append(Words(width / 2, height / 2, words, SMALL))
    return Part(width, height, tuple(marks), cell=True)


def bars(
    labels: Sequence[str],
    values: Any,
    role: str = "weight",
    *,
    name: str = "",
    digits: int = 2,
    width: Number = 300,
) -> Part:
    """Shares 0..1 as bars, one below the other; the longest fills the width."""
    shares = numbers(values, share=True)
    if [len(labels)] != [*shares.shape]:
        raise ValueError(f"values must be {len(labels)}, as labels, got {list(shares.shape)}")
    names = [clean(label) for label in labels]
    left = max(text_width(label, TEXT) for label in names) + 8
    longest = width - left - text_width(written(1.0, digits), SMALL) - 6
    if longest < 20:
        raise ValueError(f"width must leave room for bars beside {max(names, key=len)!r}")
    inside = []
    for n, (label, x) in enumerate(zip(names, shares, strict=True)):
        length = max(1.0, longest * float(x) / float(shares.max() or 1))
        marks = (
            Words(left - 6, 11, label, TEXT, anchor="end"),
            Box(left, 3, length, 16, "cell", DEEPEST),
            Words(left + length + 5, 11, written(x, digits), SMALL, anchor="start"),
        )
        inside.append((0, 22 * n, Part(width, 22, marks, cell=True)))
    return Part(width, 22 * len(names), tuple(inside), name, role, shares)


def dial(
    hands: Any,
    labels: Sequence[str] = (),
    roles: Sequence[str] = (),
    *,
    name: str = "",
    size: Number = 30,
) -> Part:
    """A circle with hands, like a clock; if there are two, the angle between them is drawn, too.

    Args:
        hands: `[hand 2]` the tip of each hand, to the right and upwards; the rim is at 1.
        labels, roles: a word beyond the tip of each hand, and its role; both may be empty.
        name: see the module's docstring; "name.0" is the first hand.
        size: width of the dial with its labels.

    Raises:
        ValueError: if hands have another shape or are longer than 1, labels or roles are not as
            many as hands, or the labels leave no room for a circle.
    """
    table = numbers(hands, "hands")
    if table.ndim != 2 or table.shape[1] != 2 or not (np.hypot(*table.T) < 1 + 1e-6).all():
        raise ValueError(f"hands must be [hand 2] of length 1 at most, got {table.tolist()}")
    count, *came = map(len, (table, labels, roles))
    if {*came} - {0, count}:
        raise ValueError(f"labels and roles must be {count}, or none, got {came[0]} and {came[1]}")
    middle = size / 2
    rim = 0.64 * middle if labels else middle - 1
    if not rim > 0:
        raise ValueError(f"size must leave room for a circle, got {size}")
    inside: list[Any] = [Stroke(_arc(middle, rim, 0, 2 * np.pi), "brace", curved=True, width=1)]
    if len(table) == 2:
        one, other = table @ [1, 1j]
        curve = _arc(middle, 0.3 * rim, np.angle(one), np.angle(other * one.conjugate()))
        inside.append(Stroke(curve, "brace", curved=True, width=1.25))
    for n, (x, y) in enumerate(table):
        long, role = float(np.hypot(x, y)) or 1.0, roles[n] if roles else ""
        tip = middle + rim * x, middle - rim * y
        marks: list[Mark] = [Stroke(((middle, middle), tip), "line", width=2)]
        if rim > 20 and (x or y):
            a, b = 6 * x / long, 6 * y / long
            sides = [(tip[0] - a - s * b, tip[1] + b - s * a) for s in (-0.6, 0.6)]
            marks.append(Stroke((sides[0], tip, sides[1]), "line", width=2))
        if labels:
            word = clean(labels[n])
            out = rim + (8 + text_width(word, SMALL) / 2 * abs(x) / long) / long  # beyond the tip
            marks.append(Words(middle + out * x, middle - out * y, word, SMALL, "strong"))
        inside.append((0, 0, Part(size, size, tuple(marks), role=role, cell=True)))
    return Part(size, size, tuple(inside), name, values=table)


def _arc(middle: Number, radius: Number, start: Number, angle: Number) -> tuple:
    """Points of a cubic curve around (middle, middle), counterclockwise, in four segments."""
    t = start + angle * np.arange(5) / 4
    x, y = middle + radius * np.cos(t), middle - radius * np.sin(t)
    reach = 4 / 3 * np.tan(angle / 16) * radius
    a, b = reach * np.sin(t), reach * np.cos(t)  # along the curve
    points = [(x[0], y[0])]
    for i in range(4):
        points += [(x[i] - a[i], y[i] - b[i]), (x[i + 1] + a[i + 1], y[i + 1] + b[i + 1])]
        points.append((x[i + 1], y[i + 1]))
    return tuple((float(one), float(other)) for one, other in points)


def grid(
    rows: Sequence[Sequence[Part | str | None] | Part],
    *,
    gap: Number | tuple[Number, Number] = 10,
    align: str = "c",
    name: str = "",
    role: str = "",
) -> Part:
    """Parts in rows and columns, each column as wide as its widest part.

    Args:
        rows: `[row][column]` parts; None leaves a place empty. A string becomes a `text`, which
            appears with the first named part of its row. A part in place of a row spans all
            columns.
        gap: the space between columns and between rows, one number or two.
        align: a letter for each column, l(eft), c(entre) or r(ight); the last is used for the rest.
        name, role: of the whole grid.
    """
    table = [line if isinstance(line, Part) else _labelled(line) for line in rows]
    lines = [line for line in table if isinstance(line, list)]
    if not table or len({len(line) for line in lines} | {0}) > 2:
        raise ValueError(f"rows must be rows of one length, got lengths {[*map(len, lines)]}")
    if not align or set(align) - set("lcr"):
        raise ValueError(f"align must be letters l, c, r, got {align!r}")
    gap_x, gap_y = gap if isinstance(gap, tuple) else (gap, gap)
    columns = zip(*lines, strict=True)
    widths = [max((part.width for part in each if part), default=0) for each in columns]
    whole = sum(widths) + gap_x * (len(widths) - 1)
    width = max([whole, *(line.width for line in table if isinstance(line, Part))])
    inside, y = [], 0.0
    for line in table:
        spans = isinstance(line, Part)
        pairs = [(line, width)] if spans else [*zip(line, widths, strict=True)]
        height = max((part.height for part, _ in pairs if part), default=0)
        x = 0.0 if spans else (width - whole) / 2
        for j, (part, room) in enumerate(pairs):
            if part:
                shift = {"l": 0, "c": 0.5, "r": 1}["c" if spans else align[min(j, len(align) - 1)]]
                place = x + shift * (room - part.width), y + (height - part.height) / 2
                inside.append((*place, part))
            x += room + gap_x
        y += height + gap_y
    return Part(width, y - gap_y, tuple(inside), name, role)


def _labelled(line: Sequence[Part | str | None]) -> list[Part | None]:
    name = next((_name(part) for part in line if isinstance(part, Part)), "")
    return [text(part, beside=name) if isinstance(part, str) else part for part in line]


def _name(part: Part) -> str:
    """The part's own name, or the first one inside it."""
    inside = (_name(each[2]) for each in part.inside if isinstance(each, tuple))
    return part.name or next(filter(None, inside), "")


def space(height: Number) -> Part:
    """Empty space of this height."""
    return Part(0, height, ())


def row(*parts: Part | str, gap: Number = 10, name: str = "") -> Part:
    """Parts side by side."""
    return grid([parts], gap=gap, name=name)


def column(*parts: Part | str, gap: Number = 10, align: str = "c", name: str = "") -> Part:
    """Parts below each other."""
    return grid([[part] for part in parts], gap=gap, align=align, name=name)


def frame(part: Part, words: str = "", role: str = "", *, name: str = "", pad: int = 10) -> Part:
    """A frame around a part, with words above it on the left."""
    top = 20 if words else pad
    width = max(part.width, text_width(clean(words), SMALL)) + 2 * pad
    height = part.height + top + pad
    inside = [Box(0, 0, width, height, "frame"), ((width - part.width) / 2, top, part)]
    if words:
        inside.append(Words(pad - 2, 11, clean(words), SMALL, "quiet", "start"))
    return Part(width, height, tuple(inside), name, role)


def brace(part: Part, words: str, role: str = "", *, side: str = "bottom", name: str = "") -> Part:
    """A curly brace below or above a part, with words beyond it."""
    check_choice(("bottom", "top"), side=side)
    label = text(words, role, size=SMALL)
    width, middle = max(part.width, label.width), max(part.width, label.width) / 2
    left, right = (width - part.width) / 2 + 1, (width + part.width) / 2 - 1
    sign, line = (1, part.height + 4) if side == "bottom" else (-1, label.height + 13)
    tip, arm = line + 9 * sign, line + 4.5 * sign
    curve = ((left, line), (left, arm), (left, arm), (left + 5, arm), (left + 5, arm))
    curve += ((middle - 5, arm), (middle - 5, arm), (middle - 5, arm), (middle, arm), (middle, tip))
    curve += ((middle, arm), (middle + 5, arm), (middle + 5, arm), (middle + 5, arm))
    curve += ((right - 5, arm), (right - 5, arm), (right - 5, arm), (right, arm), (right, line))
    at = 0 if side == "bottom" else label.height + 17
    inside = (
        ((width - part.width) / 2, at, part),
        Stroke(curve, "brace", curved=True, width=1.25),
        ((width - label.width) / 2, part.height + 15 if side == "bottom" else 0, label),
    )
    return Part(width, part.height + label.height + 17, inside, name, role)


def arrow(
    start: str,
    end: str,
    role: str = "",
    *,
    weights: Any = None,
    side: str = "",
    drawn: bool = True,
) -> Arrow:
    """An arrow from each part that `start` names to each that `end` names.

    One start is joined to many ends, many starts to one end, and equal numbers one to one. When the
    end of an arrow appears at a step, a copy of its start flies there.

    Args:
        start, end: names of parts; see the module's docstring.
        role: its colour.
        weights: the thickness of each arrow, in 0..1; arrows below 0.005 are left out.
        side: "left" or "right": the arrow runs around the parts in between on that side, as a
            residual connection does.
        drawn: whether a line is drawn; if not, only the copy flies.
    """
    check_choice(("", *ROLES), role=role)
    check_choice(("", "left", "right"), side=side)
    shares = None if weights is None else numbers(weights, "weights", share=True)
    return Arrow(start, end, role, shares, side, drawn)


def numbers(values: Any, name: str = "values", *, share: bool = False) -> np.ndarray:
    """Check a list or a table of numbers; with `share`, each must be in 0..1."""
    try:
        if isinstance(values, torch.Tensor):
            values = values.detach().cpu().numpy()
        array = np.array(values, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a full table of numbers, got {values!r:.60}") from None
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"{name} must be [column] or [row column], got {list(array.shape)}")
    if share and not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name} must be shares in 0..1, got {array.tolist()}")
    return array
