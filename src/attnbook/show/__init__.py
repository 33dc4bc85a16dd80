"""Pictures: drawings in SVG with the book's colours, and charts."""

from attnbook.show.blocks import transformer
from attnbook.show.drawing import (
    SMALL,
    Part,
    arrow,
    bars,
    box,
    cells,
    column,
    dial,
    frame,
    grid,
    row,
    space,
    text,
)
from attnbook.show.machine import machine

__all__ = [
    "SMALL",
    "Part",
    "arrow",
    "bars",
    "box",
    "cells",
    "column",
    "dial",
    "frame",
    "grid",
    "machine",
    "row",
    "space",
    "text",
    "transformer",
]
