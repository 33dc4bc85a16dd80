"""Chapter 2: score functions, decoders, encoders and depth on the same data with the same budget.

`make experiments NAME=ladder` trains every run below and stores a row for each run and length.
`after_gru` says where the decoder attends: 0 before its GRU (Bahdanau), 1 after it (Luong). `ways`
is 2 for a two-way encoder. `taught` is the largest number of digits in training.
"""

import os
from itertools import product
from multiprocessing import get_context

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch

from attnbook.attention import AdditiveScore, BilinearScore, DotScore, ScaledDotScore
from attnbook.data import Numbers, number_pair
from attnbook.experiments import store
from attnbook.metrics import evaluate, link_offsets
from attnbook.seq2seq import Decoder, Encoder, LuongDecoder, Seq2Seq
from attnbook.training import train

SCORES = {
    "dot": lambda d: DotScore(),
    "scaled": lambda d: ScaledDotScore(),
    "bilinear": lambda d: BilinearScore(d, d),
    "additive": lambda d: AdditiveScore(d, d, d),
}
SEEDS = (0, 1, 2)
LADDER = [
    {"score": score, "after_gru": after_gru, "ways": ways, "steps": steps}
    for steps, score, after_gru, ways in product((600, 300, 150), SCORES, (0, 1), (1, 2))
]
DEPTH = [
    {"score": "additive", "after_gru": 0, "ways": 2, "layers": layers, "steps": steps}
    for steps, layers in product((2000, 600), (3, 2, 1))
]
RUNS = [
    *({**run, "layers": 1, "width": 64, "taught": 9} for run in LADDER),
    *({**run, "width": 16, "taught": 12} for run in DEPTH),
]


def run(settings: dict, seed: int) -> list[dict]:
    """Train one model and measure it on each length from 1 to 12 digits."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    task, width, layers = Numbers(settings["taught"]), settings["width"], settings["layers"]
    encoder = Encoder(len(task.source_vocab), width, two_way=settings["ways"] == 2, n_layers=layers)
    decoder = LuongDecoder if settings["after_gru"] else Decoder
    score = SCORES[settings["score"]](width)
    model = Seq2Seq(encoder, decoder(len(task.target_vocab), width, score, n_layers=layers))
    train(
        model,
        lambda step: task.batch(step, seed=seed),
        model.loss,
        steps=settings["steps"],
        lr=0.01,
    )
    rows = []
    for digits, numbers in task.held_out.items():
        batch = task.encode(numbers)
        quality = evaluate(model, batch, task.target_vocab)
        offsets = link_offsets(model(*batch)[1], [number_pair(n) for n in numbers])
        share = {offset: (offsets == offset).float().mean().item() for offset in (0, 1, -1)}
        rows.append(
            {
                **settings,
                "seed": seed,
                "parameters": sum(p.numel() for p in model.parameters()),
                "digits": digits,
                "exact": round(quality.exact, 4),
                "bleu": round(quality.bleu, 2),
                "on_word": round(share[0], 4),
                "one_late": round(share[1], 4),
                "one_early": round(share[-1], 4),
            }
        )
    print(*settings.values(), seed, [row["exact"] for row in rows], flush=True)
    return rows


def _run(job: tuple) -> list[dict]:
    return run(*job)


def rows():
    """All runs, two at a time."""
    jobs = [(settings, seed) for settings in RUNS for seed in SEEDS]
    with get_context("spawn").Pool(2) as pool:
        for result in pool.imap(_run, jobs):
            yield from result


if __name__ == "__main__":
    store("ladder", rows())
