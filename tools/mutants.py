"""`make mutants`: mutmut changes the core modules in one place at a time; the tests must detect it.

The modules and the tests are listed in pyproject.toml, in `tool.mutmut`. A run takes a tenth of all
changes, those whose number ends in the digit `--seed` (by default, the week's), for `--minutes`. It
prints the score, which is the share of changes that a test detects, and every undetected change.
Some of these have no effect that matters: a message's wording, a default that equals a library's.
"""

import argparse
import datetime
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter

from tools.notebooks import ROOT

FOLDER = ROOT / "mutants"  # where mutmut keeps its changed copy
SEEN = ("killed", "timeout", "segfault", "caught by type check")
UNTRIED = ("not checked", "check was interrupted by user")


def mutmut(*what: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", *what]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True, **options)


def run(seed: int, minutes: float) -> None:
    """Test a tenth of the changes until all are done or time is up; results are kept."""
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "ATTNBOOK_TYPES": "0"}
    command = [
        sys.executable,
        "-m",
        "mutmut",
        "run",
        f"attnbook.*_{seed}",
        f"attnbook.*[0-9]{seed}",
    ]
    with subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True) as process:
        try:
            status = process.wait(minutes * 60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)  # its own group: mutmut and its tests
            process.wait(60)
        else:
            if status:
                sys.exit("mutmut ended with an error: see above")


def score(results: str) -> tuple[Counter[str], list[str]]:
    """Outcomes of the tested changes with counts, and the names of undetected ones."""
    rows = [line.strip().rpartition(": ") for line in results.splitlines() if ": " in line]
    tried = [(name, end) for name, _, end in rows if end not in UNTRIED]
    unseen = [name for name, end in tried if end not in SEEN]
    return Counter(end for _, end in tried), unseen


def main() -> None:
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("--seed", type=int, choices=range(10))
    parser.add_argument("--minutes", type=float, default=40)
    given = parser.parse_args()
    week = datetime.date.today().isocalendar().week
    shutil.rmtree(FOLDER, ignore_errors=True)
    run(week % 10 if given.seed is None else given.seed, given.minutes)
    ends, unseen = score(mutmut("results", "--all", "true").stdout)
    if not ends:
        sys.exit("no change was tried: more minutes, please")
    for name in unseen:
        print(f"\n==== {name}\n{mutmut('show', name).stdout}")
    total = sum(ends.values())
    seen = total - len(unseen)
    print(f"make mutants: {seen / total:.0%} seen, {seen} of {total} ({dict(ends)})")


if __name__ == "__main__":
    main()
