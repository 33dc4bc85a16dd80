"""Chapter 7: what a modern decoder changed, one change at a time, at equal numbers of parameters.

`make experiments NAME=variants` trains language models of characters by the recipe of
`language.py`. Its model "transformer" is the unchanged one; it has rotary positions, and
"sinusoidal" is the same without. What a change saves in parameters, the feed-forward network gets,
and what it costs it gives.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from language import BASE, of_base_size, run, transformer

from attnbook.tables import store

RECORDED = (200,)
CHANGES: dict[str, dict] = {
    "rms": {"normalizer": "rms"},
    "swiglu": {"activation": "silu", "gated": True},
    "grouped": {"n_kv_heads": 1},
    "qk_norm": {"qk_norm": True},
}
ALL = {key: value for change in CHANGES.values() for key, value in change.items()}
MODELS = {
    name: of_base_size(replace(BASE, **change)) for name, change in {**CHANGES, "all": ALL}.items()
}


def rows() -> Iterator[dict]:
    """All runs, one after another."""
    for seed, (name, config) in product(range(3), MODELS.items()):
        for row in run(transformer(config), seed, RECORDED):
            yield {"model": name, "d_ff": config.d_ff, **row}
        print(name, row, flush=True)


if __name__ == "__main__":
    store("variants", rows())
