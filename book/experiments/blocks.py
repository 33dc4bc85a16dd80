"""Chapter 6: what a Transformer loses when it is trained anew without one of its parts.

`make experiments NAME=blocks` trains the whole model and one without each part on `numbers`, three
seeds each, and stores a row a run. `loss_40` is the mean training loss of steps 21 to 40, in nats a
morpheme, teacher forced, and so on. `exact` is the share of held-out numbers of 1 to 9 digits that
are translated without an error; `now` and `then` are the losses of the trained model on held-out
numbers in one pass, as in training, and word by word, as in writing. `of_N` is the translation of
the number N, its morphemes joined by underscores ("none" if the model wrote nothing).
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.learn import Cosine, evaluate, train
from attnbook.learn.tables import Experiment
from attnbook.model import TINY, Block, Transformer
from attnbook.text import Numbers

STEPS, BATCH, LR, WARMUP, EVERY = 480, 32, 0.004, 50, 20
SEEDS = (0, 1, 2)
SETTINGS = {
    "positions": {"positions": "none"},
    "residual": {"residual": False},
    "norm": {"norm": "none"},
    "feed-forward": {"d_ff": 0},
    "heads": {"n_heads": 1},
}
HOOKED = ("self-attention", "mask", "cross-attention")
PARTS = ("whole", *HOOKED, *SETTINGS)
task = Numbers(9)


def give_nothing(attention: nn.Module, args: tuple, out: Tensor) -> Tensor:
    """A hook after attention: zeros, so that only the residual is left."""
    return torch.zeros_like(out)


def see_all(attention: nn.Module, args: tuple, options: dict) -> tuple:
    """A hook before attention: no causal mask."""
    return args, options | {"causal": False}


def without(part: str, seed: int) -> Transformer:
    """An untrained model that lacks one part, or nothing ("whole")."""
    torch.manual_seed(seed)
    config = replace(TINY, d_ff=128)
    config = replace(config, **SETTINGS.get(part, {}))
    model = Transformer(task.source_vocab, task.target_vocab, config)
    for block in model.modules():
        if not isinstance(block, Block):
            continue
        if part == "self-attention":
            block.attention.register_forward_hook(give_nothing)
        elif part == "cross-attention" and block.cross is not None:
            block.cross.register_forward_hook(give_nothing)
        elif part == "mask":
            block.attention.register_forward_pre_hook(see_all, with_kwargs=True)
    return model


def trained(part: str, seed: int, steps: int = STEPS) -> tuple[Transformer, list[float]]:
    """A trained model and its losses."""
    torch.set_num_threads(1)
    model = without(part, seed)
    losses = train(
        model,
        lambda step: task.batch(step, batch_size=BATCH, seed=seed),
        model.loss,
        steps=steps,
        lr=Cosine(LR, steps, WARMUP),
    )
    return model, losses


def held_out() -> list[int]:
    """Numbers of 1 to 9 digits that were kept for testing."""
    return [number for digits in range(1, 10) for number in task.held_out[digits]]


@torch.no_grad()
def losses_of(model: Transformer) -> tuple[float, float]:
    """Loss on held-out numbers in one pass, and word by word, each on the beginning alone."""
    source, target = task.encode(held_out()[::4])

    def loss(logits: Tensor) -> float:
        pad = task.target_vocab.pad
        return cross_entropy(logits.mT, target[:, 1:], ignore_index=pad).item()

    cut = [model(source, target[:, : t + 1])[:, -1] for t in range(target.shape[1] - 1)]
    return loss(model(source, target[:, :-1])), loss(torch.stack(cut, 1))


def shown() -> list[int]:
    """A held-out number of two, four, six and eight digits each."""
    return [task.held_out[digits][4] for digits in (2, 4, 6, 8)]


def translations(model: Transformer) -> list[str]:
    """What the model writes for the numbers that are shown."""
    tokens = model.translate(task.encode(shown()).source).tokens
    return ["_".join(task.target_vocab.decode(row)) or "none" for row in tokens]


def run(off: str, seed: int) -> Iterator[dict]:
    """One run."""
    model, losses = trained(off, seed)
    now, then = losses_of(model)
    row: dict[str, object] = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "exact": round(evaluate(model, task.encode(held_out())).exact, 4),
        "now": round(now, 4),
        "then": round(then, 4),
    }
    for step in range(EVERY, STEPS + 1, EVERY):
        row[f"loss_{step}"] = round(sum(losses[step - EVERY : step]) / EVERY, 4)
    row |= {f"of_{n}": text for n, text in zip(shown(), translations(model), strict=True)}
    yield row


RUNS = [{"off": part, "seed": seed} for seed, part in product(SEEDS, PARTS)]
EXPERIMENT = Experiment("blocks", RUNS, run, ("exact", "now", "then"), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
