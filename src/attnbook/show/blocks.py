"""The Transformer as one drawing, in its three shapes: every part, and every line between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnbook.checks import check_choice
from attnbook.show.drawing import DEEPEST, FAINTEST, SMALL, Box, Mark, Number, Part, Stroke, Words
from attnbook.show.lettering import text_width

TALL, RISE, SIDE = 22, 14, 10  # a box's height, the room above it and beside it
NORM = 24  # half a norm's width in a plain tower
NARROW, WIDE = 68, 108  # half a box's width: in a plain tower, or in one with full detail
SHAPES = ("encoder-decoder", "decoder", "encoder")
PARTS = (
    "embedding", "positions", "norm", "attention", "mask", "padding", "heads", "keys", "rope",
    "cross", "feed-forward", "bias", "add", "H", "output", "words", "next",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What a drawing shows of a model's sizes and design choices.

    Attributes:
        norm: "pre" or "post".
        layers: number of blocks.
        heads, key_heads: number of query heads, and of key and value heads.
        full: whether one tower shows full detail: matrices, network, key heads, rotation, biases.
        normalizer: the name of its norms.
        network: what is written between the matrices of a feed-forward network.
        gated: whether two matrices read the network's input, not one.
        places: what is added to embeddings, or "" for nothing.
        start_norm: whether a norm follows the embeddings.
        rotary: whether queries and keys are rotated.
        bias: whether its matrices have biases.
        tied: whether the output matrix is the embedding matrix.
        pretrained: whether an encoder has BERT's two output layers.
    """

    norm: str = "pre"
    layers: int = 2
    heads: int = 4
    key_heads: int = 4
    full: bool = False
    normalizer: str = "norm"
    network: str = "ReLU"
    gated: bool = False
    places: str = "+ place"
    start_norm: bool = False
    rotary: bool = False
    bias: bool = True
    tied: bool = True
    pretrained: bool = False


def transformer(
    norm: str | Look = "pre", lit: Sequence[str] = (), *, shape: str = "encoder-decoder"
) -> Part:
    """A Transformer, drawn from bottom to top: sums, norms, attention layers and their inputs.

    With "pre", a norm comes before each layer, and one more after the last block; with "post", one
    comes after each sum. A "decoder" alone has no cross-attention (GPT), an "encoder" alone hides
    no later word (BERT).

    Args:
        norm: "pre" or "post", or a `Look` with further choices.
        lit: parts to light up, of `PARTS`.
        shape: one of `SHAPES`.

    Raises:
        ValueError: if norm, shape or a part is unknown, or two towers should show full detail.

    Source: Vaswani et al. 2017, figure 1; Xiong et al. 2020, figure 1 ("pre"); Radford et al. 2019
    (decoder), Devlin et al. 2019 (encoder).
    """
    look = norm if isinstance(norm, Look) else Look(norm)
    check_choice(("pre", "post"), norm=look.norm)
    check_choice(SHAPES, shape=shape)
    check_choice(PARTS, **{f"lit {n}": part for n, part in enumerate(lit)})
    if shape == "encoder-decoder":
        if look.full:
            raise ValueError("full must be False with two towers, got True")
        return _both(look, lit)
    half = WIDE if look.full else NARROW
    tower = _Tower(half + 18, -1 if shape == "encoder" else 1, look, lit)
    tower.start("words of a text" if shape == "encoder" else "words so far")
    tower.block(["attention", "feed-forward"])
    if shape == "decoder":
        tower.end("output", tower.output, "next word")
    else:
        tower.end("H", "H: one vector a word")
        if look.pretrained:
            tower.ends()
    return _drawing(tower.marks, tower.y, 2 * half + 36)


def _both(look: Look, lit: Sequence[str]) -> Part:
    reads, writes = _Tower(84, -1, look, lit), _Tower(264, 1, look, lit)
    reads.start("English words")
    reads.block(["attention", "feed-forward"])
    H = reads.end("H", "H: one vector a word")
    writes.start("German words so far")
    writes.block(["attention", "cross", "feed-forward"])
    writes.end("output", writes.output, "next German word")
    keys, middle = writes.memory, (reads.x + writes.x) / 2 - 2
    into = [((middle, H), (middle, keys), (writes.x + at, keys), (writes.x + at, keys - 6))
            for at in writes.ports[:2]]  # fmt: skip
    wires = [mark for way in into for mark in _wire(((reads.x + NARROW, H), *way))]
    return _drawing([*wires, *reads.marks, *writes.marks], min(reads.y, writes.y), 348)


def _drawing(marks: Sequence, top: Number, width: Number) -> Part:
    moved = [(m[0], m[1] - top, m[2]) if isinstance(m, tuple) else m.moved(0, -top) for m in marks]
    return Part(width, -top, tuple(moved), "transformer")


def _wire(points: tuple) -> list[Stroke]:
    """A line with right-angled bends, whose last three points are the arrowhead."""
    (x1, y1), (x, y) = points[-2:]
    dx, dy = (x > x1) - (x < x1), (y > y1) - (y < y1)
    barbs = [(x - 4 * (dx + s * dy), y - 4 * (dy + s * dx)) for s in (-0.7, 0.7)]
    return [Stroke((*points, barbs[0], (x, y), barbs[1]), "line", width=1.2)]


