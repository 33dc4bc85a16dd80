"""The layout of a drawing with its arrows, and its rendering as SVG or by matplotlib."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from attnbook.show.drawing import SMALL, WIDTH, Arrow, Box, Number, Part, Stroke, Words
from attnbook.show.lettering import clean

STILL = 520  # largest width in pixels of a stand-alone drawing
REFERENCE = re.compile(r"([A-Za-z][\w-]*)(?:\.(\d+|\*))?")


@dataclass(frozen=True)
class Place:
    """A named part, or one of its cells, and its position."""

    reference: str
    x: Number
    y: Number
    part: Part


class Picture:
    """A part with a position for everything in it, and arrows; `WIDTH` wide and as high as needed.

    Args:
        body: the part that contains all others.
        arrows: made by `arrow`.

    Raises:
        ValueError: if the body is wider than `WIDTH`, or an arrow refers to an unknown part.
    """

    def __init__(self, body: Part, *arrows: Arrow):
        if body.width > WIDTH - 4:
            raise ValueError(
                f"body must be at most {WIDTH - 4} wide, so that a phone shows it, got"
                f" {body.width:.0f}: use fewer parts, shorter words or a smaller gap"
            )
        self.body, self.height = body, float(np.ceil(body.height + 8))
        self._places: dict[str, list[Place]] = {}
        self._tree = [*self._placed(body, (WIDTH - body.width) / 2, 4)]
        drawn = [each for one in arrows for each in self._drawn(one)]
        self._marks = [*drawn, *self._tree]

    # The drawing is a tree whose nodes are marks, or tuples of a group's attributes and children.

    def _placed(self, part: Part, x: Number, y: Number) -> Iterator[Any]:
        """The marks of a part at its position, in a group if the part has a name or a colour."""
        places = self._places.setdefault(part.name, []) if part.name else []
        if part.name:
            places.append(Place(part.name, x, y, part))
        children: list[Any] = []
        for each in part.inside:
            if isinstance(each, tuple):
                children += self._placed(each[2], x + each[0], y + each[1])
            else:
                children.append(each.moved(x, y))
        attributes = {"data-part": part.name} if part.name else {}
        if part.beside:
            attributes["data-beside"] = part.beside
        looks = [f"draw-{part.role}"] * bool(part.role) + ["draw-unit"] * part.cell
        if looks:
            attributes["class"] = " ".join(looks)
        if attributes:
            yield attributes, children
        else:
            yield from children

    def names(self) -> list[str]:
        """The names of the parts, in drawing order."""
        return list(self._places)

    def values(self, name: str) -> np.ndarray:
        """The numbers shown by the only part of this name."""
        (place,) = self.find(name)
        if place.part.values is None:
            raise ValueError(f"name must be of a part that shows numbers, got {name!r}")
        return place.part.values

    def find(self, reference: str) -> list[Place]:
        """The places of the parts that a reference names.

        Raises:
            ValueError: if there is no such part; the message lists the names.
        """
        found = REFERENCE.fullmatch(reference)
        places = self._places.get(found[1], []) if found else []
        if not found or not places:
            known = ", ".join(self._places) or "none"
            raise ValueError(f"a part must be one of those named ({known}), got {reference!r}")
        name, which = found.groups()
        if which is None:
            return places
        items = places
        if len(places) == 1:
            whole = places[0]
            inner = [each for each in whole.part.inside if isinstance(each, tuple)]
            items = [Place("", whole.x + x, whole.y + y, p) for x, y, p in inner if p.cell]
        items = [replace(item, reference=f"{name}.{n}") for n, item in enumerate(items)]
        if which == "*":
            return items
        if int(which) >= len(items):
            raise ValueError(f"{name!r} has {len(items)} parts, counted from 0, got {reference!r}")
        return [items[int(which)]]

    def _drawn(self, one: Arrow) -> Iterator[Any]:
        starts, ends = self.find(one.start), self.find(one.end)
        n = max(len(starts), len(ends))
        if {len(starts), len(ends)} - {1, n}:
            raise ValueError(
                f"an arrow from {one.start!r} to {one.end!r} must join one to many or as many to as"
                f" many, got {len(starts)} and {len(ends)}"
            )
        weights = np.full(n, np.nan) if one.weights is None else one.weights
        if len(weights) != n:
            raise ValueError(f"weights must be {n}, one for each arrow, got {len(weights)}")
        many = [self._many(places, n) for places in (starts, ends)]
        for start, end, weight in zip(*many, weights, strict=True):
            if weight < 0.005:
                continue
            looks = f"draw-link draw-{one.role}" if one.role else "draw-link"
            ends = {"class": looks, "data-from": start.reference, "data-to": end.reference}
            yield ends, _line(start, end, one.side, weight) if one.drawn else []

    def _many(self, places: list[Place], n: int) -> list[Place]:
        """The places repeated for n arrows, each with a reference of its own."""
        if len(places) > 1 and places[0].reference == places[-1].reference:
            places = [replace(p, reference=f"{p.reference}.{i}") for i, p in enumerate(places)]
        return places if len(places) == n else places * n

    def svg(self, alt: str, style: str = "") -> str:
        """The drawing as one SVG element.

        It takes colours and fonts from the page around it or, as a stand-alone file, from `style`.
        """
        whole = {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "draw-picture draw-still" if style else "draw-picture",
            "viewBox": f"0 0 {WIDTH} {self.height:g}",
            "role": "img",
            "aria-label": clean(alt),
        }
        if style:
            scale = STILL / WIDTH
            whole |= {"width": f"{STILL}", "height": f"{scale * self.height:.0f}"}
            style = f"<style>{style}</style>"
        return f"<svg{_attributes(whole)}>{style}{_svg(self._marks)}</svg>"

    def draw(self, axes: Axes, colours: dict[str, str], ink: str) -> None:
        """Draw on matplotlib axes, for programs that do not show SVG."""
        axes.set(xlim=(0, WIDTH), ylim=(self.height, 0), aspect="equal")
        axes.axis("off")
        inches = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
        unit = inches.width * 72 / WIDTH
        _draw(axes, self._marks, colours, ink, ink, unit)


def _line(start: Place, end: Place, side: str, weight: float) -> list[Stroke]:
    """A curve with an arrowhead; `weight` is NaN for an arrow without a weight."""
    points, (dx, dy) = _way(start, end, side)
    thick = 1.5 if np.isnan(weight) else 0.8 + 5 * float(weight)
    (x, y), size = points[-1], 4 + thick / 2
    barbs = [(x - size * (dx + s * dy), y - size * (dy - s * dx)) for s in (-0.6, 0.6)]
    head = (barbs[0], (x, y), barbs[1])
    line = Stroke(points, "line", curved=True, width=thick)
    return [line, Stroke(head, "line", width=min(thick, 2))]


def _way(start: Place, end: Place, side: str) -> tuple[tuple, tuple[Number, Number]]:
    """The points of a curve between two places, and the direction in which it ends."""
    a, b = start.part, end.part
    middle_a, middle_b = start.x + a.width / 2, end.x + b.width / 2
    if side:
        sign = 1 if side == "right" else -1
        x1, x2 = (p.x + (p.part.width if sign > 0 else 0) for p in (start, end))
        y1, y2 = start.y + a.height / 2, end.y + b.height / 2
        out = (max(x1, x2) if sign > 0 else min(x1, x2)) + 26 * sign
        return ((x1, y1), (out, y1), (out, y2), (x2, y2)), (-sign, 0)
    if end.y >= start.y + a.height or start.y >= end.y + b.height:
        down = end.y >= start.y + a.height
        y1, y2 = (start.y + a.height, end.y) if down else (start.y, end.y + b.height)
        bend = (y1 + y2) / 2
        return ((middle_a, y1), (middle_a, bend), (middle_b, bend), (middle_b, y2)), (
            0,
            1 if down else -1,
        )
    right = middle_b > middle_a
    x1, x2 = (start.x + a.width, end.x) if right else (start.x, end.x + b.width)
    y1, y2, bend = start.y + a.height / 2, end.y + b.height / 2, (x1 + x2) / 2
    return ((x1, y1), (bend, y1), (bend, y2), (x2, y2)), (1 if right else -1, 0)


def _svg(marks: Sequence[Any]) -> str:
    return "".join(map(_element, marks))


def _attributes(values: dict[str, Any]) -> str:
    """SVG attributes, in single quotes: JSON would escape double quotes in a notebook."""
    return "".join(f" {name}='{escape(str(value))}'" for name, value in values.items())


def _element(mark: Any, outer: dict[str, str] | None = None) -> str:
    match mark:
        case Box(x, y, width, height, look, shade):
            values = dict(outer or {}) if look == "cell" else {"class": f"draw-{look}"}
            values |= {"x": _at(x), "y": _at(y), "width": _at(width), "height": _at(height)}
            values |= {} if shade is None else {"fill-opacity": f"{shade:.2f}"}
            return f"<rect{_attributes(values)}/>"
        case Words(x, y, words, size, look, anchor):
            values = {"class": f"draw-{look}"} if look else {}
            values |= {} if anchor == "middle" else {"text-anchor": anchor}
            values |= {"x": _at(x), "y": _at(y + 0.35 * size)}
            values |= {} if size == SMALL else {"font-size": size}
            return f"<text{_attributes(values)}>{escape(words)}</text>"
        case Stroke(points, look, curved, width):
            pairs = [f"{_at(x)} {_at(y)}" for x, y in points]
            path = f"M{pairs[0]}{'C' if curved else 'L'}{' '.join(pairs[1:])}"
            values = {} if look == "line" else {"class": f"draw-{look}"}
            values |= {"d": path, "stroke-width": f"{width:.3g}"}
            return f"<path{_attributes(values)}/>"
        case (attributes, [Box(look="cell") as only]):  # write a group of one cell as that cell
            return _element(only, attributes)
        case (attributes, children):
            return f"<g{_attributes(attributes)}>{_svg(children)}</g>"
    raise AssertionError(mark)


def _draw(
    axes: Axes, marks: Sequence[Any], colours: dict[str, str], ink: str, now: str, unit: float
) -> None:
    for mark in marks:
        match mark:
            case Box(x, y, width, height, look, shade):
                fill = to_rgba(now, shade or 0)
                line = {
                    "edgecolor": now,
                    "linewidth": 0.7 * unit,
                    "snap": True,
                }  # smaller files
                axes.add_patch(Rectangle((x, y), width, height, facecolor=fill, **line))
            case Words(x, y, words, size, look, anchor):
                ha = {"middle": "center", "start": "left", "end": "right"}[anchor]
                colour = now if look == "strong" else ink
                weight = "bold" if look == "strong" else "normal"
                axes.text(
                    x, y, words, ha=ha, va="center", color=colour, fontsize=0.9 * size * unit,
                    weight=weight, parse_math=False,
                )  # fmt: skip
            case Stroke(points, look, curved, width):
                code = Path.CURVE4 if curved else Path.LINETO
                path = Path(points, [Path.MOVETO] + [code] * (len(points) - 1))
                axes.add_patch(PathPatch(path, fill=False, edgecolor=now, lw=width * unit))
            case (attributes, children):
                role = {c[5:] for c in attributes.get("class", "").split()} & set(colours)
                inner = colours[role.pop()] if role else now
                _draw(axes, children, colours, ink, inner, unit)


def _at(x: Number) -> str:
    return f"{x:.1f}".removesuffix(".0")
