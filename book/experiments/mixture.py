"""Chapter 7: a mixture of eight feed-forward networks, of which each character uses two.

`make experiments NAME=mixture` trains small language models of characters, all at one rate: two
blocks, windows of 64 characters of presidents' speeches. "dense" is a plain one. "mixture"
has eight networks of half its d_ff in every block, and uses the best two for each character: as
many active operations, but for the router, and an even load is part of its loss. "free" is the same
without that part. "wide" is one network as large as all eight: as many parameters as the mixture,
and four times the feed-forward operations of all others. `busiest` and `idlest` are the shares of
the choices that fall on the network with the most and the fewest, the mean over blocks.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import torch
from characters import bits, parameters
from torch import Tensor, nn

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import TransformerConfig, TransformerDecoder, calls
from attnbook.model.costs import operations
from attnbook.model.mixture import Mixture, imbalance, load
from attnbook.text import Sequences
from attnbook.text.speeches import VOCAB, windows

LR, STEPS, WARMUP = 0.01, 300, 30
LENGTH, BATCH = 64, 8
PART = 0.01  # of the imbalance in the loss
N_EXPERTS, TOP = 8, 2
BASE = TransformerConfig(d_model=48, n_heads=4, d_ff=192, n_layers=2, positions="rotary")


def build(model: str) -> TransformerDecoder:
    """An untrained model."""
    config = replace(BASE, d_ff=4 * BASE.d_ff) if model == "wide" else BASE
    decoder = TransformerDecoder(VOCAB, config)
    if model in ("mixture", "free"):
        small = replace(BASE, d_ff=BASE.d_ff // TOP)
        for block in decoder.stack.blocks:
            block.feed_forward = Mixture(small, N_EXPERTS, TOP)
    return decoder


def routed(model: nn.Module, pieces: Sequences) -> tuple[Tensor, list[Tensor]]:
    """Bits per character, and the scores of every router."""
    with calls(model) as seen:
        found = bits(model, pieces).mean()
    return found, [out for path, (_, out) in seen.items() if path.endswith("router")]


def run(model: str, seed: int) -> Iterator[dict]:
    """One run."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    decoder = build(model)
    held_out = windows("validation", LENGTH, 0, batch_size=256)
    counted = windows("train", LENGTH, 0, batch_size=1)

    def loss(pieces: Sequences) -> Tensor:
        if model != "mixture":
            return bits(decoder, pieces).mean()
        right, scores = routed(decoder, pieces)
        return right + PART * sum(imbalance(each, TOP) for each in scores) / len(scores)

    train(
        decoder,
        lambda step: windows("train", LENGTH, step, batch_size=BATCH, seed=seed),
        loss,
        steps=STEPS,
        lr=Cosine(LR, STEPS, WARMUP),
        seed=seed,
    )
    with torch.no_grad():
        value, scores = routed(decoder, held_out)
    loads = torch.stack([load(each, TOP) for each in scores] or [torch.ones(1)])
    yield {
        "parameters": parameters(decoder),
        "operations": operations(lambda: bits(decoder, counted).mean()) // LENGTH,
        "bits": round(value.item(), 4),
        "busiest": round(loads.max(-1).values.mean().item(), 4),
        "idlest": round(loads.min(-1).values.mean().item(), 4),
    }


MODELS = ("dense", "mixture", "free", "wide")
SETTINGS = [{"model": model, "seed": seed} for seed, model in product(range(3), MODELS)]
EXPERIMENT = Experiment("mixture", SETTINGS, run, ("bits",), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
