"""Chapter 7: what a modern decoder changed, one change at a time, at equal numbers of parameters.

`make experiments NAME=variants` trains language models of characters (`characters.py` has the
recipe) for 200 steps, all at one rate. "base" is the unchanged one, with rotary positions. What a
change saves in parameters, the feed-forward network gets, and what it costs it gives. "none" is the
base without positions, trained longer and with two seeds: the control for rotary and for sinusoidal
positions, whose runs are in the table of `language.py`.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from characters import BASE, learn, of_base_size, transformer

from attnbook.learn.tables import Experiment

LR = 0.01
CHANGES: dict[str, dict] = {
    "rms": {"normalizer": "rms"},
    "swiglu": {"activation": "silu", "gated": True},
    "grouped": {"n_kv_heads": 1},
    "qk_norm": {"qk_norm": True},
}
ALL = {key: value for change in CHANGES.values() for key, value in change.items()}
MODELS = {
    "base": BASE,
    **{n: of_base_size(replace(BASE, **c)) for n, c in {**CHANGES, "all": ALL}.items()},
    "none": replace(BASE, positions="none"),
}


def run(model: str, seed: int) -> Iterator[dict]:
    """One run."""
    config, steps = MODELS[model], (200, 400, 800, 1600) if model == "none" else (200,)
    for row in learn(transformer(config), seed, LR, steps):
        yield {"d_ff": config.d_ff, **row}


SETTINGS = [
    {"model": model, "seed": seed}
    for seed, model in product(range(3), MODELS)
    if model != "none" or seed < 2
]
EXPERIMENT = Experiment("variants", SETTINGS, run, ("bits",), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
