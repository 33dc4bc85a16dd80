"""Chapter 7: how many blocks? Language models of 1, 2, 4 and 6 blocks.

`make experiments NAME=depth` trains them for 200 steps, all at one rate (`characters.py` has the
recipe): "deeper" with the same d_model, so that blocks add parameters, and "thinner" with the same
number of parameters. With 4 blocks both are the same model, stored as "deeper".
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from characters import BASE, learn, of_base_size, transformer

from attnbook.learn.tables import Experiment

LR = 0.01
WIDTHS = {1: 128, 2: 88, 6: 48}  # multiples of 8 for four rotary heads; d_ff takes up the rest


def run(model: str, layers: int, seed: int) -> Iterator[dict]:
    """One run."""
    config = replace(BASE, n_layers=layers)
    if model == "thinner":
        config = of_base_size(replace(config, d_model=WIDTHS[layers]))
    for row in learn(transformer(config), seed, LR, (200,)):
        yield {"d_model": config.d_model, "d_ff": config.d_ff, **row}


RUNS = [*product(("deeper",), (1, 2, 4, 6)), *product(("thinner",), WIDTHS)]
SETTINGS = [
    {"model": model, "layers": layers, "seed": seed}
    for seed, (model, layers) in product(range(3), RUNS)
]
EXPERIMENT = Experiment("depth", SETTINGS, run, ("bits",), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
