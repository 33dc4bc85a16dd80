"""The book's small recipe against a well-known one, on one text, in the same seconds.

python -m benchmarks.recipe [TEXT] [--seconds 150] [--threads 2] [--seed 0]

The known recipe is `attnbook/recipes/known.toml`, nanoGPT's for a processor: 4 layers, 4 heads, 128
wide, characters, 64 of them at a time, 12 rows, 2,000 updates. It runs as it is, and then with as
many updates as fit into the seconds; ours is `small.toml`, in the same seconds, which include its
tokenizer. Each learns from the first nine tenths of the text. Each is scored by one function on all
of the last tenth: the nats that it needs, a character of the text, with its own context. Bar: at
most as many parameters as the known recipe, and at most 1.58 / 1.89 of its nats.
"""

import argparse
import sys
import tempfile
import time

from attnbook.corpus import join, nats
from attnbook.settings import read_settings
from attnbook.token_files import documents
from attnbook.train import load, run

BAR = 1.58 / 1.89


def learn(recipe: str, changes: list[str], text: str, seed: int, threads: int) -> dict[str, float]:
    """Train by a recipe, and score what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        settings = read_settings(
            recipe,
            [
                f"data.source='{text}'",
                f"train.folder='{folder}/run'",
                f"train.seed={seed}",
                f"train.threads={threads}",
                "train.evaluate=1000000",  # at the end alone
                *changes,
            ],
        )
        start = time.perf_counter()
        made = run(settings)
        seconds = time.perf_counter() - start
        model, tokenizer = load(made)
        steps = read_settings(made / "config.toml").train.steps
    held_out = ["".join(parts) for parts in documents(text, "validation")]
    needed = nats(model, join(tokenizer, held_out), settings.train.context).sum().item()
    return {
        "updates": steps,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": seconds,
        "nats": needed / sum(map(len, held_out)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipe")
    parser.add_argument(
        "text", nargs="?", default="sotu", help="a text file, as tiny Shakespeare; else speeches"
    )
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    fill = [f"train.seconds={asked.seconds}", "train.steps=0"]
    rows = {"known, as it is": ("known", []), "known": ("known", fill), "ours": ("small", fill)}
    found = {}
    print("                  updates  parameters  seconds  nats a character")
    for name, (recipe, changes) in rows.items():
        found[name] = row = learn(recipe, changes, asked.text, asked.seed, asked.threads)
        print(
            f"{name:16}{row['updates']:9.0f}{row['parameters']:12.0f}"
            f"{row['seconds']:9.0f}{row['nats']:18.4f}",
            flush=True,
        )
    ours = found.pop("ours")
    for name, row in found.items():
        print(f"ours / {name}: {ours['nats'] / row['nats']:.3f} of the nats")
    known = found["known, as it is"]
    kept = ours["nats"] <= BAR * known["nats"] and ours["parameters"] <= known["parameters"]
    print(f"at most {BAR:.3f}, and no more parameters:", "kept" if kept else "MISSED")
    sys.exit(not kept)


if __name__ == "__main__":
    main()
