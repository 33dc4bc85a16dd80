"""Chapter 7: at which rate does each kind of language model learn best?

`make experiments NAME=language_rates` trains each kind for 400 steps at four rates (`characters.py`
has the recipe). `language.py` trains on at the best.
"""

from collections.abc import Iterator
from itertools import product

from characters import MODELS, learn

from attnbook.learn.tables import Experiment

RATES = (0.001, 0.003, 0.01, 0.03)


def run(model: str, seed: int, lr: float) -> Iterator[dict]:
    """One short run."""
    return learn(MODELS[model], seed, lr, (400,))


SETTINGS = [
    {"model": model, "seed": seed, "lr": lr} for seed, model, lr in product(range(2), MODELS, RATES)
]
EXPERIMENT = Experiment("language_rates", SETTINGS, run, ("bits",), "0.001 0.003 0.01 0.03")

if __name__ == "__main__":
    EXPERIMENT.store()
