"""Tables of long runs: stored with what made them, read by the chapters that draw them."""

import csv
import inspect
import json
import math
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("attnbook", "torch", "numpy")
PLAIN = re.compile(r"[\w.-]+")  # what comes back from a table as it was
SPREADS = 4  # so far from the mean of its seeds may a run be that is made again


def folder() -> Path:
    """Where the tables are: in the installed package, or in `book/experiments` of a checkout."""
    package = Path(__file__).parent
    installed = package / "table_files"
    return installed if installed.is_dir() else package.parents[1] / "book" / "experiments"


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


@dataclass(frozen=True)
class Experiment:
    """Many runs of one kind, and the table of what they found.

    Attributes:
        name: of the table and of `book/experiments/<name>.py`.
        settings: of each run, in the table's order: its first columns, all with the same names.
            What differs by chance alone is named `seed`.
        run: makes one run, called with its settings by name; gives its rows, without them.
        measured: the columns that another machine finds again, within the spread of the seeds.
        rates: the learning rates that were tried, in words; "" where nothing is trained.

    Raises:
        ValueError: if there is no run, two runs have the same settings, or the settings differ in
            their names.
    """

    name: str
    settings: Sequence[Mapping[str, Any]]
    run: Callable[..., Iterable[Mapping[str, Any]]]
    measured: tuple[str, ...]
    rates: str = ""

    def __post_init__(self) -> None:
        names = dict.fromkeys(tuple(setting) for setting in self.settings)
        if len(names) > 1:
            raise ValueError(f"settings must all have the same names, got {list(names)}")
        if not names or len({*map(_key, self.settings)}) < len(self.settings):
            raise ValueError(f"settings must be one a run, each its own, got {len(self.settings)}")

    def store(self) -> Path:
        """Make the runs that are missing, and store the table.

        Each run's rows are kept in `<name>.csv.partial` as soon as it ends: an interrupted
        experiment goes on there, and the old table stays until the new one is whole. The first
        lines of a table, which begin with `#`, say what made it.

        Raises:
            ValueError: if a run gives no row, other columns than the run before it, or a name or
                text that is more than letters, digits, `_`, `.` and `-`; or if what is kept was
                made by another version of the script.
        """
        path = folder() / f"{self.name}.csv"
        partial = path.with_name(path.name + ".partial")
        script = Path(inspect.getfile(self.run))
        done, seconds = self._kept(partial, sha256(script.read_bytes()).hexdigest())
        for setting in self.settings:
            if _key(setting) in done:
                continue
            start = time.perf_counter()
            rows = [{**setting, **row} for row in self.run(**setting)]
            took = time.perf_counter() - start
            self._check(rows, next(iter(done.values()), rows))
            with partial.open("a", encoding="utf8") as file:
                file.write(json.dumps([rows, took]) + "\n")
            done[_key(setting)] = rows
            seconds += took
            print(self.name, *setting.values(), f"{took:.0f} s", flush=True)
        with partial.open("w", encoding="utf8", newline="") as file:
            file.writelines(f"# {line}\n" for line in self._made(script, seconds))
            writer = csv.DictWriter(
                file, list(done[_key(self.settings[0])][0]), lineterminator="\n"
            )
            writer.writeheader()
            for setting in self.settings:
                writer.writerows(done[_key(setting)])
        os.replace(partial, path)
        return path

    def _kept(self, partial: Path, script: str) -> tuple[dict[tuple[str, ...], list[dict]], float]:
        """Rows by settings, and seconds, of an interrupted experiment; a broken last run is cut."""
        lines = partial.read_text("utf8").splitlines(keepends=True) if partial.exists() else []
        if not lines:
            lines = [script + "\n"]
        if lines[0] != script + "\n":
            raise ValueError(
                f"{partial.name} must be of this script: remove it, or undo the change"
            )
        whole = [line for line in lines if line.endswith("\n")]
        partial.write_text("".join(whole), "utf8")
        done, seconds = {}, 0.0
        for rows, took in map(json.loads, whole[1:]):
            done[tuple(str(rows[0][name]) for name in self.settings[0])] = rows
            seconds += took
        return done, seconds

    def _check(self, rows: list[dict], others: list[dict]) -> None:
        """A run's rows have the columns of others and come back from a table as they are."""
        if not rows:
            raise ValueError("rows must be at least one a run, got none")
        for row in rows:
            if set(row) != set(others[0]):
                raise ValueError(f"rows must have the columns {list(others[0])}, got {list(row)}")
            strange = [t for t in map(str, (*row, *row.values())) if not PLAIN.fullmatch(t)]
            if strange:
                raise ValueError(f"rows must hold only letters, digits, _, . and -, got {strange}")

    def _made(self, script: Path, seconds: float) -> list[str]:
        """What made the table, in lines."""
        seeds = dict.fromkeys(str(setting.get("seed", "none")) for setting in self.settings)
        changed = " and changes" if _git("status", "--porcelain", str(script)) else ""
        return [
            f"command: make experiments NAME={self.name}",
            f"finished: {time.strftime('%Y-%m-%d')}, after {seconds:.0f} seconds",
            f"script: commit {_git('log', '-1', '--format=%h', str(script)) or 'none'}{changed}",
            f"seeds: {' '.join(seeds)}",
            f"learning rates tried: {self.rates or 'none'}",
            f"python {platform.python_version()}",
            *(f"{package} {version(package)}" for package in PACKAGES),
        ]

    def again(self, setting: Mapping[str, Any]) -> list[str]:
        """Make one run again and say where it leaves what the table has of its seeds.

        A value may differ from the mean of its seeds by four spreads: the standard deviation of
        the seeds there, or of all seeds in the table where that is larger.

        Args:
            setting: of the run, one of `settings`.

        Returns:
            A line for each measured column that is elsewhere; none if the table holds.
        """
        table = load(self.name)
        runs: dict[tuple[str, ...], np.ndarray] = {}
        for stored in self.settings:
            here = np.all([table[c].astype(str) == str(v) for c, v in stored.items()], 0)
            runs[_key(stored)] = table[here]
        rows = list(self.run(**setting))
        if len(rows) != len(runs[_key(setting)]):
            return [f"{setting}: {len(runs[_key(setting)])} rows are stored, made {len(rows)}"]
        said = []
        for column in self.measured:
            groups: dict[tuple, list] = {}
            for stored in self.settings:
                groups.setdefault(_but_seed(stored), []).append(runs[_key(stored)][column])
            usual = math.sqrt(np.nanmean([np.nanvar(group, 0).mean() for group in groups.values()]))
            seeds = np.array(groups[_but_seed(setting)], float)
            new = np.array([row[column] for row in rows], float)
            spread = np.maximum(seeds.std(0), usual) + 1e-3 * np.abs(seeds).max(0) + 1e-9
            away = np.abs(new - seeds.mean(0)) / spread
            away[np.isnan(new) & np.isnan(seeds).any(0)] = 0  # diverged, as another seed did
            away[np.isnan(away)] = math.inf
            i = int(away.argmax())
            print(f"  {column}: {new[i]:.4g}, stored {seeds[:, i].round(4)}: {away[i]:.1f} spreads")
            if not away[i] <= SPREADS:
                said.append(f"{setting}: {column} is {new[i]}, its seeds have {seeds[:, i]}")
        return said


def _key(setting: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, setting.values()))


def _but_seed(setting: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(value) for name, value in setting.items() if name != "seed")


def _git(*arguments: str) -> str:
    """What git says in the folder of the tables; nothing where there is no git."""
    try:
        found = subprocess.run(["git", *arguments], cwd=folder(), capture_output=True, text=True)
    except OSError:
        return ""
    return found.stdout.strip()


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
