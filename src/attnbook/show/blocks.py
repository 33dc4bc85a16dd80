"""The Transformer as one drawing: encoder and decoder, every line between their parts."""

from collections.abc import Sequence

from attnbook.checks import check_choice
from attnbook.show.drawing import DEEPEST, FAINTEST, SMALL, Box, Mark, Number, Part, Stroke, Words

HALF, TALL, RISE, SIDE = 61, 22, 14, 10  # half a box's width, its height, room above it and beside
PARTS = ("embedding", "norm", "attention", "cross", "feed-forward", "add", "H", "output")
PORTS = (("V", "value", -36), ("K", "key", 0), ("Q", "query", 36))


def transformer(norm: str = "pre", lit: Sequence[str] = ()) -> Part:
    """Encoder and decoder, upwards as numbers pass: sums, norms, attentions and their three inputs.

    In the order "pre" a norm stands before its layer, and one more after the last block; in the
    order "post" each stands after the sum.

    Args:
        norm: "pre" or "post".
        lit: the parts of the moment, of `PARTS`.

    Raises:
        ValueError: if norm is neither, or a part is unknown.

    Source: Vaswani et al. 2017, figure 1; Xiong et al. 2020, figure 1 ("pre").
    """
    check_choice(("pre", "post"), norm=norm)
    check_choice(PARTS, **{f"lit {n}": part for n, part in enumerate(lit)})
    reads, writes = _Tower(82, -1, norm, lit), _Tower(266, 1, norm, lit)
    reads.start("English words", "embedding + place")
    reads.block(["attention", "feed-forward"])
    H = reads.end("H", "H: one vector a word")
    writes.start("German words so far", "embedding + place")
    writes.block(["attention", "cross", "feed-forward"])
    writes.end("output", "output layer, softmax", "next German word")
    keys, middle = writes.memory, (reads.x + writes.x) / 2 - 2
    into = [((middle, H), (middle, keys), (writes.x + at, keys), (writes.x + at, keys - 6))
            for name, _, at in PORTS if name != "Q"]  # fmt: skip
    wires = [mark for way in into for mark in _wire(((reads.x + HALF, H), *way))]
    top = min(reads.y, writes.y)
    marks = (*wires, *reads.marks, *writes.marks)
    moved = [(m[0], m[1] - top, m[2]) if isinstance(m, tuple) else m.moved(0, -top) for m in marks]
    return Part(348, -top, tuple(moved), "transformer")


def _wire(points: tuple) -> list[Stroke]:
    """A line with right angles and the arrow's head at its end."""
    (x1, y1), (x, y) = points[-2:]
    dx, dy = (x > x1) - (x < x1), (y > y1) - (y < y1)
    barbs = [(x - 4 * (dx + s * dy), y - 4 * (dy + s * dx)) for s in (-0.7, 0.7)]
    return [
        Stroke(points, "line", width=1.2),
        Stroke((barbs[0], (x, y), barbs[1]), "line", width=1.2),
    ]


class _Tower:
    """Boxes from the bottom (y = 0) upwards, at the middle x; bypasses on one side of it."""

    def __init__(self, x: Number, side: int, norm: str, lit: Sequence[str]):
        self.x, self.side, self.norm, self.lit = x, side, norm, lit
        self.y, self.memory = 0.0, 0.0  # the top so far; where keys and values of H arrive
        self.marks: list = []

    def words(self, text: str) -> None:
        self.y -= 14
        self.marks.append(Words(self.x, self.y + 7, text, SMALL, "quiet"))

    def box(self, name: str, text: str, half: Number = HALF, more: str = "") -> None:
        """A box on top of what is there; `more` is a second line, the mask's."""
        self.y -= TALL + 12 * bool(more)
        lit, height = name in self.lit, TALL + 12 * bool(more)
        shade = DEEPEST / 2 if lit else FAINTEST
        inside: list[Mark] = [Box(0, 0, 2 * half, height, "box", shade)]
        inside.append(Words(half, 11, text, SMALL, "strong" if lit else ""))
        if more:
            inside.append(Words(half, 23, more, SMALL))
        part = Part(2 * half, height, tuple(inside), name, "weight" if lit else "")
        self.marks.append((self.x - half, self.y, part))

    def up(self, room: Number = RISE) -> None:
        self.marks += _wire(((self.x, self.y), (self.x, self.y - room)))
        self.y -= room

    def start(self, words: str, box: str) -> None:
        self.words(words)
        self.up(10)
        self.box("embedding", box)

    def block(self, layers: Sequence[str]) -> None:
        bottom = self.y - 6
        for layer in layers:
            self.layer(layer)
        top, edge = self.y - 6, self.x - HALF - (SIDE + 6 if self.side < 0 else 6)
        self.marks.insert(0, Box(edge, top, 2 * HALF + SIDE + 12, bottom - top, "frame"))
        self.marks.append(Words(edge, top - 8, "block × 2", SMALL, "quiet", "start"))

    def layer(self, layer: str) -> None:
        """A layer with its norm and its sum, and the bypass from what came to the sum."""
        fork = self.y - 9
        if self.norm == "pre":
            self.up(18)
            self.box("norm", "norm", 24)
        if layer == "feed-forward":
            self.up(RISE if self.norm == "pre" else 18)
            self.box(layer, "feed-forward")
        else:
            self.attention(layer)
        self.up()
        self.box("add", "add", 18)
        at, out = self.y + TALL / 2, self.x + (HALF + SIDE) * self.side
        way = ((self.x, fork), (out, fork), (out, at), (self.x + 18 * self.side, at))
        self.marks += _wire(way)
        if self.norm == "post":
            self.up()
            self.box("norm", "norm", 24)

    def attention(self, layer: str) -> None:
        """Queries, keys and values into an attention; a cross-attention's keys come from H."""
        fan, bottom = self.y - (6 if self.norm == "pre" else 17), self.y
        self.y -= 20 if self.norm == "pre" else 31
        self.memory = self.y + 6 if layer == "cross" else self.memory
        for name, role, at in PORTS:
            if layer != "cross" or name == "Q":
                line = ((self.x, bottom), (self.x, fan), (self.x + at, fan), (self.x + at, self.y))
                self.marks += _wire(line if at else (line[0], line[-1]))
            port = (Box(0, 0, 30, 15, "box", DEEPEST / 2), Words(15, 7.5, name, SMALL, "strong"))
            self.marks.append((self.x + at - 15, self.y - 15, Part(30, 15, port, "port", role)))
        self.y -= 15
        hides = "causal" if self.side > 0 and layer == "attention" else "padding"
        text = "cross-attention" if layer == "cross" else "self-attention"
        self.box(layer, text, more=f"mask: {hides}")

    def end(self, name: str, text: str, words: str = "") -> Number:
        """The last norm (if "pre") and the last box; returns the height of its middle."""
        self.up(20)
        if self.norm == "pre":
            self.box("norm", "norm", 24)
            self.up()
        self.box(name, text)
        last = self.y + TALL / 2
        if words:
            self.up(10)
            self.words(words)
        return last
