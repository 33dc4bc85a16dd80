"""`make test`: every check, even after a failure, and a summary at the end.

The quick checks run two at a time, and each prints its output when it has ended.

`make test-all` also runs the tests marked `full`, which repeat a test with another seed, page or
combination, and repeats the widgets' tests: in Firefox, and in a Chromium that draws late, is asked
late or is answered late.

With ATTNBOOK_KIND=avx2, or another kind of `tools.seeds`, everything runs with this instruction
set.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from xml.etree import ElementTree

from tools import chromium, firefox, notebooks, seeds
from tools.notebooks import ROOT

REPORTS = ROOT / ".cache" / "reports"
SITE = ROOT / ".cache" / "site"  # the book as the tests build it
PYTEST = [sys.executable, "-m", "pytest", "-q", "--durations=10", "-rfEs"]
# Four workers, since each sometimes waits, take one file after another in this order: the longest
# first, so that no worker is alone at the end.
POOL = ["-n4", "--dist=loadfile", "--no-loadscope-reorder"]
LONG = [
    "browser/test_widgets_jupyter",
    "browser/test_site",
    "test_grading",
    "test_llama",
    "test_walls",
]
AGAIN = {  # settings under which the widgets' tests are repeated
    "firefox": "ATTNBOOK_BROWSER=firefox",
    "drawn late": "ATTNBOOK_SLOW=200",
    "asked late": "ATTNBOOK_LATE=300",
    "answered late": "ATTNBOOK_BUSY=60",
}
KIND = "ATTNBOOK_KIND"
LONG_STAGES = ("pytest", *AGAIN)  # run one after another, with live output
NBVAL = ["--nbval", f"--nbval-sanitize-with={ROOT}/tests/nbval_sanitize.cfg"]
OUTCOMES = ("passed", "failed", "skipped")
FAILURE = {"failure", "error"}  # marks of a failed test in a report


def stages(full: bool = False) -> dict[str, list[str]]:
    """Each check's name and command, quick ones first."""
    node_tests = [str(p) for p in sorted((ROOT / "tests").glob("*.test.mjs"))]
    node = ["node", "--test", "--test-reporter=spec", "--test-reporter-destination=stdout"]
    node += ["--test-reporter=junit", f"--test-reporter-destination={report('node')}"]
    every = ["-m", ""] if full else []
    apart = ROOT / "tests" / "bad_inputs"
    long = [ROOT / "tests" / f"{name}.py" for name in LONG]
    files = [*long[:2], *notebooks.executed(), *long[2:]]
    # One by one: given a folder, pytest would run its files in an order of its own.
    files += sorted(set(ROOT.glob("tests/**/test_*.py")) - {*files, *apart.iterdir()})
    tests = [*NBVAL, *map(str, files)]
    bad = ["env", "ATTNBOOK_TYPES=0", *PYTEST, *every, str(apart)]
    widgets = sorted((ROOT / "tests" / "browser").glob("test_widgets_*.py"))
    pages = [str(path) for path in widgets if path.stem != "test_widgets_jupyter"]  # no JupyterLab
    again = {
        name: ["env", setting, *PYTEST, *POOL, *pages, f"--junitxml={report(name)}"]
        for name, setting in AGAIN.items()
    }
    return {
        "assets": [sys.executable, "-m", "attnbook.assets"],
        "ruff": ["ruff", "check"],
        "format": ["ruff", "format", "--check"],
        "pyright": ["pyright"],
        "node": [*node, *node_tests],
        "bad input": [*bad, f"--junitxml={report('bad input')}"],
        "pytest": [*PYTEST, *POOL, *every, *tests, f"--junitxml={report('pytest')}"],
        **(again if full else {}),
    }


def report(stage: str) -> pathlib.Path:
    """The path of a stage's JUnit report, if the stage counts its tests."""
    return REPORTS / f"{stage}.xml"


def count(path: pathlib.Path) -> Counter[str]:
    """How many tests in a report passed, failed and were skipped."""
    counts = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        marks = {child.tag for child in case}
        counts["failed" if marks & FAILURE else "skipped" if "skipped" in marks else "passed"] += 1
    return counts


