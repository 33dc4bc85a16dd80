"""What a recorded model computed at one position of its input."""

from typing import NamedTuple

import torch
from torch import Tensor

from attnbook.model.recording import Calls


class Spot(NamedTuple):
    """What a walk looks at: a position, and one head in one block."""

    place: int
    layer: int
    head: int


class Position(NamedTuple):
    """Each module's input and output at one position, by the module's path."""

    seen: Calls
    place: int

    def got(self, path: str) -> Tensor:
        return self.seen[path][0][0][0, self.place]

    def gave(self, path: str) -> Tensor:
        return self.seen[path][1][0, self.place]


class Head(NamedTuple):
    """One head of an attention layer, for the query at one position."""

    query: Tensor  # [d_head]
    keys: Tensor  # [key d_head]
    scores: Tensor  # [key], NaN where the mask hides the key
    weights: Tensor  # [key]
    values: Tensor  # [key d_head]
    mixed: Tensor  # [d_head]


def attended(seen: Calls, path: str, place: int, head: int = 0) -> Head:
    """A head of the attention layer at this path, for the query at `place`."""
    (q, k, *_), e = seen[f"{path}.scores"]
    _, mask = seen[f"{path}.weights"][0]
    (a, v), mixed = seen[f"{path}.combine"]
    scores = e[0, head, place]
    if mask is not None:
        scores = scores.masked_fill(~mask.expand(1, 1, e.shape[-2], -1)[0, 0, place], torch.nan)
    weights, out = a[0, head, place], mixed[0, head, place]
    return Head(q[0, head, place], k[0, head], scores, weights, v[0, head], out)
