"""Chapter 2: where attention points, with one-way and two-way encoders and three decoders.

`make experiments NAME=alignment` trains additive scores as `ladder` does and stores a row for each
run and length: quality, and shares of linked morphemes by where their strongest weight is. `on_`
is on the right word: of all, of digits and tens, of scale words (*hundred*, *thousand* ..); `late`
is one word late, of the digits that stand before a *hundred*.
"""

from collections.abc import Iterator
from itertools import product

from ladder import trained

from attnbook.learn import evaluate, link_offsets
from attnbook.learn.tables import Experiment
from attnbook.model import recorded
from attnbook.text import number_pair

SCALES = ("hundred", "thousand", "million", "billion")


def run(decoder: str, ways: int, seed: int) -> Iterator[dict]:
    """Train one model and measure it on each length from 1 to 12 digits."""
    model, task, _ = trained(decoder=decoder, ways=ways, steps=600, seed=seed, lr=0.01)
    for digits, numbers in task.held_out.items():
        batch, pairs = task.encode(numbers), [number_pair(n) for n in numbers]
        quality = evaluate(model, batch)
        with recorded(model) as weights:
            model(*batch)
        offsets = link_offsets(weights["decoder.attention"], pairs)
        words = [(*p.source[j : j + 2], "")[:2] for p in pairs for _, j in p.links]
        scale = offsets.new_tensor([word in SCALES for word, _ in words]).bool()
        before = offsets.new_tensor([after == "hundred" for _, after in words]).bool()
        share = lambda hits: round(hits.double().mean().item(), 4)  # noqa: E731
        yield {
            "digits": digits,
            "exact": round(quality.exact, 4),
            "bleu": round(quality.bleu, 2),
            "on_word": share(offsets == 0),
            "on_digits": share(offsets[~scale] == 0),
            "on_scale": share(offsets[scale] == 0),
            "late_before_hundred": share(offsets[before] == 1),
        }


SETTINGS = [
    {"decoder": decoder, "ways": ways, "seed": seed}
    for seed, (decoder, ways) in product(
        range(8), [("rnnsearch", 2), *product(("bahdanau", "luong"), (1, 2))]
    )
]
MEASURED = ("exact", "on_digits", "late_before_hundred")
EXPERIMENT = Experiment("alignment", SETTINGS, run, MEASURED, "0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
