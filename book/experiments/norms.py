"""Chapter 6: layer norm before, after, or nowhere, for more and more blocks.

`make experiments NAME=norms` trains small Transformers on `numbers` at several rates, with and
without warm-up, and stores a row a run.
`blocks` counts those of encoder and decoder together, half in each. `norm` is "none", "post" or
"pre"; `kind` is "full", "plain" (no gain, no bias) or "detached" (mean and deviation count as
constants in the backward pass); `warmup` is in steps. `half` and `loss` are training losses in nats
a morpheme, the mean of 20 steps in the middle and at the end of the run, nan if it overflowed.
"""

import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor, nn

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import LayerNorm, Transformer, TransformerConfig
from attnbook.model.config import Norm
from attnbook.text import Numbers

STEPS, BATCH, MEAN = 100, 32, 20
NORMS, BLOCKS, SEEDS = ("none", "post", "pre"), (2, 6, 12), (0, 1, 2)
task = Numbers(9)


class Detached(LayerNorm):
    """Layer norm whose mean and deviation have no derivative (Xu et al. 2019, "DetachNorm")."""

    def forward(self, x: Tensor) -> Tensor:
        """The numbers of layer norm; another gradient."""
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
        x = (x - mean.detach()) / (variance + self.eps).sqrt().detach()
        assert self.weight is not None and self.bias is not None
        return x * self.weight + self.bias


def with_norms(model: nn.Module, kind: str) -> nn.Module:
    """Changes every layer norm of a model, in place."""
    make = {"plain": lambda d: LayerNorm(d, affine=False), "detached": Detached}
    for part in list(model.modules()):
        for name, norm in part.named_children():
            if kind in make and isinstance(norm, LayerNorm):
                setattr(part, name, make[kind](norm.d))
    return model


def losses_of(
    norm: Norm,
    blocks: int,
    seed: int,
    lr: float,
    warmup: int,
    kind: str = "full",
    gain: float | None = None,
) -> list[float]:
    """Losses of a run, up to the step where they overflow.

    `gain`: a norm follows the last block of the encoder, and one that starts with this gain follows
    that of the decoder; 0: none follows the decoder's. None: as the order of the norms says.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    last = None if gain is None else True
    config = TransformerConfig(32, 4, 64, blocks // 2, norm=norm, final_norm=last)
    model = Transformer(task.source_vocab, task.target_vocab, config)
    with_norms(model, kind)
    if gain:
        nn.init.constant_(model.decoder.stack.norm.weight, gain)
    elif gain == 0:
        model.decoder.stack.norm = nn.Identity()
    found: list[float] = []

    def loss(batch) -> Tensor:
        value = model.loss(batch)
        found.append(value.item())
        return value

    try:
        train(
            model,
            lambda step: task.batch(step, batch_size=BATCH, seed=seed),
            loss,
            steps=STEPS,
            lr=Cosine(lr, STEPS, warmup),
        )
    except FloatingPointError:
        found[-1] = float("nan")
    return found


def mean(losses: list[float], end: int) -> float:
    """Mean loss of the last steps before `end`; nan if the run did not come so far."""
    part = losses[end - MEAN : end]
    return round(sum(part) / MEAN, 4) if len(part) == MEAN else float("nan")


def run(**setting) -> Iterator[dict]:
    """One run."""
    losses = losses_of(**setting)
    yield {"half": mean(losses, STEPS // 2), "loss": mean(losses, STEPS)}


RUNS = [
    *product((0.001,), (0,), ("full",), SEEDS, BLOCKS, NORMS),
    *product((0.003, 0.01), (0, 40), ("full",), SEEDS, BLOCKS, NORMS),
    *product((0.03,), (40,), ("full",), SEEDS, (6,), NORMS),
    *product((0.01,), (40,), ("plain", "detached"), SEEDS, (6,), ("post", "pre")),
]
SETTINGS = [
    {"lr": lr, "warmup": warmup, "kind": kind, "seed": seed, "blocks": blocks, "norm": norm}
    for lr, warmup, kind, seed, blocks, norm in RUNS
]
EXPERIMENT = Experiment("norms", SETTINGS, run, ("loss",), "0.001 0.003 0.01 0.03")

if __name__ == "__main__":
    EXPERIMENT.store()
