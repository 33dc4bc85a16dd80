"""Chapter 2: score functions, decoders and encoders at equal budget.

`make experiments NAME=ladder` trains every run below and stores a row for each run and length.
`decoder` is "bahdanau" (looks before its GRU moves), "luong" (after) or, in other tables,
"rnnsearch"; `ways` is 2 for a two-way encoder.
"""

import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch

from attnbook.learn import evaluate, train
from attnbook.learn.tables import Experiment
from attnbook.model import (
    AdditiveScore,
    BilinearScore,
    Decoder,
    DotScore,
    Encoder,
    LuongDecoder,
    RNNsearchDecoder,
    ScaledDotScore,
    Seq2Seq,
)
from attnbook.text import Numbers

SCORES = {
    "dot": lambda d: DotScore(),
    "scaled": lambda d: ScaledDotScore(),
    "bilinear": lambda d: BilinearScore(d, d),
    "additive": lambda d: AdditiveScore(d, d, d),
}
DECODERS = {"bahdanau": Decoder, "luong": LuongDecoder, "rnnsearch": RNNsearchDecoder}


def trained(
    *, score="additive", decoder="bahdanau", ways=2, layers=1, width=64, taught=9, steps, seed, lr
) -> tuple[Seq2Seq, Numbers, list[float]]:
    """A trained model, its task, and the loss of each step."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    task = Numbers(taught)
    encoder = Encoder(task.source_vocab, width, two_way=ways == 2, n_layers=layers)
    reads = DECODERS[decoder](task.target_vocab, width, SCORES[score](width), n_layers=layers)
    model = Seq2Seq(encoder, reads)
    batches = lambda step: task.batch(step, seed=seed)  # noqa: E731
    return model, task, train(model, batches, model.loss, steps=steps, lr=lr)


def run(score: str, decoder: str, ways: int, steps: int, seed: int) -> Iterator[dict]:
    """Train one model and measure it on each length from 1 to 12 digits."""
    settings = {"score": score, "decoder": decoder, "ways": ways, "steps": steps, "seed": seed}
    model, task, _ = trained(**settings, lr=0.01)
    for digits, numbers in task.held_out.items():
        quality = evaluate(model, task.encode(numbers))
        yield {
            "parameters": sum(p.numel() for p in model.parameters()),
            "digits": digits,
            "exact": round(quality.exact, 4),
        }


SETTINGS = [
    {"score": score, "decoder": decoder, "ways": ways, "steps": steps, "seed": seed}
    for steps, score, decoder, ways, seed in product(
        (600, 300, 150), SCORES, ("bahdanau", "luong"), (1, 2), range(3)
    )
]
EXPERIMENT = Experiment("ladder", SETTINGS, run, ("exact",), "0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
