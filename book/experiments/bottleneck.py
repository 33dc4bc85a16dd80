"""Chapter 1: quality against length, for growing states, with and without attention.

`make experiments NAME=bottleneck` trains every run below and stores a row for each run and length.
A decoder is "plain" (starts from the encoder's last state), "repeat" (also reads that state at
every step) or "attention" (additive scores over all states).
"""

import os
from collections.abc import Iterator
from itertools import product

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch

from attnbook.learn import evaluate, train
from attnbook.learn.tables import Experiment
from attnbook.model import AdditiveScore, Decoder, Encoder, LastKeyScore, Seq2Seq
from attnbook.text import Numbers, number_pair

ROUND_BILLIONS = tuple(k * 10**9 for k in range(1, 1000) if k % 100 != 1 or k == 1)
# decoder, width, steps, whether short round numbers with the word "billion" are trained on
RUNS = [
    *(("plain", width, 4000, 0) for width in (256, 128, 64, 32)),
    *(("plain", width, 12000, 0) for width in (64, 32)),
    *((decoder, 64, 600, 0) for decoder in ("plain", "repeat", "attention")),
    ("attention", 64, 600, 1),
]


def run(decoder: str, width: int, steps: int, billion: int, seed: int) -> Iterator[dict]:
    """Train one model and measure it on each length from 1 to 12 digits."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    task = Numbers(9, extra=ROUND_BILLIONS if billion else ())
    scores = {
        "plain": lambda: None,
        "repeat": LastKeyScore,
        "attention": lambda: AdditiveScore(width, width, width),
    }
    model = Seq2Seq(
        Encoder(task.source_vocab, width), Decoder(task.target_vocab, width, scores[decoder]())
    )
    lr = min(0.01, 0.64 / width)
    losses = train(model, lambda s: task.batch(s, seed=seed), model.loss, steps=steps, lr=lr)
    for digits, numbers in task.held_out.items():
        quality = evaluate(model, task.encode(numbers))
        yield {
            "digits": digits,
            "words": round(sum(len(number_pair(n).source) for n in numbers) / len(numbers), 2),
            "exact": round(quality.exact, 4),
            "token": round(quality.token, 4),
            "bleu": round(quality.bleu, 2),
            "loss": round(sum(losses[-100:]) / 100, 5),
        }


SETTINGS = [
    {"decoder": decoder, "width": width, "steps": steps, "billion": billion, "seed": seed}
    for (decoder, width, steps, billion), seed in product(RUNS, range(3))
]
EXPERIMENT = Experiment(
    "bottleneck", SETTINGS, run, ("exact", "token"), "0.01, at most 0.64 over the width"
)

if __name__ == "__main__":
    EXPERIMENT.store()
