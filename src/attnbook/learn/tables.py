"""Result tables of long runs: stored with their origin, read by the chapters that plot them."""

import csv
import inspect
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from attnbook import checks
from attnbook.files import atomic

PACKAGES = ("attnbook", "torch", "numpy")
NAME, PLAIN = re.compile(r"[A-Za-z]\w*"), re.compile(r"[\w.+-]+")  # what a CSV file preserves
SPREADS = 5  # the most spreads by which a repeated run may differ from the mean of its seeds
BELIEF = 3  # the spread of other settings weighs as much as this many seeds


def folder() -> Path:
    """The tables' folder: inside the installed package, or `book/experiments` of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "table_files"
    return installed if installed.is_dir() else package.parents[1] / "book" / "experiments"


def load(name: str) -> np.ndarray:
    """Load a stored table as a structured array: `t["exact"][t["width"] == 64]`.

    Args:
        name: the table's name.

    Raises:
        FileNotFoundError: if there is no such table; the error names those that exist.
    """
    path = folder() / f"{name}.csv"
    if not path.exists():
        stored = sorted(p.stem for p in folder().glob("*.csv"))
        raise FileNotFoundError(f"name must be a stored table, one of {stored}, got {name!r}")
    with path.open(encoding="utf8") as file:
        lines = [line for line in file if not line.startswith("#")]
    read = {"delimiter": ",", "dtype": None, "encoding": "utf8"}
    table = np.atleast_1d(np.genfromtxt(lines, names=True, **read))
    table.dtype.names = tuple(lines[0].rstrip("\n").split(","))  # numpy renames `file` to `file_`
    return table


@dataclass(frozen=True)
class Experiment:
    """Many runs of one kind, and the table of their results.

    Attributes:
        name: the name of the table and of `book/experiments/<name>.py`.
        settings: the settings of each run, in the table's order, all with the same names: its first
            columns. A setting that only changes the random numbers is named `seed`.
        run: makes one run; called with its settings as keywords, it returns rows without them.
        measured: the columns that another machine reproduces within the spread of the seeds.
        rates: the learning rates that were tried, in words; "" if nothing is trained.

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

    def store(self, part: str = "") -> Path:
        """Make the runs that are missing, and store the table.

        Args:
            part: such as "2/4": make only the second of every four runs and store no table; `store`
                without a part then does, from the runs of all parts. By default the environment
                variable `ATTNBOOK_PART`.

        Each run's rows are saved in `<name>.csv.partial` as soon as it ends: an interrupted
        experiment resumes there, and the old table stays until the new one is complete. The first
        lines of a table, which begin with `#`, say how it was made.

        Raises:
            ValueError: if a run returns no rows, a column named like a setting, other columns than
                earlier runs, or a name or text that a table would not preserve; or if the saved
                runs were made by another version of the script, of what it imports from its
                folder, of Python or of `PACKAGES`.
        """
        path, part = folder() / f"{self.name}.csv", part or os.environ.get("ATTNBOOK_PART", "")
        own = f".{part.replace('/', '-of-')}" if part else ""
        partial = path.with_name(f"{path.name}{own}.partial")
        made, done, seconds = self._kept(partial, path)
        for setting in self.settings[checks.part(part or "1/1")]:
            if _key(setting) in done:
                continue
            start = time.perf_counter()
            rows = [self._row(setting, row) for row in self.run(**setting)]
            took = time.perf_counter() - start
            if not rows:
                raise ValueError(f"rows must be at least one a run, got none of {setting}")
            columns = list(next(iter(done.values()), rows)[0])
            for row in rows:
                if set(row) != set(columns):
                    raise ValueError(f"rows must have the columns {columns}, got {list(row)}")
            with partial.open("a", encoding="utf8") as file:
                file.write(json.dumps([rows, took]) + "\n")
            done[_key(setting)] = rows
            seconds += took
            print(self.name, *setting.values(), f"{took:.0f} s", flush=True)
        if part:
            return partial
        seeds = dict.fromkeys(str(setting.get("seed", "none")) for setting in self.settings)
        head = [
            f"command: make experiments NAME={self.name}",
            f"finished: {time.strftime('%Y-%m-%d')}, after {seconds:.0f} seconds",
            f"script: commit {made['commit']}",
            f"seeds: {' '.join(seeds)}",
            f"learning rates tried: {self.rates or 'none'}",
            *(f"{package} {number}" for package, number in made["versions"].items()),
        ]
        with atomic(path) as new, new.open("w", encoding="utf8", newline="") as file:
            file.writelines(f"# {line}\n" for line in head)
            writer = csv.DictWriter(
                file, list(done[_key(self.settings[0])][0]), lineterminator="\n"
            )
            writer.writeheader()
            for setting in self.settings:
                writer.writerows(done[_key(setting)])
        for file in _partials(path):
            file.unlink()
        return path

    def _kept(
        self, partial: Path, path: Path
    ) -> tuple[dict[str, Any], dict[tuple[str, ...], list], float]:
        """How an interrupted experiment's runs were made, the runs by settings, and seconds."""
        script = Path(inspect.getfile(self.run))
        now: dict[str, Any] = {"code": _digest(script), "versions": _versions()}
        made, done, seconds = {}, {}, 0.0
        for file in {partial: None, **dict.fromkeys(_partials(path))}:  # its own file first
            ended = _ended(file)
            if not ended and file != partial:
                continue  # another part that has only just begun
            made = made or (json.loads(ended[0]) if ended else {**now, "commit": _commit(script)})
            first = json.loads(ended[0]) if ended else made
            if {**first, **now} != first:
                raise ValueError(f"{file.name} must be of this code: remove it, or undo changes")
            if file == partial:
                file.write_text("".join(ended or [json.dumps(made) + "\n"]), "utf8")
            for rows, took in map(json.loads, ended[1:]):
                done[tuple(str(rows[0][name]) for name in self.settings[0])] = rows
                seconds += took
        return made, done, seconds

    def _row(self, setting: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        """Join settings and results in one row, which a table must return unchanged."""
        if set(setting) & set(found):
            raise ValueError(f"rows must not have a column of {list(setting)}, got {list(found)}")
        row = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in {**setting, **found}.items()
        }
        strange = [name for name in row if not NAME.fullmatch(name)]
        strange += [text for text in map(str, row.values()) if not PLAIN.fullmatch(text)]
        if strange:
            raise ValueError(f"rows must hold only letters, digits, _, +, . and -, got {strange}")
        return row

    def again(self, setting: Mapping[str, Any]) -> list[str]:
        """Repeat one run and say where it lies outside what the table has for its seeds.

        A value may differ from the mean of its seeds by five spreads: the seeds' standard
        deviation, shrunk towards that of all settings in the same row, as three seeds tell little.
        A run outside may be a rare one: if there are seeds, a column counts only if one of three
        new seeds lies outside there, too.

        Args:
            setting: the run's setting, one of `settings`.

        Returns:
            A line for each measured column that lies outside; none if the table holds.
        """
        said = self._elsewhere(setting)
        if said and "seed" in setting:
            new = 1 + max(stored["seed"] for stored in self.settings)
            others = [self._elsewhere({**setting, "seed": new + i}) for i in range(3)]
            said = {
                column: line for column, line in said.items() if any(column in o for o in others)
            }
        return list(said.values())

    def _elsewhere(self, setting: Mapping[str, Any]) -> dict[str, str]:
        """A message for each measured column in which a new run lies outside the table's values."""
        table = load(self.name)
        runs: dict[tuple[str, ...], list[np.ndarray]] = {}
        for stored in self.settings:
            here = np.all([table[column] == value for column, value in stored.items()], 0)
            runs.setdefault(_but_seed(stored), []).append(table[here])
        mine = runs[_but_seed(setting)]
        rows = list(self.run(**setting))
        if len(rows) != len(mine[0]):
            return {"rows": f"{setting}: {len(mine[0])} rows are stored, made {len(rows)}"}
        alike = [group for group in runs.values() if len(group[0]) == len(rows)]
        said = {}
        for column in self.measured:
            new = np.array([row[column] for row in rows], float)
            seeds = np.array([run[column] for run in mine], float)
            n = len(seeds)
            others = [
                _variance([run[column] for run in group]) for group in alike if len(group) > 1
            ]
            usual = np.nanmean(others, 0) if others else np.zeros(len(rows))
            own = _variance(seeds) if n > 1 else usual
            spread = np.sqrt(((n - 1) * own + BELIEF * usual) / (n - 1 + BELIEF) * (1 + 1 / n))
            spread += 1e-3 * np.nanmax(np.abs(seeds), 0) + 1e-9  # for rounded exact values
            away = np.abs(new - np.nanmean(seeds, 0)) / spread
            away[np.isnan(new) & np.isnan(seeds).any(0)] = 0  # diverged, as another seed did
            away[np.isnan(away)] = math.inf
            i = int(away.argmax())
            print(f"  {column}: {new[i]:.4g}, stored {seeds[:, i].round(4)}: {away[i]:.1f} spreads")
            if not away[i] <= SPREADS:
                said[column] = f"{setting}: {column} is {new[i]}, its seeds have {seeds[:, i]}"
        return said


