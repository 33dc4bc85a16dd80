"""A Transformer's drawing for the map widgets: as SVG with a description, and its size."""

from collections.abc import Collection
from dataclasses import replace

from attnbook.show.blocks import Look, transformer
from attnbook.show.drawing import WIDTH
from attnbook.show.picture import Picture

TOWER = (
    "One tower of boxes, numbers pass upwards: embedding plus place, then a block that stands {n}"
    " times: self-attention, whose mask hides {hides}, and feed-forward, each with a norm and an"
    " add; V, K and Q enter self-attention; a line runs past each layer into its add. Above it"
)
ALT = {
    "encoder-decoder": (
        "Two towers of boxes, numbers pass upwards. Left the encoder: English words, embedding plus"
        " place, and a block that stands twice: self-attention and feed-forward, each with a norm"
        " and an add; V, K and Q enter self-attention; a line runs past each layer into its add."
        " Its end is H, one vector a word. Right the decoder: German words so far, the same parts,"
        " and between them cross-attention, whose V and K come from H. Above it the output layer"
        " and the next word."
    ),
    "decoder": TOWER + " the output layer and the next word.",
    "encoder": TOWER + " H, one vector a word.",
}


def drawn(look: Look, shape: str, only: Collection[str] = ()) -> str:
    """A Transformer as SVG with a description; with `only`, just the parts of these names."""
    hides = "later words" if shape == "decoder" else "padding"
    alt = ALT[shape].format(n=look.layers, hides=hides)
    body = transformer(look, shape=shape)
    if only:
        kept = [each for each in body.inside if isinstance(each, tuple) and each[2].name in only]
        body, alt = replace(body, inside=tuple(kept)), "parts"
    return Picture(body).svg(alt)


def size(look: Look, shape: str, title: str) -> tuple[float, float]:
    """Width and height of a Transformer's picture in inches."""
    height = Picture(transformer(look, shape=shape)).height
    return 4.5, 4.5 * height / WIDTH + 0.5 * bool(title)
