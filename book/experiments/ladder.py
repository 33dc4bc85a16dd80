"""Chapter 2: score functions, decoders and encoders at equal budget, and depth.

`make experiments NAME=ladder` trains every run below and stores a row for each run and length.
`decoder` is "bahdanau" (looks before its GRU moves) or "luong" (after), `ways` is 2 for a two-way
encoder, `taught` is the largest number of digits in training.
"""

import os
from collections.abc import Iterator
from itertools import product
from multiprocessing import get_context

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch

from attnbook.metrics import evaluate
from attnbook.number_words import Numbers
from attnbook.scores import AdditiveScore, BilinearScore, DotScore, ScaledDotScore
from attnbook.seq2seq import Decoder, Encoder, LuongDecoder, Seq2Seq
from attnbook.tables import store
from attnbook.training import train

SCORES = {
    "dot": lambda d: DotScore(),
    "scaled": lambda d: ScaledDotScore(),
    "bilinear": lambda d: BilinearScore(d, d),
    "additive": lambda d: AdditiveScore(d, d, d),
}
DECODERS = {"bahdanau": Decoder, "luong": LuongDecoder}
SEEDS = (0, 1, 2)
COLUMNS = ("score", "decoder", "ways", "layers", "width", "taught", "steps", "seed")
LADDER = [
    (score, decoder, ways, 1, 64, 9, steps, seed)
    for steps, score, decoder, ways, seed in product(
        (600, 300, 150), SCORES, DECODERS, (1, 2), SEEDS
    )
]
DEPTH = [
    ("additive", "bahdanau", 2, layers, 16, 12, steps, seed)
    for steps, layers, seed in product((2000, 600), (3, 2, 1), SEEDS)
]


def trained(score, decoder, ways, layers, width, taught, steps, seed) -> tuple[Seq2Seq, Numbers]:
    """A trained model and its task."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    task = Numbers(taught)
    encoder = Encoder(task.source_vocab, width, two_way=ways == 2, n_layers=layers)
    score = SCORES[score](width)
    model = Seq2Seq(encoder, DECODERS[decoder](task.target_vocab, width, score, n_layers=layers))
    train(model, lambda step: task.batch(step, seed=seed), model.loss, steps=steps, lr=0.01)
    return model, task


def run(settings: tuple) -> list[dict]:
    """Train one model and measure it on each length from 1 to 12 digits."""
    model, task = trained(*settings)
    rows = []
    for digits, numbers in task.held_out.items():
        quality = evaluate(model, task.encode(numbers))
        rows.append(
            {
                **dict(zip(COLUMNS, settings, strict=True)),
                "parameters": sum(p.numel() for p in model.parameters()),
                "digits": digits,
                "exact": round(quality.exact, 4),
            }
        )
    print(*settings, [row["exact"] for row in rows], flush=True)
    return rows


def rows() -> Iterator[dict]:
    """All runs, two at a time."""
    with get_context("spawn").Pool(2) as pool:
        for result in pool.imap(run, LADDER + DEPTH):
            yield from result


if __name__ == "__main__":
    store("ladder", rows())