def _partials(path: Path) -> list[Path]:
    """The files with the runs of an unfinished table: one, or one for each part."""
    return sorted(
        [
            *path.parent.glob(f"{path.name}.partial"),
            *path.parent.glob(f"{path.name}.*-of-*.partial"),
        ]
    )


def _ended(partial: Path) -> list[str]:
    """The complete lines of a file of runs; a half-written last line is dropped."""
    lines = partial.read_text("utf8").splitlines(keepends=True) if partial.exists() else []
    return [line for line in lines if line.endswith("\n")]


def _commit(script: Path) -> str:
    """The current commit, and whether the script's folder has uncommitted changes."""
    changed = " and changes" if _git("status", "--porcelain", str(script.parent)) else ""
    return (_git("log", "-1", "--format=%h") or "none") + changed


def _key(setting: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, setting.values()))


def _but_seed(setting: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(value) for name, value in setting.items() if name != "seed")


def _variance(values: Any) -> np.ndarray:
    """Variance over seeds, in each row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all nan, or all but one
        return np.nan_to_num(np.nanvar(np.array(values, float), 0, ddof=1))


def _digest(script: Path) -> str:
    """A hash of a script and of the modules it imports from its own folder."""
    files = {Path(getattr(m, "__file__", None) or "") for m in list(sys.modules.values())}
    near = {file.resolve() for file in files if file.parent.resolve() == script.parent.resolve()}
    return sha256(b"".join(map(Path.read_bytes, sorted({*near, script.resolve()})))).hexdigest()


def _versions() -> dict[str, str]:
    """The versions of Python and of packages that a table depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def _git(*arguments: str) -> str:
    """The output of git in the tables' folder; empty if git is not installed."""
    try:
        found = subprocess.run(["git", *arguments], cwd=folder(), capture_output=True, text=True)
    except OSError:
        return ""
    return found.stdout.strip()
