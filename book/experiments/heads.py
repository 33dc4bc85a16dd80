"""Chapter 5: how many heads a token needs that must know one, two or four of its neighbours.

`make experiments NAME=heads` trains every run below and stores a row for each. `places` is how many
neighbours are asked for, `readout` what turns the output of attention into tokens: a linear map, or
a network with one hidden layer. `exact` is the share of tokens for which every neighbour is right,
`token` the share of single neighbours, `strongest` at how many different places one head has its
largest weight in a sentence of 16 (the mean over heads and sentences, and the most).
"""

import copy
import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor, nn

from attnbook.learn import train
from attnbook.learn.tables import Experiment
from attnbook.model import MultiHeadAttention, recorded, sinusoidal

VOCAB, LENGTH, D_MODEL, BATCH, LR = 16, 16, 32, 64, 0.01
PLACES = {1: [-1], 2: [-1, 1], 4: [-2, -1, 1, 2]}
INNER = slice(2, -2)  # tokens that have all their neighbours
HEADS = (1, 2, 4, 8, 16, 32)
SEEDS = (0, 1, 2)
RUNS = [
    *product((2, 1), ("linear",), HEADS, (600,), SEEDS),
    *product((2,), ("linear",), HEADS, (3000,), SEEDS),
    *product((2, 4), ("hidden",), (1,), (3000,), SEEDS),
    *product((4, 1), ("linear",), HEADS, (3000,), SEEDS),
]
COLUMNS = ["places", "readout", "heads", "steps", "seed"]
SETTINGS = [dict(zip(COLUMNS, run, strict=True)) for run in RUNS]


class Neighbours(nn.Module):
    """One layer of attention that names the neighbours of each token."""

    def __init__(self, places: list[int], n_heads: int, readout: str = "linear"):
        super().__init__()
        self.places = places
        self.embedding = nn.Embedding(VOCAB, D_MODEL)
        self.attention = MultiHeadAttention(D_MODEL, n_heads)
        self.out: nn.Module = nn.Linear(D_MODEL, len(places) * VOCAB)
        if readout == "hidden":
            hidden = nn.Linear(D_MODEL, 4 * D_MODEL)
            self.out = nn.Sequential(hidden, nn.ReLU(), nn.Linear(4 * D_MODEL, len(places) * VOCAB))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits `[batch token place vocab]`."""
        x = self.embedding(tokens) + sinusoidal(LENGTH, D_MODEL)
        return self.out(self.attention(x)).unflatten(-1, (len(self.places), VOCAB))

    def answers(self, tokens: Tensor) -> Tensor:
        """The right neighbours, `[batch token place]`."""
        return torch.stack([tokens.roll(-place, 1) for place in self.places], -1)

    def loss(self, tokens: Tensor) -> Tensor:
        """Cross-entropy of the neighbours."""
        logits, answers = self(tokens)[:, INNER], self.answers(tokens)[:, INNER]
        return nn.functional.cross_entropy(logits.flatten(0, 2), answers.flatten())

    @torch.no_grad()
    def right(self, tokens: Tensor) -> Tensor:
        """Which neighbours are named right, `[batch token place]`."""
        return (self(tokens).argmax(-1) == self.answers(tokens))[:, INNER]


def batch(step: int, seed: int = 0, size: int = BATCH) -> Tensor:
    """Random tokens; no step repeats another's."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    return torch.randint(VOCAB, (size, LENGTH), generator=generator)


def trained(places: int, readout: str, heads: int, steps: int, seed: int) -> Neighbours:
    """A trained model."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Neighbours(PLACES[places], heads, readout)
    train(model, lambda step: batch(step, seed), model.loss, steps=steps, lr=LR)
    return model


def held_out(size: int = 512) -> Tensor:
    """Tokens that no step of any seed was taught."""
    return batch(-1, seed=1000, size=size)


@torch.no_grad()
def look(model: Neighbours, tokens: Tensor) -> Tensor:
    """Its attention weights, `[batch head query key]`."""
    with recorded(model) as weights:
        model(tokens)
    return weights["attention"]


def strongest(model: Neighbours, tokens: Tensor) -> Tensor:
    """At how many different places a head has its largest weight, `[batch head]`."""
    top = look(copy.deepcopy(model).double(), tokens).argmax(-1)  # in float32 keys may tie
    return nn.functional.one_hot(top, LENGTH).amax(-2).sum(-1)


def run(places: int, readout: str, heads: int, steps: int, seed: int) -> Iterator[dict]:
    """Train one model and measure it."""
    tokens = held_out()
    model = trained(places, readout, heads, steps, seed)
    right, pointed = model.right(tokens), strongest(model, tokens).float()
    yield {
        "parameters": sum(p.numel() for p in model.parameters()),
        "exact": round(right.all(-1).float().mean().item(), 4),
        "token": round(right.float().mean().item(), 4),
        "strongest": round(pointed.mean().item(), 2),
        "strongest_most": int(pointed.max()),
    }


EXPERIMENT = Experiment("heads", SETTINGS, run, ("exact", "token", "strongest"), "0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