def _matrix(x: Number, y: Number, text: str) -> list[Mark]:
    """A small box with text, centred at x and with its top at y."""
    return [Box(x - 33, y, 66, 15, "box", DEEPEST / 2), Words(x, y + 7.5, text, SMALL)]


def _line(x: Number, bottom: Number, top: Number) -> Stroke:
    return Stroke(((x, bottom), (x, top)), "line", width=1.2)


class _Tower:
    """Boxes from the bottom (y = 0) upwards, centred at x, with bypasses on one side.

    Whatever another `Look` could change is a part of its own, of the same size whatever it shows,
    so that a page can exchange the parts of one drawing for those of another.
    """

    def __init__(self, x: Number, side: int, look: Look, lit: Sequence[str]):
        self.x, self.side, self.look, self.lit = x, side, look, lit
        self.half = WIDE if look.full else NARROW
        self.ports = [0.66 * self.half * n for n in (-1, 0, 1)]
        self.output = "output layer, softmax"
        if look.full:
            self.output = f"output layer, {'embedding again' if look.tied else 'own matrix'}"
        self.y, self.memory = 0.0, 0.0  # the top so far; where H's keys and values arrive
        self.marks: list = []

    def words(self, text: str, at: Number = 0) -> None:
        self.y -= 14
        self.marks.append(Words(self.x + at, self.y + 7, text, SMALL, "quiet"))

    def put(self, name: str, x: Number, y: Number, wide: Number, high: Number, text: str) -> None:
        """A box at (x, y), x from the centre, with text; without, an empty part of that size."""
        lit = name in self.lit
        shade = DEEPEST / 2 if lit else FAINTEST
        line = Words(wide / 2, high / 2, text, SMALL, "strong" if lit else "")
        inside = (Box(0, 0, wide, high, "box", shade), line) if text else ()
        part = Part(wide, high, inside, name, "weight" if lit else "")
        self.marks.append((self.x + x, y, part))

    def box(self, name: str, text: str, half: Number = 0) -> None:
        """A box on top of the tower so far."""
        half = half or self.half
        self.y -= TALL
        self.put(name, -half, self.y, 2 * half, TALL, text)

    def norm(self) -> None:
        self.box("norm", self.look.normalizer, 34 if self.look.full else NORM)

    def up(self, room: Number = RISE) -> None:
        self.marks += _wire(((self.x, self.y), (self.x, self.y - room)))
        self.y -= room

    def start(self, words: str) -> None:
        self.words(words)
        self.up(10)
        right = text_width(self.look.places or "+ place", SMALL) + 10
        self.y -= TALL
        self.put("embedding", -self.half, self.y, 2 * self.half - right - 4, TALL, "embedding")
        self.put("positions", self.half - right, self.y, right, TALL, self.look.places)
        if self.look.start_norm:
            self.up()
            self.norm()

    def block(self, layers: Sequence[str]) -> None:
        bottom = self.y - 6
        for layer in layers:
            self.layer(layer)
        top, edge = self.y - 6, self.x - self.half - (SIDE + 6 if self.side < 0 else 6)
        self.marks.insert(0, Box(edge, top, 2 * self.half + SIDE + 12, bottom - top, "frame"))
        count = f"block × {self.look.layers}"
        self.marks.append(Words(edge, top - 8, count, SMALL, "quiet", "start"))

    def layer(self, layer: str) -> None:
        """A layer with its norm and its sum, and the bypass from its input to the sum."""
        fork, pre = self.y - 9, self.look.norm == "pre"
        if pre:
            self.up(17)
            self.norm()
        if layer != "feed-forward":
            self.attention(layer)
        elif self.look.full:
            self.network()
        else:
            self.up(RISE if pre else 18)
            self.box(layer, "feed-forward")
        self.up()
        self.box("add", "add", 18)
        at, out = self.y + TALL / 2, self.x + (self.half + SIDE) * self.side
        way = ((self.x, fork), (out, fork), (out, at), (self.x + 18 * self.side, at))
        self.marks += _wire(way)
        if not pre:
            self.up()
            self.norm()

    def attention(self, layer: str) -> None:
        """An attention layer with its Q, K and V; in cross-attention, K and V come from H."""
        fan, bottom = self.y - (6 if self.look.norm == "pre" else 17), self.y
        self.y -= 20 if self.look.norm == "pre" else 31
        self.memory = self.y + 6 if layer == "cross" else self.memory
        counts = [self.look.key_heads, self.look.key_heads, self.look.heads]
        for letter, role, at, heads in zip("VKQ", ("value", "key", "query"), self.ports, counts,
                                           strict=True):  # fmt: skip
            if layer != "cross" or letter == "Q":
                line = ((self.x, bottom), (self.x, fan), (self.x + at, fan), (self.x + at, self.y))
                if layer == "cross" and self.look.norm == "pre":  # clear of the wire from H
                    beside = bottom + TALL / 2
                    line = ((self.x + NORM, beside), (self.x + at, beside), (self.x + at, self.y))
                self.marks += _wire(line if at else (line[0], line[-1]))
            wide, text = (66, f"{letter} × {heads}") if self.look.full else (30, letter)
            drawn = (Box(0, 0, wide, 15, "box", DEEPEST / 2),
                     Words(wide / 2, 7.5, text, SMALL, "strong"))  # fmt: skip
            name = "port" if letter == "Q" else "keys"
            port = Part(wide, 15, drawn, name, role)
            self.marks.append((self.x + at - wide / 2, self.y - 15, port))
        self.y -= 15
        if self.look.full:
            self.turns()
        self.titled(layer, "cross-attention" if layer == "cross" else "self-attention", 36)
        hides = "causal" if self.side > 0 and layer == "attention" else "padding"
        chips = {"mask" if hides == "causal" else "padding": f"mask: {hides}"}
        chips["heads"] = f"{self.look.heads} heads" if self.look.heads > 1 else "1 head"
        if self.look.full:
            chips["bias"] = "+ biases"
        self.chips(chips)

    def titled(self, name: str, title: str, high: Number) -> None:
        """A box with its title on top and room below; in full detail, also the output matrix."""
        lit, top = name in self.lit, 13 * self.look.full
        shade = DEEPEST / 2 if lit else FAINTEST
        inside = [Box(0, 0, 2 * self.half, high + top, "box", shade),
                  Words(self.half, 11 + top, title, SMALL, "strong" if lit else "")]  # fmt: skip
        if self.look.full:
            inside += _matrix(self.half, 0, "out" if name == "attention" else "down")
        self.y -= high + top
        part = Part(2 * self.half, high + top, tuple(inside), name, "weight" if lit else "")
        self.marks.append((self.x - self.half, self.y, part))

    def chips(self, texts: dict[str, str]) -> None:
        """Small boxes in the lower half of the topmost box."""
        wides = [text_width(text, SMALL) + 6 for text in texts.values()]
        gap = (2 * self.half - sum(wides)) / (len(wides) + 1)
        x = gap - self.half
        for (name, text), wide in zip(texts.items(), wides, strict=True):
            shown = "" if name == "bias" and not self.look.bias else text
            self.put(name, x, self.y + 19 + 13 * self.look.full, wide, 15, shown)
            x += wide + gap

    def turns(self) -> None:
        """Rotary positions: keys and queries are rotated on their way into the attention."""
        self.y -= 24
        for at in self.ports:
            x = self.x + at
            lines: list[Mark] = [_line(33, 24, 0)]
            if self.look.rotary and at >= 0:
                lines = [_line(33, 24, 20), _line(33, 5, 0), Box(7, 5, 52, 15, "box", DEEPEST / 2)]
                lines.append(Words(33, 12.5, "RoPE", SMALL, "strong"))
            role = "weight" if self.look.rotary and at >= 0 else ""
            self.marks.append((x - 33, self.y, Part(66, 24, tuple(lines), "rope", role)))

    def network(self) -> None:
        """A feed-forward network with its matrices: one or two at the input, one at the output."""
        rise, fan = (20, 6) if self.look.norm == "pre" else (31, 17)
        ends = {"gate": self.ports[0], "up": self.ports[2]} if self.look.gated else {"up": 0}
        self.titled("feed-forward", "feed-forward", 40)
        x, _, box = self.marks.pop()
        high = box.height
        marks = [*box.inside, Words(self.half, 41, self.look.network, SMALL)]
        for text, at in ends.items():
            low, turn = high + 15 + rise, high + 15 + rise - fan
            way = ((self.half, low), (self.half, turn), (self.half + at, turn))
            way = (*way, (self.half + at, high + 15)) if at else (way[0], (way[0][0], high + 15))
            marks += [*_wire(way), *_matrix(self.half + at, high, text)]
        self.y -= rise + 15
        part = Part(box.width, high + 15 + rise, tuple(marks), box.name, box.role)
        self.marks.append((x, self.y, part))
        wide = text_width("+ biases", SMALL) + 6
        text = "+ biases" if self.look.bias else ""
        self.put("bias", self.half - wide - 4, self.y + 33, wide, 15, text)

    def ends(self) -> None:
        """BERT's two output layers on H: the hidden words, and whether B follows A."""
        self.y -= 18
        for name, at, text in (("words", -54.0, "hidden words"), ("next", 54.0, "B follows A?")):
            y, x = self.y, self.x + at
            self.marks += _wire(((x, y + 18), (x, y)))
            self.put(name, at - 52, y - 22, 104, 22, text)
        self.y -= TALL

    def end(self, name: str, text: str, words: str = "") -> Number:
        """Add the last norm (if "pre") and the last box; return the height of its middle."""
        self.up(20)
        if self.look.norm == "pre":
            self.norm()
            self.up()
        self.box(name, text)
        last = self.y + TALL / 2
        if words:
            self.up(10)
            self.words(words)
        return last
