"""What a benchmark measured, stored beside it; `tools/proof.py` makes a page of the book of it."""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from attnbook.files import atomic

FOLDER = Path(__file__).parent / "stored"
BEFORE = os.getloadavg()[0]  # when a benchmark begins


@dataclass(frozen=True)
class Row:
    """One thing that was measured: the median, and the least and the most of several turns.

    Attributes:
        what: in words.
        unit: of `ours` and `theirs`.
        ours: the book's.
        theirs: the peer's; None: there is no peer, and `bar` is a budget in the same unit.
        peer: its name, with its version.
        ratio: how many times as good as the peer's the book's is, the median of pairs of turns.
        least: the least ratio; without a peer, the least of ours.
        most: the most.
        bar: what was asked for: a ratio at least or, without a peer, a budget; None: nothing.
        more: whether more is better.
    """

    what: str
    unit: str
    ours: float
    theirs: float | None = None
    peer: str = ""
    ratio: float | None = None
    least: float | None = None
    most: float | None = None
    bar: float | None = None
    more: bool = False

    @property
    def kept(self) -> bool:
        """Whether it is as good as was asked for."""
        if self.bar is None:
            return True
        if self.ratio is not None:
            return self.ratio >= self.bar
        return self.ours >= self.bar if self.more else self.ours <= self.bar


def against(
    what: str,
    unit: str,
    pairs: Iterable[Sequence[float]],
    peer: str,
    *,
    package: str = "",
    bar: float | None = None,
    more: bool = False,
) -> Row:
    """A row of pairs (ours, theirs), each measured in one turn; `package` gives the version."""
    ours, theirs = zip(*(pair[:2] for pair in pairs), strict=True)
    ratios = [a / b if more else b / a for a, b in zip(ours, theirs, strict=True)]
    named = f"{peer} {version(package).split('+')[0]}" if package else peer
    mine, other, ratio = (statistics.median(column) for column in (ours, theirs, ratios))
    return Row(what, unit, mine, other, named, ratio, min(ratios), max(ratios), bar=bar, more=more)


def budget(
    what: str,
    unit: str,
    values: Sequence[float],
    bar: float | None = None,
    *,
    more: bool = False,
) -> Row:
    """A row without a peer: some values, and the budget for their median."""
    middle = statistics.median(values)
    return Row(what, unit, middle, least=min(values), most=max(values), bar=bar, more=more)


def machine() -> str:
    """What this machine is called."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text().splitlines() if table.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = psutil.virtual_memory().total / 1e9
    named = (names or [platform.processor() or platform.machine()])[0]
    return f"{named}, {psutil.cpu_count()} cores, {memory:.0f} GB, {platform.system()}"


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Without digits that mean nothing, and without what does not apply."""
    short = {
        name: float(f"{value:.4g}") if type(value) is float else value
        for name, value in row.items()
    }
    return {name: value for name, value in short.items() if value is not None}


def store(benchmark: str, rows: Sequence[Row], *, right: bool = True, why: str = "") -> bool:
    """Store what `benchmarks/NAME.py`, called with its `__file__`, found.

    Args:
        benchmark: its file.
        rows: what it measured, also what misses its bar.
        right: whether results that must be equal were.
        why: what is not measured here, in words.

    Returns:
        Whether all is right, and every bar is kept.
    """
    name = Path(benchmark).stem
    found = {
        "command": f"make bench NAME={name}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "beside": round(BEFORE, 1),
        "python": platform.python_version(),
        "torch": version("torch").split("+")[0],
        "right": right,
        "why": why,
        "rows": [rounded(asdict(row)) for row in rows],
    }
    FOLDER.mkdir(exist_ok=True)
    with atomic(FOLDER / f"{name}.json") as new:
        new.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf8")
    return right and all(row.kept for row in rows)


def finish(benchmark: str, rows: Sequence[Row], *, right: bool = True, why: str = "") -> None:
    """Store, say whether all bars are kept, and end with an error if not."""
    kept = store(benchmark, rows, right=right, why=why)
    print("equal, and all bars:" if right else "NOT EQUAL;", "kept" if kept else "MISSED")
    sys.exit(not kept)
