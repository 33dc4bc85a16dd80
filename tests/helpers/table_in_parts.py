"""Started by test_tables.py, also twice at once: the runs of a part of a table, or the table.

`python table_in_parts.py FOLDER`, with the part in the variable ATTNBOOK_PART.
"""

import sys
from pathlib import Path

from attnbook.learn import tables
from attnbook.learn.tables import Experiment

FOLDER = Path(sys.argv[1])
tables.folder = lambda: FOLDER


def run(width: int, seed: int) -> list[dict]:
    """Two rows, and a word about the run in a file."""
    with (FOLDER / "made").open("a") as file:
        file.write("run\n")
    return [{"digits": n, "exact": (width + seed - 10 * n) / 100} for n in (1, 2)]


SETTINGS = [{"width": width, "seed": seed} for width in (32, 64) for seed in range(3)]
Experiment("widths", SETTINGS, run, ("exact",)).store()
