"""Chapter 2: do stacked GRUs help where one small layer has trouble?

`make experiments NAME=layers` trains decoders that move first, with a dot score and a two-way
encoder, on numbers of up to twelve digits. One, two and three layers have states of 16 numbers;
one wider layer has fewer parameters than two of them, or than three.
"""

from collections.abc import Iterator

from ladder import trained

from attnbook.learn import evaluate
from attnbook.learn.tables import Experiment

STEPS, LR = 800, 0.01


def run(layers: int, width: int, seed: int) -> Iterator[dict]:
    """Train one model and measure it on each length from 7 to 12 digits."""
    model, task, losses = trained(
        score="dot",
        decoder="luong",
        layers=layers,
        width=width,
        taught=12,
        steps=STEPS,
        seed=seed,
        lr=LR,
    )
    for digits in range(7, 13):
        quality = evaluate(model, task.encode(task.held_out[digits]))
        yield {
            "parameters": sum(p.numel() for p in model.parameters()),
            "loss": round(sum(losses[-50:]) / 50, 4),
            "digits": digits,
            "exact": round(quality.exact, 4),
        }


SETTINGS = [
    {"layers": layers, "width": width, "seed": seed}
    for seed in range(3)
    for layers, width in ((1, 16), (2, 16), (3, 16), (1, 20), (1, 24))
]
EXPERIMENT = Experiment("layers", SETTINGS, run, ("exact",), f"{LR}")

if __name__ == "__main__":
    EXPERIMENT.store()