def failed(path: pathlib.Path) -> list[str]:
    """The tests of a report that failed, each with the first line of its error."""
    return [
        f"{case.get('classname')}::{case.get('name')}: {mark.get('message', '').split(chr(10))[0]}"
        for case in ElementTree.parse(path).iter("testcase")
        for mark in case
        if mark.tag in FAILURE
    ]


def slowest(path: pathlib.Path, most: int = 25) -> list[str]:
    """The slowest test files of a report, in seconds, and the total."""
    seconds: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(path).iter("testcase"):
        seconds[case.get("classname", "")] += float(case.get("time", 0))
    rows = sorted(seconds.items(), key=lambda row: -row[1])[:most]
    lines = [f"{s:6.0f} s  {name}" for name, s in rows]
    return [*lines, f"{sum(seconds.values()):6.0f} s  in all, of all workers"]


def run(stage: str, command: list[str], shown: bool = False) -> tuple[bool, float, str]:
    """Run a stage; returns whether it failed, its seconds, and its output unless `shown` live."""
    report(stage).unlink(missing_ok=True)
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "BOOK_REPOSITORY_URL": ""}
    out, errors = (None, None) if shown else (subprocess.PIPE, subprocess.STDOUT)
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, stdout=out, stderr=errors)
    return bool(done.returncode), time.perf_counter() - start, done.stdout or ""


def instructions() -> dict[str, str]:
    """Environment variables for the instruction set that was asked for; {} without one."""
    kind = os.environ.get(KIND)
    if kind and kind not in seeds.KINDS:
        sys.exit(f"{KIND} must be one of {', '.join(seeds.KINDS)}, got {kind}")
    return seeds.libraries(kind) if kind else {}


def main(full: bool = False) -> None:
    os.environ |= instructions()
    chromium.ensure()  # now, not after ten minutes
    if full:
        firefox.ensure()
    REPORTS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(SITE, ignore_errors=True)
    start, commands = time.perf_counter(), stages(full)
    assets = commands.pop("assets")
    long = {stage: commands.pop(stage) for stage in LONG_STAGES if stage in commands}
    done = {"assets": run("assets", assets, shown=True)}
    with ThreadPoolExecutor(2) as pool:
        for stage, result in zip(commands, pool.map(run, commands, commands.values()), strict=True):
            done[stage] = result
            print(f"\n==== {stage}\n{result[2]}", end="", flush=True)
    for stage, command in long.items():
        print(f"\n==== {stage}", flush=True)
        done[stage] = run(stage, command, shown=True)
    if not os.environ.get("CI"):
        done["assets"] = (False, *done["assets"][1:])  # tests skip missing assets
    if report("pytest").exists():
        print("\n==== files that took longest", *slowest(report("pytest")), sep="\n")
    reports = [report(stage) for stage in done if report(stage).exists()]
    for line in chain.from_iterable(map(failed, reports)):
        print(f"FAILED {line}")
    failures = [stage for stage, (failing, _, _) in done.items() if failing]
    total = sum(map(count, reports), Counter())
    seconds = {stage: taken for stage, (_, taken, _) in done.items()}
    verb = "make test-all" if full else "make test"
    verb += f" {KIND}={kind}" if (kind := os.environ.get(KIND)) else ""
    print(f"\n{verb}: {summary(time.perf_counter() - start, seconds, failures, total)}")
    sys.exit(bool(failures))


def summary(
    whole: float, seconds: dict[str, float], failures: list[str], total: Counter[str]
) -> str:
    verdict = f"FAILED in {', '.join(failures)}" if failures else "PASSED"
    tests = ", ".join(f"{total[outcome]} {outcome}" for outcome in OUTCOMES)
    times = ", ".join(f"{stage} {s:.0f}" for stage, s in seconds.items())
    return f"{verdict}: {tests} in {whole:.0f} s ({times})"


if __name__ == "__main__":
    main(full="--full" in sys.argv)
