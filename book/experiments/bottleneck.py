"""Chapter 1: quality against length, for growing states, with and without attention.

`make experiments NAME=bottleneck` trains every run below and stores a row for each run and length.
A decoder is "plain" (starts from the encoder's last state), "repeat" (also reads that state at
every step) or "attention" (additive scores over all states).
"""

import os
from multiprocessing import get_context

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch

from attnbook.metrics import evaluate
from attnbook.number_words import Numbers, number_pair
from attnbook.scores import AdditiveScore, LastKeyScore
from attnbook.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.tables import store
from attnbook.training import train

SEEDS = (0, 1, 2)
SHORT, LONG, LONGER = 600, 4000, 12000
ROUND_BILLIONS = tuple(k * 10**9 for k in range(1, 1000) if k % 100 != 1 or k == 1)
# (decoder, width, steps, whether short round numbers with the word "billion" are trained on)
RUNS = [
    *(("plain", width, LONG, False) for width in (256, 128, 64, 32)),
    *(("plain", width, LONGER, False) for width in (64, 32)),
    *((decoder, 64, SHORT, False) for decoder in ("plain", "repeat", "attention")),
    ("attention", 64, SHORT, True),
]


def run(decoder: str, width: int, steps: int, billion: bool, seed: int) -> list[dict]:
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
    rows = []
    for digits, numbers in task.held_out.items():
        quality = evaluate(model, task.encode(numbers))
        rows.append(
            {
                "decoder": decoder,
                "width": width,
                "steps": steps,
                "billion": int(billion),
                "seed": seed,
                "digits": digits,
                "words": round(sum(len(number_pair(n).source) for n in numbers) / len(numbers), 2),
                "exact": round(quality.exact, 4),
                "token": round(quality.token, 4),
                "bleu": round(quality.bleu, 2),
                "loss": round(sum(losses[-100:]) / 100, 5),
            }
        )
    print(decoder, width, steps, billion, seed, [row["exact"] for row in rows], flush=True)
    return rows


def _run(job: tuple) -> list[dict]:
    return run(*job)


def rows():
    """All runs, two at a time, the long ones first."""
    jobs = [(*settings, seed) for settings in RUNS for seed in SEEDS]
    with get_context("spawn").Pool(2) as pool:
        for result in pool.imap(_run, jobs):
            yield from result


if __name__ == "__main__":
    store("bottleneck", rows())
