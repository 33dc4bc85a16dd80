"""The map of a chapter: its machine as a row of boxes, with *here* below lit ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnbook import bundles
from attnbook.checks import check_choice, check_text
from attnbook.show.drawing import DEEPEST, FAINTEST, SMALL, Box, Part, arrow, column, row, text
from attnbook.show.lettering import HEAVY
from attnbook.show.picture import Picture


@dataclass(frozen=True)
class Map:
    """A machine of parts in a row, some of them lit; a notebook shows it as a picture."""

    parts: tuple[str, ...]
    lit: frozenset[str]

    def __repr__(self) -> str:
        marked = (f"[{part}]" if part in self.lit else part for part in self.parts)
        return " → ".join(marked).replace("\n", " ")

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        here = " and ".join(part for part in self.parts if part in self.lit)
        alt = f"Map of the chapter: {' to '.join(self.parts)}. Here: {here}.".replace("\n", " ")
        svg = bundles.styled(self.picture().svg(alt, bundles.still()))
        return {bundles.SVG: svg, "text/plain": repr(self)}

    def picture(self) -> Picture:
        """The boxes and the arrows between them."""
        here = "here" if len(self.lit) < len(self.parts) else ""  # not below the whole machine
        parts = enumerate(self.parts)
        boxes = [_box(part, part in self.lit, f"part{n}", here) for n, part in parts]
        pairs = range(len(boxes) - 1)
        return Picture(row(*boxes, gap=14), *(arrow(f"part{n}", f"part{n + 1}") for n in pairs))


def machine(*parts: str) -> Callable[..., Map]:
    """The map of a chapter: called with the current parts, it shows where the reader is.

        show = machine("words", "encoder", "one\\nvector", "decoder")
        show("encoder")

    Args:
        parts: two or more different names, in the order in which data passes through them; a line
            break begins a new line.

    Raises:
        ValueError: if there are fewer than two parts, two are alike, together they are wider than a
            phone, or a part that is to be lit is not one of them.
    """
    check_text(**{f"part {n}": part for n, part in enumerate(parts, 1)})
    if len(parts) < 2 or len({*parts}) < len(parts):
        raise ValueError(f"parts must be two or more different names, got {parts}")

    def lit(*now: str) -> Map:
        check_choice(parts, **{f"part {n}": part for n, part in enumerate(now, 1)})
        return Map(parts, frozenset(now))

    lit().picture()  # refuses parts that are too wide
    return lit


def _box(words: str, lit: bool, name: str, here: str) -> Part:
    inner = text(words, "weight" if lit else "", size=SMALL)
    width, height = HEAVY * inner.width + 8, inner.height + 8  # the same width, lit or not
    shade, role = (DEEPEST / 2, "weight") if lit else (FAINTEST, "")
    inside = (Box(0, 0, width, height, "box", shade), ((width - inner.width) / 2, 4, inner))
    label = text(here, role, size=SMALL)
    below = label if lit else Part(label.width, label.height, ())  # the same height, lit or not
    return column(Part(width, height, inside, name, role), below, gap=2)
