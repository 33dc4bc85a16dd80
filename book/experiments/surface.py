"""Chapter 6: the loss around trained parameters, with and without residual connections.

`make experiments NAME=surface` trains Transformers of two or four blocks on `numbers` and computes
the loss on the same numbers at parameters w + a u + b v, where w are the trained ones, a and b run
over a grid from -1 to 1, and u, v are two random directions, *filter-normalised*: each row of each
matrix is as long as the same row of w; gains and biases stay (Li et al. 2018, section 4). A row of
the table is a row of a grid: `row` counts b, the columns `at_0` to `at_20` are the losses for each
a, in nats a morpheme; `directions` is the seed of u and v.
"""

import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import Transformer, TransformerConfig
from attnbook.text import Numbers, Pairs

STEPS, BATCH, LR, WARMUP, SIDE, NUMBERS = 500, 32, 0.005, 50, 21, 64
RUNS = [*product((2,), (0, 1, 2), (1, 0)), *product((4,), (0,), (1, 0))]
DIRECTIONS = (0, 1)
task = Numbers(9)


def trained(residual: bool, seed: int, blocks: int = 2, steps: int = STEPS) -> Transformer:
    """A trained model; half of the blocks are in the encoder, half in the decoder."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    config = TransformerConfig(32, 4, 64, blocks // 2, residual=residual)
    model = Transformer(task.source_vocab, task.target_vocab, config)
    train(
        model,
        lambda step: task.batch(step, batch_size=BATCH, seed=seed),
        model.loss,
        steps=steps,
        lr=Cosine(LR, steps, WARMUP),
    )
    return model


def numbers() -> Pairs:
    """The held-out numbers that every loss is taken on."""
    held_out = [n for digits in range(1, 10) for n in task.held_out[digits]]
    return task.encode(held_out[:: len(held_out) // NUMBERS])


def direction(model: Transformer, generator: torch.Generator) -> list[Tensor]:
    """A random direction: every row of a matrix as long as the model's, zero for all else."""
    found = []
    for w in model.parameters():
        u = torch.randn(w.shape, generator=generator)
        u = u / u.norm(dim=-1, keepdim=True) * w.detach().norm(dim=-1, keepdim=True)
        found.append(u if w.ndim == 2 else torch.zeros_like(w))
    return found


@torch.no_grad()
def surface(model: Transformer, seed: int, side: int = SIDE, extent: float = 1.0) -> Tensor:
    """Losses over the plane of two directions, `[b a]`; the model's own is in the middle."""
    generator = torch.Generator().manual_seed(seed)
    u, v = direction(model, generator), direction(model, generator)
    batch = numbers()
    kept = [w.clone() for w in model.parameters()]
    steps = torch.linspace(-extent, extent, side).tolist()
    found = torch.zeros(side, side)
    for (i, b), (j, a) in product(enumerate(steps), repeat=2):
        for w, start, du, dv in zip(model.parameters(), kept, u, v, strict=True):
            w.copy_(start + a * du + b * dv)
        found[i, j] = model.loss(batch)
    for w, start in zip(model.parameters(), kept, strict=True):
        w.copy_(start)
    return found


def run(residual: int, blocks: int, seed: int) -> Iterator[dict]:
    """The surfaces around one model."""
    model = trained(bool(residual), seed, blocks=blocks)
    for directions in DIRECTIONS:
        for i, line in enumerate(surface(model, directions).tolist()):
            losses = {f"at_{j}": round(loss, 4) for j, loss in enumerate(line)}
            yield {"directions": directions, "row": i, **losses}


SETTINGS = [
    {"residual": residual, "blocks": blocks, "seed": seed} for blocks, seed, residual in RUNS
]
EXPERIMENT = Experiment("surface", SETTINGS, run, (f"at_{SIDE // 2}",), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
