"""Chapter 8: what does it bring a left-to-right model to learn from every token?

`make experiments NAME=sides_places` trains "next" of `sides.py` once more, with one change: its
loss counts three places in ten, drawn anew at each step, as many as the loss of "both" counts.
"""

from collections.abc import Iterator

import torch
from sides import RATES, SHARE, Reader, learn

from attnbook.learn.tables import Experiment
from attnbook.text import IGNORED, Sequences


class Fewer(Reader):
    """A reader that learns at some places alone."""

    def batch(self, step: int, seed: int) -> Sequences:
        """What it reads, and what it is to say where."""
        tokens, targets = super().batch(step, seed)
        drawn = torch.Generator().manual_seed(1_000_003 * seed + step)
        counted = torch.rand(targets.shape, generator=drawn) < SHARE
        return Sequences(tokens, targets.masked_fill(~counted, IGNORED))


def run(lr: float, seed: int) -> Iterator[dict]:
    """One run."""
    yield learn(Fewer, "next", lr, seed)


SETTINGS = [{"lr": RATES[0], "seed": seed} for seed in range(3)]
EXPERIMENT = Experiment("sides_places", SETTINGS, run, ("right",), f"{RATES[0]}, the best of next")

if __name__ == "__main__":
    EXPERIMENT.store()
