"""Chapter 7: how many blocks? Language models of 1, 2 and 6 blocks beside the 4 of `language.py`.

`make experiments NAME=depth` trains them by the recipe of `language.py`: "deeper" with the same
d_model, so that blocks add parameters, and "thinner" with the same number of parameters.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from language import BASE, of_base_size, run, transformer

from attnbook.tables import store

RECORDED = (200,)
WIDTHS = {1: 128, 2: 88, 6: 48}  # multiples of 8 for four rotary heads; d_ff takes up the rest


def rows() -> Iterator[dict]:
    """All runs, one after another."""
    for seed, (n_layers, d_model) in product(range(3), WIDTHS.items()):
        deeper = replace(BASE, n_layers=n_layers)
        thinner = of_base_size(replace(deeper, d_model=d_model))
        for name, config in {"deeper": deeper, "thinner": thinner}.items():
            for row in run(transformer(config), seed, RECORDED):
                sizes = {"d_model": config.d_model, "d_ff": config.d_ff}
                yield {"model": name, "layers": n_layers, **sizes, **row}
            print(name, row, flush=True)


if __name__ == "__main__":
    store("depth", rows())
