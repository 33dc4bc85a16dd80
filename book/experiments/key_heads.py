"""Chapter 7: two heads of keys and values for four heads of queries.

`make experiments NAME=key_heads` trains what stands between "base" (four) and "grouped" (one) of
`variants.py`, by the same recipe and of the same size.
"""

from collections.abc import Iterator
from dataclasses import replace

from characters import BASE, learn, of_base_size, transformer

from attnbook.learn.tables import Experiment

LR, HEADS = 0.01, 2


def run(heads: int, seed: int) -> Iterator[dict]:
    """One run."""
    config = of_base_size(replace(BASE, n_kv_heads=heads))
    for row in learn(transformer(config), seed, LR, (200,)):
        yield {"d_ff": config.d_ff, **row}


SETTINGS = [{"heads": HEADS, "seed": seed} for seed in range(3)]
EXPERIMENT = Experiment("key_heads", SETTINGS, run, ("bits",), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
