"""`make bench`: run the benchmarks, and write their stored results into book/proof.md.

`NAME=attention` runs one; `--page` runs none. A benchmark that was never run is listed on the page
with the command that runs it.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks._stored import FOLDER, Row
from tools.notebooks import BOOK, ROOT

Stored = dict[str, dict[str, Any]]
PAGE, BENCHMARKS = BOOK / "proof.md", ROOT / "benchmarks"
PLACE = re.compile(r"(% measured: (\w+)\n).*?(% end\n)", re.DOTALL)


def names() -> list[str]:
    """The names of the benchmarks."""
    return sorted(path.stem for path in BENCHMARKS.glob("[a-z]*.py"))


def read(folder: Path = FOLDER) -> Stored:
    """Benchmark -> its stored results, for those that were run."""
    files = sorted(folder.glob("*.json"))
    return {path.stem: json.loads(path.read_text("utf8")) for path in files}


def short(value: float) -> str:
    """A number with three significant digits, or all digits of its integer part from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(row: Row) -> str:
    """The smallest and the largest value, if there were several turns."""
    if row.least is None or row.most is None or row.least == row.most:
        return ""
    return f"{short(row.least)} to {short(row.most)}"


def limit(row: Row) -> str:
    """The required bound, in words."""
    least = "at least" if row.ratio is not None or row.more else "at most"
    return f"{least} {short(row.bar)}" if row.bar is not None else ""


def asked(row: Row) -> str:
    """The required bound, marked if it was missed."""
    return limit(row) + ("" if row.kept else " **missed**")


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(head)
    every = [head, ["---"] * len(head), *map(list, lines)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in every)


def rows(stored: Stored) -> list[Row]:
    return [Row(**row) for found in stored.values() for row in found["rows"]]


def peers(stored: Stored) -> str:
    """The table of measurements that have a peer."""
    head = ("what", "peer", "ours", "the peer's", "ratio", "spread", "asked for")
    return table(
        head,
        [
            (
                row.what,
                row.peer,
                f"{short(row.ours)} {row.unit}",
                f"{short(row.theirs)} {row.unit}",
                f"**{short(row.ratio)}**",
                spread(row),
                asked(row),
            )
            for row in rows(stored)
            if row.ratio is not None and row.theirs is not None
        ],
    )


def budgets(stored: Stored) -> str:
    """The table of measurements without a peer."""
    return table(
        ("what", "median", "spread", "asked for"),
        [
            (row.what, f"{short(row.ours)} {row.unit}", spread(row), asked(row))
            for row in rows(stored)
            if row.ratio is None
        ],
    )


def worse(stored: Stored) -> str:
    """A list of all that is worse than its peer, misses its bound, or is not equal as required."""
    lines = []
    for found in stored.values():
        beside = f", with {short(found['beside'])} other processes beside"
        for row in rows({"": found}):
            if row.ratio is not None and row.ratio < 1:
                lines.append(f"{row.what}: {short(row.ratio)} of {row.peer}")
            elif not row.kept and row.ratio is not None:
                lines.append(f"{row.what}: ratio {short(row.ratio)}, {limit(row)} was asked for")
            elif not row.kept:
                value = f"{short(row.ours)} {row.unit}, {limit(row)} was asked for"
                lines.append(f"{row.what}: {value}{beside}")
        if not found["right"]:
            lines.append(f"what `{found['command']}` asks to be equal was not")
    return "".join(f"- {line}.\n" for line in lines) or "Nothing.\n"


def runs(stored: Stored) -> str:
    """The table of all benchmarks: when and where each was run, or that it was not."""
    lines = []
    for name in names():
        command = f"`make bench NAME={name}`"
        if name not in stored:
            lines.append((command, first(name), "not measured on this machine", ""))
            continue
        found = stored[name]
        made = f"{found['date']}: {found['machine']}; Python {found['python']}, "
        made += f"torch {found['torch']}"
        why = f" ({found['why']})" if found["why"] else ""
        lines.append(
            (command, first(name) + why, made, short(found["beside"])),
        )
    return table(("command", "what it measures", "when and where", "beside"), lines)


def first(name: str) -> str:
    """The first paragraph of a benchmark's docstring, without its full stop."""
    source = (BENCHMARKS / f"{name}.py").read_text("utf8")
    said = ast.get_docstring(ast.parse(source)) or ""
    return " ".join(said.split("\n\n")[0].split()).rstrip(".")


def filled(text: str, stored: Stored) -> str:
    """The page with the current tables filled in."""
    made = {"peers": peers, "budgets": budgets, "worse": worse, "runs": runs}
    return PLACE.sub(lambda at: f"{at[1]}\n{made[at[2]](stored)}\n{at[3]}", text)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=names())
    parser.add_argument("--page", action="store_true", help="run nothing, write the page anew")
    given = parser.parse_args()
    missed = []
    for name in [] if given.page else [given.name] if given.name else names():
        print(f"{name}: {first(name)}", flush=True)
        # Run as a module, so that the folder's `tokenizers.py` shadows no package.
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=ROOT).returncode:
            missed.append(name)
    PAGE.write_text(filled(PAGE.read_text("utf8"), read()), "utf8")
    print(f"{PAGE.relative_to(ROOT)} has {len(read())} of {len(names())} benchmarks")
    if missed:
        sys.exit(f"missed a bar, or failed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
