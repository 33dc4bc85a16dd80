"""Seconds to grade 200 hand-ins of assignment 1, two at a time, and whether a killed run goes on.

make bench NAME=grading    (needs the solutions, and a system whose walls stand)
Every other hand-in is right, the others have one to three of the wrong answers that the tests try.
A second run is killed in the middle and started again: its marks must be those of the first. Bar:
60 s for the first.
"""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import _stored
from tests.helpers.assignments import listed
from tools.notebooks import ROOT, SOLUTIONS

NAME, STUDENTS, JOBS, BAR = "a1", 200, 2, 60


def hand_in(folder: Path) -> None:
    """Write the hand-ins."""
    source, answers = (SOLUTIONS / f"{NAME}.ipynb").read_text("utf8"), listed(NAME)
    folder.mkdir()
    for i in range(STUDENTS):
        chance, notebook = random.Random(i), json.loads(source)
        tasks = chance.sample(sorted(answers), chance.randint(1, 3)) if i % 2 else []
        for cell in notebook["cells"]:
            task = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
            if task in tasks:
                cell["source"] = chance.choice(answers[task]["wrong"])["source"]
        (folder / f"student{i:03}.ipynb").write_text(json.dumps(notebook), "utf8")


def started(folder: Path, out: str) -> "subprocess.Popen[str]":
    """The grader, on the way."""
    command = [sys.executable, "-m", "attnbook.teach.grade", NAME, str(folder / "handed-in")]
    command += [f"--out={folder / out}", f"--solutions={SOLUTIONS}", f"--jobs={JOBS}"]
    root = ["--as-root"] * (os.geteuid() == 0)  # these hand-ins are the book's own
    return subprocess.Popen([*command, *root], cwd=ROOT, stdout=subprocess.PIPE, text=True)


def marks(folder: Path) -> list[dict[str, Any]]:
    """The table of a run, without the seconds that each hand-in took."""
    with (folder / f"{NAME}.csv").open(encoding="utf8", newline="") as file:
        return [{**row, "seconds": ""} for row in csv.DictReader(file)]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hand_in(folder / "handed-in")
        begin = time.perf_counter()
        whole = started(folder, "whole")
        said, _ = whole.communicate()
        seconds = time.perf_counter() - begin
        if whole.returncode:
            sys.exit(said)
        print(f"{STUDENTS} hand-ins: {seconds:.0f} s")

        halved = started(folder, "halved")
        assert halved.stdout
        done = 0
        while done < STUDENTS // 2 and (line := halved.stdout.readline()):
            done += line.startswith("student")
        halved.kill()
        halved.wait()
        said, _ = started(folder, "halved").communicate()
        before = next((line for line in said.splitlines() if "graded before" in line), "none")
        same = marks(folder / "whole") == marks(folder / "halved")
        print(f"killed after {done}, then: {before}; same marks: {same}")
    what = f"grading {STUDENTS} hand-ins of assignment 1, {JOBS} at a time"
    rows = [_stored.budget(what, "s", [seconds], BAR)]
    _stored.finish(__file__, rows, right=same and "graded before" in before)


if __name__ == "__main__":
    main()
