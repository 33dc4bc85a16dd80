"""The laboratory's seventh bet: without positions, does the model learn to count in 2,000 steps?

`make experiments NAME=counting` trains ten seeds, as `laboratory.py` trains its variants. What the
columns do not name stands as the laboratory begins; the learning rate falls until the last step.
"""

from collections.abc import Iterator
from typing import Any

import laboratory

from attnbook.learn.tables import Experiment


def run(**settings: Any) -> Iterator[dict]:
    """Train one model, as the laboratory does."""
    yield from laboratory.run(**settings)


SETTINGS = [{"positions": "none", "steps": 2000, "seed": seed} for seed in range(1, 11)]
EXPERIMENT = Experiment("counting", SETTINGS, run, ("loss", "exact"), "0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
