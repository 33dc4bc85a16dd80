"""Chapter 4: does a rotary model go further beyond its training when its hands differ more?

`make experiments NAME=hands` trains one layer with a single head of 64 numbers, 32 pairs that
turn, to name the letter three places back on sequences of 64 letters. The pairs have `hands`
different speeds, each as often. A row is the share right at the letters `first` to `first` + 63 of
a sequence of 512; chance is 1/16.
"""

import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.learn import train
from attnbook.learn.tables import Experiment
from attnbook.model import MultiHeadAttention
from attnbook.model.positions import ScorePositions
from attnbook.text import look_back

TAUGHT, LONGEST, D_MODEL, BASE = 64, 512, 64, 10000.0
SETTINGS = [{"hands": h, "seed": s} for h, s in product((8, 16, 32), range(8))]


class Turning(ScorePositions):
    """Rotation with chosen speeds, `[d_head / 2]` radians a position."""

    def __init__(self, speeds: Tensor):
        super().__init__()
        self.speeds = speeds

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """Queries or keys, turned by their positions."""
        angle = positions[:, None, :, None] * self.speeds
        (a, b), cos, sin = x.chunk(2, -1), angle.cos(), angle.sin()
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Reader(nn.Module):
    """Embedding, one head of causal attention, and a feed-forward network that answers."""

    def __init__(self, hands: int):
        super().__init__()
        speeds = BASE ** (-torch.arange(hands) / hands)
        scheme = Turning(speeds.repeat(D_MODEL // 2 // hands))
        self.embedding = nn.Embedding(16, D_MODEL)
        self.attention = MultiHeadAttention(D_MODEL, 1, positions=scheme)
        self.answer = nn.Sequential(
            nn.Linear(D_MODEL, 4 * D_MODEL), nn.ReLU(), nn.Linear(4 * D_MODEL, 16)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the letters, `[batch n 16]`."""
        return self.answer(self.attention(self.embedding(tokens), causal=True))


def run(hands: int, seed: int) -> Iterator[dict]:
    """Train one model and measure it at every 64 letters."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Reader(hands)
    train(
        model,
        lambda step: look_back(TAUGHT, 1_000_003 * (seed + 1) + step),
        lambda b: cross_entropy(model(b.tokens).flatten(0, 1), b.targets.flatten()),
        steps=400,
        lr=0.003,
    )
    test = look_back(LONGEST, seed, batch=64)
    with torch.no_grad():
        right = model(test.tokens).argmax(-1) == test.targets
    for first in range(0, LONGEST, TAUGHT):
        share = right[:, max(first, 3) : first + TAUGHT].double().mean().item()
        yield {"first": first, "right": round(share, 4)}


EXPERIMENT = Experiment("hands", SETTINGS, run, ("right",), rates="0.003")

if __name__ == "__main__":
    EXPERIMENT.store()
