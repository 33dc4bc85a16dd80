"""Chapter 2: where attention points, with one-way and two-way encoders and both decoders.

`make experiments NAME=alignment` trains the additive score as `ladder` does and stores a row for
each run and length: quality, and the shares of linked morphemes whose strongest weight is on the
right word, one word late, or one early.
"""

from collections.abc import Iterator
from itertools import product
from multiprocessing import get_context

from ladder import COLUMNS, DECODERS, SEEDS, trained

from attnbook.metrics import evaluate, link_offsets
from attnbook.number_words import number_pair
from attnbook.recording import recorded
from attnbook.tables import store

RUNS = [
    ("additive", decoder, ways, 1, 64, 9, 600, seed)
    for decoder, ways, seed in product(DECODERS, (1, 2), SEEDS)
]


def run(settings: tuple) -> list[dict]:
    """Train one model and measure it on each length from 1 to 12 digits."""
    model, task = trained(*settings)
    rows = []
    for digits, numbers in task.held_out.items():
        batch = task.encode(numbers)
        quality = evaluate(model, batch)
        with recorded(model) as weights:
            model(*batch)
        offsets = link_offsets(weights["decoder.attention"], [number_pair(n) for n in numbers])
        share = {offset: (offsets == offset).float().mean().item() for offset in (0, 1, -1)}
        rows.append(
            {
                **dict(zip(COLUMNS, settings, strict=True)),
                "digits": digits,
                "exact": round(quality.exact, 4),
                "bleu": round(quality.bleu, 2),
                "on_word": round(share[0], 4),
                "one_late": round(share[1], 4),
                "one_early": round(share[-1], 4),
            }
        )
    print(*settings, [row["on_word"] for row in rows], flush=True)
    return rows


def rows() -> Iterator[dict]:
    """All runs, two at a time."""
    with get_context("spawn").Pool(2) as pool:
        for result in pool.imap(run, RUNS):
            yield from result


if __name__ == "__main__":
    store("alignment", rows())
