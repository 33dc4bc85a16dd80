"""Chapter 7: a Transformer, a GRU and a stack of convolutions write presidents' speeches.

`make experiments NAME=language` trains a language model of characters of each kind, at equal
numbers of parameters, each at its best rate of `language_rates`, with three seeds, for 5,000 steps
(`characters.py` has the recipe). "started_3" is the Transformer behind one convolution of width 3;
"started_1" is its control: width 1, so as many layers and no neighbour.
"""

from collections.abc import Iterator
from itertools import product

from characters import MODELS, best_rate, learn

from attnbook.learn.tables import Experiment

RECORDED = (50, 100, 200, 400, 800, 1600, 3200, 5000)


def run(model: str, seed: int, lr: float) -> Iterator[dict]:
    """One run."""
    return learn(MODELS[model], seed, lr, RECORDED)


SETTINGS = [
    {"model": model, "seed": seed, "lr": best_rate(model)}
    for seed, model in product(range(3), MODELS)
]
EXPERIMENT = Experiment("language", SETTINGS, run, ("bits",), "those of language_rates")

if __name__ == "__main__":
    EXPERIMENT.store()
