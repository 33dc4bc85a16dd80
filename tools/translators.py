"""Train the six translators of number words, and store them in 8 bits: `make translators`.

All have the same data, width, steps, rate and seed. Five differ only in what the decoder reads of
the encoder; the sixth is a Transformer, for which this rate was the best of five (its last loss at
0.002, 0.003, 0.005, 0.01, 0.02: 98, 54, 26, 12, 138 in 100,000). Each takes a minute on a core. The
metadata of the files in `src/attnbook/weights` hold the settings and, for each number of digits,
the share of held-out numbers that the stored model translates exactly; training numbers have at
most `DIGITS` digits.
"""

import json
import platform
import sys
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from attnbook.learn import evaluate, train
from attnbook.model import Seq2Seq, Transformer
from attnbook.text import Numbers
from attnbook.weights.int8 import fill_int8, write_int8
from attnbook.weights.translators import HEADS, TRANSLATORS, new_translator

FOLDER = Path(__file__).parents[1] / "src" / "attnbook" / "weights"
COMMAND, SEED, STEPS, WIDTH, DIGITS, RATE = "make translators", 0, 2000, 32, 9, 0.01


def learn(name: str, steps: int = STEPS) -> tuple[Seq2Seq, list[float]]:
    """Train a translator for some steps; returns it and its losses."""
    torch.manual_seed(SEED)
    model, task = new_translator(name, WIDTH), Numbers(DIGITS)
    return model, train(model, task.batch, model.loss, steps, lr=RATE, seed=SEED)


def exact(model: Seq2Seq) -> dict[str, float]:
    """For each number of digits, the share of held-out numbers translated without an error."""
    task = Numbers(DIGITS)
    found = {d: evaluate(model, task.encode(some)).exact for d, some in task.held_out.items()}
    return {str(digits): round(share, 4) for digits, share in found.items()}


def about(name: str, model: Seq2Seq, seconds: float, losses: list[float]) -> dict[str, Any]:
    """The metadata of a run; the last loss is a mean over 50 steps."""
    task = Numbers(DIGITS)
    own = {"config": asdict(model.encoder.stack.config)} if isinstance(model, Transformer) else {}
    return own | {
        "translator": name,
        "d_model": WIDTH,
        "n_heads": HEADS.get(name, 1),
        "source": task.source_vocab.tokens,
        "target": task.target_vocab.tokens,
        "command": COMMAND,
        "seed": SEED,
        "steps": STEPS,
        "rate": RATE,
        "digits": DIGITS,
        "seconds": round(seconds),
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("attnbook", "torch", "numpy")},
        "first_losses": [round(loss, 4) for loss in losses[:3]],
        "last_loss": round(fmean(losses[-50:]), 5),
    }


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:] or TRANSLATORS:
        begin = time.process_time()
        model, losses = learn(name)
        said, path = (
            about(name, model, time.process_time() - begin, losses),
            FOLDER / f"{name}.safetensors",
        )
        write_int8(path, model, said)
        stored = fill_int8(path, new_translator(name, WIDTH))  # score the stored model
        said["exact"] = exact(stored)
        write_int8(path, model, said)
        print(name, path.stat().st_size, "bytes", said["seconds"], "s", json.dumps(said["exact"]))


if __name__ == "__main__":
    main()
