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
PLAIN = re.compile(r"[\w.-]+")  # what comes back from a table as it was


def folder() -> Path:
    """Where the tables are: in the installed package, or in `book/experiments` of a checkout."""
    package = Path(__file__).parent
    installed = package / "table_files"
    return installed if installed.is_dir() else package.parents[1] / "book" / "experiments"


def store(name: str, rows: Iterable[Mapping[str, object]]) -> Path:
    """Run an experiment to its end and store its rows as `<name>.csv`.

    The first lines, which begin with `#`, say by what command, when, how long, and with which
    versions the table was made. Until the end the rows are kept in `<name>.csv.partial`: a run that
    fails leaves there what it found, and the old table as it was.

    Args:
        name: of the table and of `book/experiments/<name>.py`.
        rows: the rows, all with the same columns; the experiment may compute them as it yields.

    Raises:
        ValueError: if there is no row, or at the first row that has other columns than the row
            before it, or a name or text that is more than letters, digits, `_`, `.` and `-`.
    """
    start = time.perf_counter()
    path = folder() / f"{name}.csv"
    partial = path.with_name(path.name + ".partial")
    columns: list[str] = []
    with partial.open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in rows:
            if not columns:
                columns = list(row)
                writer.writerow(columns)
            if set(row) != set(columns):
                raise ValueError(f"rows must have the same columns, {columns}, got {list(row)}")
            strange = [t for t in map(str, (*row, *row.values())) if not PLAIN.fullmatch(t)]
            if strange:
                raise ValueError(f"rows must hold only letters, digits, _, . and -, got {strange}")
            writer.writerow([row[column] for column in columns])
            file.flush()
    if not columns:
        raise ValueError("rows must be at least one, got none")
    minutes = (time.perf_counter() - start) / 60
    made = [f"command: make experiments NAME={name}"]
    made += [f"finished: {time.strftime('%Y-%m-%d')}, after {minutes:.1f} minutes"]
    made += [f"python {platform.python_version()}"]
    made += [f"{package} {version(package)}" for package in PACKAGES]
    table = partial.read_text(encoding="utf8")
    partial.write_text("".join(f"# {line}\n" for line in made) + table, encoding="utf8")
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
