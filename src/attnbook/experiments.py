"""Tables of long runs: stored with what made them, read by the chapters that draw them."""

import csv
import os
import platform
import re
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

PACKAGES = ("attnbook", "torch", "numpy")


def folder() -> Path:
    """Where the tables are: in the installed package, or in `book/experiments` of a checkout."""
    package = Path(__file__).parent
    installed = package / "tables"
    return installed if installed.is_dir() else package.parents[1] / "book" / "experiments"


def store(name: str, rows: Iterable[Mapping[str, object]]) -> Path:
    """Run an experiment to its end and store its rows as `<name>.csv`, or nothing if it fails.

    The first lines, which begin with `#`, say by what command, when, how long, and with which
    versions the table was made.

    Args:
        name: of the table and of `book/experiments/<name>.py`.
        rows: the rows, all with the same columns; the experiment may compute them as it yields.

    Raises:
        ValueError: if there is no row, a row has other columns than the first, or a name or text
            is more than letters, digits, `_`, `.` and `-`.
    """
    start = time.perf_counter()
    table = [dict(row) for row in rows]
    columns = {tuple(row) for row in table}
    if len(columns) != 1:
        raise ValueError(f"rows must be at least one, all with the same columns, got {columns}")
    texts = {str(cell) for row in table for cell in (*row, *row.values())}
    odd = sorted(text for text in texts if not re.fullmatch(r"[\w.-]+", text))
    if odd:
        raise ValueError(f"rows must hold only letters, digits, _, . and -, got {odd}")
    minutes = (time.perf_counter() - start) / 60
    made = [f"command: make experiments NAME={name}"]
    made += [f"finished: {time.strftime('%Y-%m-%d')}, after {minutes:.1f} minutes"]
    made += [f"python {platform.python_version()}"]
    made += [f"{package} {version(package)}" for package in PACKAGES]
    path = folder() / f"{name}.csv"
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf8", newline="") as file:
        file.writelines(f"# {line}\n" for line in made)
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    os.replace(partial, path)
    return path


def load(name: str) -> np.ndarray:
    """The stored table as a structured array: `t["exact"][t["width"] == 64]`.

    Args:
        name: of the table.

    Raises:
        FileNotFoundError: if it is not stored; names those that are.
    """
    path = folder() / f"{name}.csv"
    if not path.exists():
        stored = sorted(p.stem for p in folder().glob("*.csv"))
        raise FileNotFoundError(f"name must be a stored table, one of {stored}, got {name!r}")
    with path.open(encoding="utf8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return np.atleast_1d(
        np.genfromtxt(lines, delimiter=",", names=True, dtype=None, encoding="utf8")
    )
