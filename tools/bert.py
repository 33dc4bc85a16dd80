"""Pretrain the book's own BERT, and store it in 8 bits: `make bert`.

It trains on presidents' speeches, on one core, for about half an hour. An interrupted run
resumes. The metadata of `src/attnbook/weights/bert.safetensors` hold its settings and scores.
"""

import json
import platform
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from attnbook.learn.loop import Checkpoint, Cosine, Run, train
from attnbook.learn.optimizers import Named
from attnbook.learn.pretraining import (
    SEES,
    Examples,
    Neighbours,
    SpeechPairs,
    Topic,
    guess_words,
    judge_pairs,
    next_accuracy,
    pretraining_loss,
    word_accuracy,
)
from attnbook.model.bert import Bert
from attnbook.model.config import BERT
from attnbook.text.speeches import sentences, speeches
from attnbook.text.tokenizers import WordPiece
from attnbook.weights import int8

ROOT = Path(__file__).parents[1]
PATH = ROOT / "src" / "attnbook" / "weights" / "bert.safetensors"
KEPT = ROOT / ".cache" / "bert"
COMMAND, SEED, STEPS = "make bert", 0, 12_000
CONFIG = replace(BERT, d_model=128, n_heads=4, d_ff=256, n_layers=4, max_len=128, dropout=0.0)
RATE = Cosine(2e-3, STEPS, warmup=500)
LENGTHS_SCORED, BATCHES = (64, 128), 32
TOKENS = 2048  # in a batch
LENGTHS = {0: 16, 1500: 32, 2500: 64, 4000: 128}  # first update -> tokens in a row
ALONE = range(4000, 4400)  # updates without masked words: only next-sentence prediction


def length(step: int) -> int:
    """Number of tokens in a row: few at first, when neighbouring words teach most."""
    return LENGTHS[max(begin for begin in LENGTHS if begin <= step)]


def tokenizer() -> WordPiece:
    """The tokenizer, trained on the training texts."""
    texts = (sentence for speech in speeches("train") for sentence in sentences(speech.text))
    return WordPiece.train(texts, 3800)


def adamw(parameters: Named) -> torch.optim.AdamW:
    """AdamW with the fused kernel."""
    return torch.optim.AdamW(parameters, weight_decay=0.01, fused=True)


class Clock:
    """A hook that adds up the seconds of a run, across interruptions, and prints its losses."""

    def __init__(self, path: Path, every: int = 500):
        self.path, self.every = path, every
        self.seconds = 0.0

    def __call__(self, run: Run) -> None:
        if run.step % self.every:
            return
        now = time.process_time()
        if not run.step or not hasattr(self, "begin"):
            self.seconds = float(self.path.read_text()) if run.step else 0.0
        else:
            self.seconds += now - self.begin
            recent = sum(run.losses[-self.every :]) / self.every
            print(f"{run.step} of {run.steps}: {recent:.3f} nats, {self.seconds:.0f} s", flush=True)
        self.begin = now
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(str(self.seconds))


def batch(pairs: SpeechPairs, step: int) -> Examples:
    """The batch of a step."""
    n, share = length(step), 0.0 if step in ALONE else 0.15
    return pairs.examples("train", n, step, batch_size=TOKENS // n, seed=SEED, share=share)


def untrained(pairs: SpeechPairs) -> Bert:
    """The model before its first step."""
    torch.manual_seed(SEED)
    return Bert(pairs.tokenizer.vocab, CONFIG)


def scores(model: Bert, pairs: SpeechPairs, n: int, batches: int = BATCHES) -> dict[str, float]:
    """Accuracies of a model on held-out years, in rows of n tokens."""
    says = partial(judge_pairs, model)
    asked: dict[str, Any] = {"n": n, "batches": batches}
    return {
        "words": word_accuracy(partial(guess_words, model), pairs, **asked),
        "next": next_accuracy(says, pairs, **asked),
        "next_same": next_accuracy(says, pairs, negatives="same", **asked),
    }


def without_model(pairs: SpeechPairs, n: int, batches: int = BATCHES) -> dict[str, float]:
    """Baselines without a model: counts of neighbouring words, and words that two texts share."""
    topic = Topic(pairs, n=n)
    asked: dict[str, Any] = {"n": n, "batches": batches}
    return {
        **{
            f"words_{sees}": word_accuracy(Neighbours(pairs, sees), pairs, **asked) for sees in SEES
        },
        "next_topic": next_accuracy(topic, pairs, **asked),
        "next_same_topic": next_accuracy(topic, pairs, negatives="same", **asked),
    }


def learn(model: Bert, pairs: SpeechPairs, steps: int = STEPS, on_step: Iterable = ()) -> list:
    """Train for some steps; returns the losses."""
    return train(
        model,
        partial(batch, pairs),
        partial(pretraining_loss, model),
        steps,
        lr=RATE,
        optimizer=adamw,
        on_step=on_step,
        seed=SEED,
    )


def main() -> None:
    torch.set_num_threads(1)
    pairs, clock = SpeechPairs(tokenizer()), Clock(KEPT / "seconds")
    model = untrained(pairs)
    losses = learn(model, pairs, on_step=[Checkpoint(KEPT / "run.safetensors"), clock])
    metadata = about(COMMAND, SEED, clock, losses)
    int8.save_int8(PATH, model, pairs.tokenizer, metadata)
    rounded, _ = int8.load_int8(PATH)  # score the stored model
    models = {"": rounded, "_float32": model, "_untrained": untrained(pairs).eval()}
    for n in LENGTHS_SCORED:
        found = {
            name + kind: score
            for kind, one in models.items()
            for name, score in scores(one, pairs, n).items()
        }
        rows = found | without_model(pairs, n)
        metadata.setdefault("scores", {})[str(n)] = {k: round(v, 4) for k, v in rows.items()}
    int8.save_int8(PATH, model, pairs.tokenizer, metadata)
    print(json.dumps(metadata["scores"], indent=1), PATH.stat().st_size, "bytes")


def about(command: str, seed: int, clock: Clock, losses: list[float]) -> dict[str, Any]:
    """The metadata of a run for the weights file; losses are means over the clock's interval."""
    every, steps = clock.every, len(losses)
    return {
        "command": command,
        "seed": seed,
        "steps": steps,
        "seconds": round(clock.seconds),
        "data": data_hash(),
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("attnbook", "torch", "numpy")},
        "first_losses": [round(loss, 4) for loss in losses[:3]],
        "losses": [round(fmean(losses[i : i + every]), 4) for i in range(0, steps, every)],
    }


def data_hash() -> str:
    """A hash of the training texts."""
    return sha256("\n".join(speech.text for speech in speeches("train")).encode()).hexdigest()


if __name__ == "__main__":
    main()
