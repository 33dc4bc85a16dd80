"""`make seeds`: the chapters' and the findings' asserts, under other seeds and instruction sets.

On another processor the same seed gives another model, since rounding errors grow over a few
hundred steps. A claim must hold there, too. Each chapter (and each file tests/test_findings*.py)
runs anew, in a fresh process,

- as seed S: with S times a large number added to every seed that is set;
- as kind K: with its own seeds, and torch and its libraries restricted to an instruction set.
  Processors without these instruction sets run it unchanged.

Later cells run even after an error. The output has a line for each failure and, for a chapter, the
comparisons with the smallest margins: the mean distance from the bound over the runs, in standard
deviations. The last line says in how many runs everything holds.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell

from tools import notebooks
from tools.chapters import CELL_SECONDS, chosen
from tools.notebooks import ROOT

SHIFT = "ATTNBOOK_SEED_SHIFT"  # read by tests/conftest.py
STEP = 100_000_007  # between two seeds: larger than the seeds of any experiment
KINDS = {  # oldest first; for ATen, oneDNN, MKL
    "default": ("default", "SSE41", "SSE4_2"),
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512_CORE", "AVX512"),
}
LIBRARIES: tuple[str, ...] = (
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
)
SHOWN = 12  # comparisons printed for a chapter

BEFORE = """
import sys as _sys
_sys.path.insert(0, {root!r})
from tools import shifted as _shifted
_sys.path.remove({root!r})
_margins = _shifted.Margins()
_compare = _margins.compare
if {shift}:
    _shifted.shift({shift})
get_ipython().ast_transformers.append(_margins)
"""
AFTER = "print(__import__('json').dumps(_margins.least))"


def libraries(kind: str) -> dict[str, str]:
    """Environment variables that restrict torch and its libraries to an instruction set."""
    return dict(zip(LIBRARIES, KINDS[kind], strict=True))


# The runs.


def ways(seeds: int, kinds: list[str]) -> list[tuple[str, int, dict[str, str]]]:
    """The ways to run: each one's name, the number added to seeds, and environment variables."""
    import torch

    best, order = torch.backends.cpu.get_cpu_capability().lower(), list(KINDS)
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    has = order[: order.index(best) + 1] if x86 and best in order else []
    for kind in kinds:
        if kind not in has:
            print(f"kind {kind}: this processor has none, left out")
    found = [(f"kind {kind}", 0, libraries(kind)) for kind in has if kind in kinds]
    others = [(f"seed {seed}", seed * STEP, {}) for seed in range(1, seeds + 1)]
    return (found or [("as it is", 0, {})]) + others


def chapter(path: pathlib.Path, by: int, environment: dict) -> tuple[list[str], dict[str, float]]:
    """The failures of a chapter, and the margins of its comparisons by cell and text."""
    nb = notebooks.read(path)
    inside = BEFORE.format(root=str(ROOT), shift=by)
    nb.cells = [new_code_cell(inside), *notebooks.code_cells(nb), new_code_cell(AFTER)]
    client = NotebookClient(
        nb,
        timeout=2 * CELL_SECONDS,
        kernel_name="python3",
        allow_errors=True,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute(env={**os.environ, **environment})
    except (CellTimeoutError, DeadKernelError) as error:
        return [repr(error)], {}
    failures = []
    for number, cell in enumerate(nb.cells):
        for output in cell.outputs:
            if output.output_type == "error":
                trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
                at = re.search(r"^-+> +\d+ (.*)", trace, re.MULTILINE)
                what = at[1].strip() if at else output.evalue[:100]
                failures.append(f"code cell {number}: {output.ename}: {what}")
    last = "".join(output.get("text", "") for output in nb.cells[-1].outputs)
    return failures, json.loads(last.splitlines()[-1]) if last else {}


def findings(path: pathlib.Path, by: int, environment: dict) -> tuple[list[str], dict[str, float]]:
    """The failures of a file of findings."""
    command = [
        sys.executable,
        *"-m pytest -q -rfE -p no:cacheprovider --tb=no -m".split(),
        "",
        str(path),
    ]
    run = {"env": {**os.environ, **environment, SHIFT: str(by)}, "cwd": ROOT}
    said = subprocess.run(command, capture_output=True, text=True, **run).stdout
    failed = re.findall(r"^(?:FAILED|ERROR) (.*)", said, re.MULTILINE)
    return failed or ([] if " passed" in said else [said[-300:]]), {}


def report(margins: dict[str, list[float]], runs: int) -> None:
    """The comparisons nearest to their bounds, in standard deviations over the runs."""
    rows = []
    for key, values in margins.items():
        infinite = not all(map(math.isfinite, values))
        spread = 0.0 if infinite or len(values) < 2 else statistics.stdev(values)
        if infinite or spread > 1e-9:  # otherwise the comparison is not random
            mean = -math.inf if infinite else statistics.mean(values) / spread
            cell, _, text = key.split("\n", 2)
            few = f" ({len(values)} runs)" if len(values) < runs else ""
            rows.append((mean, min(values), cell, text[:90] + few))
    print("  spreads  least margin  code cell")
    for spreads, least, cell, text in sorted(rows)[:SHOWN]:
        print(f"  {spreads:7.1f}  {least:12.3g}  {cell:>4}  {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", nargs="?", help="03, a path, or `findings`; without: all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    # Run as for a reader without a GPU, and open no windows.
    os.environ |= {"ATTNBOOK_PROGRESS": "0", "MPLBACKEND": "agg", "ACCELERATE_USE_CPU": "true"}
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tests = sorted((ROOT / "tests").glob("test_findings*.py"))
    paths = [] if asked.chapter == "findings" else chosen(asked.chapter)
    paths += tests if asked.chapter in (None, "findings") else []
    planned = ways(asked.seeds, [kind for kind in asked.kinds.split(",") if kind])
    held = 0
    for path in paths:
        margins: dict[str, list[float]] = {}
        judge = chapter if path.suffix == ".ipynb" else findings

        def one(way: tuple, path=path, judge=judge) -> tuple:
            start = time.perf_counter()
            return way[0], *judge(path, *way[1:]), time.perf_counter() - start

        with ThreadPoolExecutor(asked.jobs) as pool:
            for way, failures, found, seconds in pool.map(one, planned):
                held += not failures
                verdict = "holds" if not failures else f"{len(failures)} fail"
                print(f"{path.name}, {way}: {verdict} ({seconds:.0f} s)", flush=True)
                for line in failures:
                    print(f"    {line}", flush=True)
                for key, value in found.items():
                    margins.setdefault(key, []).append(value)
        if margins:
            report(margins, len(planned))
    print(f"{held} of {len(paths) * len(planned)} runs without a failure")
    sys.exit(held < len(paths) * len(planned))


if __name__ == "__main__":
    main()
