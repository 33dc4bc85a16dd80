"""Chapter 3: how far back can a network reach, and how near?

`make experiments NAME=recall` trains every run below and stores a row for each. The first of
`lag` + 1 letters is one of eight signals, all others are one of eight fillers, and at the last the
network must name the signal; chance is 1/8. `kind` is "rnn", "gru", "keep" (a GRU whose update gate
starts open, with a bias of 3, so that it keeps its state) or "attention" (one head, no positions).
"""

import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from attnbook.learn import train
from attnbook.learn.tables import Experiment
from attnbook.model import MultiHeadAttention

LETTERS, WIDTH, BATCH = 8, 32, 32
KINDS = ("rnn", "gru", "keep", "attention")
SEEDS = (0, 1, 2)
RUNS = [(300, lag) for lag in (5, 10, 20, 50, 100, 200)] + [(1500, 50)]
SETTINGS = [
    {"steps": steps, "lag": lag, "kind": kind, "seed": seed}
    for (steps, lag), kind, seed in product(RUNS, KINDS, SEEDS)
]


def letters(lag: int, seed: int, size: int = BATCH) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences `[batch lag+1]` and the signal at the head of each."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(LETTERS, 2 * LETTERS, (size, lag + 1), generator=generator)
    x[:, 0] -= LETTERS
    return x, x[:, 0]


class Reader(nn.Module):
    """Embedding, one layer that reads the sequence, and a linear map of its last output."""

    def __init__(self, kind: str):
        super().__init__()
        self.embedding = nn.Embedding(2 * LETTERS, WIDTH)
        if kind == "attention":
            self.layer = MultiHeadAttention(WIDTH, 1)
        else:
            self.layer = (nn.RNN if kind == "rnn" else nn.GRU)(WIDTH, WIDTH, batch_first=True)
        if kind == "keep":
            gate = self.layer.get_parameter("bias_ih_l0")[WIDTH : 2 * WIDTH]
            nn.init.constant_(gate, 3.0)
        self.out = nn.Linear(WIDTH, LETTERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the signals."""
        read = self.layer(self.embedding(x))  # a recurrent layer also gives its last state
        return self.out((read[0] if isinstance(read, tuple) else read)[:, -1])


def run(steps: int, lag: int, kind: str, seed: int) -> Iterator[dict]:
    """Train one network and measure it on other sequences of that length."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Reader(kind)
    train(
        model,
        lambda step: letters(lag, 1_000_003 * (seed + 1) + step),
        lambda batch: cross_entropy(model(batch[0]), batch[1]),
        steps=steps,
        lr=0.01,
    )
    x, y = letters(lag, seed, 1000)  # no training batch has this seed
    with torch.no_grad():
        right = (model(x).argmax(-1) == y).float().mean().item()
    yield {"right": round(right, 4)}


EXPERIMENT = Experiment("recall", SETTINGS, run, ("right",), "0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
