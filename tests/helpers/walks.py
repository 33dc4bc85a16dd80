"""Reads numbers from a drawing, for the tests of walks."""

import torch
from torch import Tensor

from attnbook.web import Drawing


def drawn(drawing: Drawing, name: str) -> Tensor:
    """The numbers of all parts of this name, one row a part."""
    places = [place.part for place in drawing.picture.find(name)]
    return torch.tensor([part.values.tolist() for part in places if part.values is not None])


def told(drawing: Drawing) -> str:
    return " ".join(step["caption"] for step in drawing.steps)
