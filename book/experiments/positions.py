"""Chapter 4: what each encoding of positions can learn, and how far beyond the training length.

`make experiments NAME=positions` trains one layer of attention and a feed-forward network on
sequences of 64 tokens, for each encoding and task with three seeds, and stores a row for each run
and length: the share of right answers among the last 32 tokens of sequences of that length. Since
no token sees what follows it, sequences of 512 tokens hold the answers for every shorter length.
"""

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.learn import train
from attnbook.learn.tables import Experiment
from attnbook.model import MultiHeadAttention
from attnbook.model.positions import (
    Alibi,
    LearnedPositions,
    RelativePositions,
    Rotary,
    SinusoidalPositions,
    sinusoidal,
)
from attnbook.text import IGNORED, Sequences, latest_value, look_back

TAUGHT = 64
LAST = 32
LENGTHS = range(LAST, 8 * TAUGHT + 1, LAST)
D_MODEL, N_HEADS, STEPS = 64, 4, 600
D_HEAD = D_MODEL // N_HEADS
TASKS = {"look_back": (look_back, 16, 16), "latest_value": (latest_value, 72, 8)}
ADDED = {
    "sinusoidal": SinusoidalPositions,
    "learned": lambda: LearnedPositions(TAUGHT, D_MODEL),
}
INSIDE = {
    "relative": lambda: RelativePositions(D_HEAD, max_distance=16),
    "rotary": lambda: Rotary(D_HEAD),
    "alibi": lambda: Alibi(N_HEADS),
}
ENCODINGS = ("none", "sinusoidal", "concatenated", "learned", "relative", "rotary", "alibi")


class Model(nn.Module):
    """Embedding, one layer of causal attention, and a feed-forward network that answers."""

    def __init__(self, encoding: str, vocab_size: int, n_classes: int):
        super().__init__()
        self.joined = encoding == "concatenated"
        self.embedding = nn.Embedding(vocab_size, D_MODEL // 2 if self.joined else D_MODEL)
        self.add = ADDED.get(encoding, nn.Identity)()
        inside = INSIDE[encoding]() if encoding in INSIDE else None
        self.attention = MultiHeadAttention(D_MODEL, N_HEADS, positions=inside)
        self.answer = nn.Sequential(
            nn.Linear(D_MODEL, 4 * D_MODEL), nn.ReLU(), nn.Linear(4 * D_MODEL, n_classes)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the classes at each token: [batch n class]."""
        x = self.embedding(tokens)
        if self.joined:
            x = torch.cat([x, sinusoidal(x.shape[1], D_MODEL // 2).expand_as(x)], dim=-1)
        return self.answer(self.attention(self.add(x), causal=True))


def loss(model: Model, batch: Sequences) -> Tensor:
    return cross_entropy(model(batch.tokens).flatten(0, 1), batch.targets.flatten())


@torch.no_grad()
def accuracies(model: Model, batch: Sequences) -> list[float]:
    """Share of right answers among each 32 tokens in turn."""
    right = (model(batch.tokens).argmax(-1) == batch.targets).split(LAST, dim=1)
    asked = (batch.targets != IGNORED).split(LAST, dim=1)
    return [r[a].double().mean().item() for r, a in zip(right, asked, strict=True)]


def run(task: str, encoding: str, seed: int) -> Iterator[dict]:
    """Train one model and measure it at each length that its encoding has positions for."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    make, vocab_size, n_classes = TASKS[task]
    model = Model(encoding, vocab_size, n_classes)
    train(
        model,
        lambda step: make(TAUGHT, 1_000_000 * (seed + 1) + step),
        lambda batch: loss(model, batch),
        steps=STEPS,
        lr=0.003,
        seed=seed,
    )
    longest = TAUGHT if encoding == "learned" else LENGTHS[-1]
    found = accuracies(model, make(longest, seed, batch=128))
    weights = sum(p.numel() for p in model.parameters())
    for length, share in zip(LENGTHS, found, strict=False):
        yield {"weights": weights, "length": length, "accuracy": round(share, 4)}


SETTINGS = [
    {"task": task, "encoding": encoding, "seed": seed}
    for task, encoding, seed in product(TASKS, ENCODINGS, range(3))
]
EXPERIMENT = Experiment("positions", SETTINGS, run, ("accuracy",), "0.003")

if __name__ == "__main__":
    EXPERIMENT.store()
