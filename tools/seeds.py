"""`make seeds`: the chapters' and the findings' asserts, under other seeds and instruction sets.

On another processor the same seed gives another model: after some hundred steps rounding has made
it so. A claim must hold there too. Each chapter (and the files of tests/test_findings*.py) runs
anew, in a fresh process,

- as seed S: with S * 1000 added to every seed that is set, in the notebook or in the package;
- as kind K: with the same seeds, and torch and its libraries held to an instruction set.

Cells go on after an error. A line a failure, then the comparisons with the least margins: the
margin's mean over the runs in its own standard deviations, 0 where the bound is; then how many
runs hold.
"""

import argparse
import ast
import json
import operator
import os
import pathlib
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from tools import notebooks
from tools.chapters import CELL_SECONDS, chosen
from tools.notebooks import ROOT

STEP = 1000  # between two seeds; no experiment has as many of its own
SHIFT = "ATTNBOOK_SEED_SHIFT"
KINDS = {  # least first: ATen, oneDNN, MKL
    "default": ("default", "SSE41", "SSE4_2"),
    "avx2": ("avx2", "AVX2", "AVX2"),
    "avx512": ("avx512", "AVX512_CORE", "AVX512"),
}
LIBRARIES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
SHOWN = 12  # comparisons of a chapter
OPERATORS: dict[type, tuple] = {
    ast.Gt: (operator.gt, 1),
    ast.GtE: (operator.ge, 1),
    ast.Lt: (operator.lt, -1),
    ast.LtE: (operator.le, -1),
}


# What runs inside of a process under test.


def shift(by: int) -> None:
    """Add a number to every seed that is set from now on."""
    import numpy
    import torch

    def shifted(function):
        return lambda *a, **k: function(*map(other, a), **{n: other(v) for n, v in k.items()})

    def other(seed):
        if isinstance(seed, str):
            return f"{seed} {by}"
        return seed + by if isinstance(seed, int) and not isinstance(seed, bool) else seed

    class Random(random.Random):
        def __new__(cls, seed=None):
            return super().__new__(cls)

        def __init__(self, seed=None):
            super().__init__(other(seed))

    class Generator(torch.Generator):
        def manual_seed(self, seed):
            return super().manual_seed(seed + by)

    torch.manual_seed = torch.random.manual_seed = shifted(torch.manual_seed)
    torch.Generator, random.Random = Generator, Random
    numpy.random.default_rng = shifted(numpy.random.default_rng)
    numpy.random.seed, random.seed = shifted(numpy.random.seed), shifted(random.seed)


class Margins(ast.NodeTransformer):
    """Rewrites asserts so that each comparison of two numbers notes by how much it holds."""

    def __init__(self) -> None:
        self.cell, self.least = 0, {}

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Number the cells."""
        self.cell += 1
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Rewrite the comparisons of an assert."""
        for part in ast.walk(node):
            if isinstance(part, ast.Compare) and all(type(op) in OPERATORS for op in part.ops):
                about = (self.cell, ast.unparse(part), *(type(op).__name__ for op in part.ops))
                call = ast.parse(f"_compare({about})", mode="eval").body
                assert isinstance(call, ast.Call)
                call.args += [part.left, *part.comparators]
                replace(node, part, call)
        return ast.fix_missing_locations(node)

    def compare(self, about: tuple, *values):
        """What the comparison says; notes its least margin so far."""
        cell, text, *names = about
        for name, left, right in zip(names, values, values[1:], strict=False):
            holds, sign = OPERATORS[getattr(ast, name)]
            try:
                margin = sign * float(left - right)
            except (TypeError, ValueError, RuntimeError):
                margin = None  # not of two numbers
            if margin is not None:
                key = f"{cell}\n{text}"
                self.least[key] = min(margin, self.least.get(key, margin))
            said = holds(left, right)
            if len(names) > 1 and not said:
                break
        return said


def replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    """Put a node in the place of another below a tree."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, field, new)
            elif isinstance(value, list) and old in value:
                value[value.index(old)] = new


BEFORE = """
import sys as _sys
_sys.path.insert(0, {root!r})
from tools import seeds as _seeds
_sys.path.remove({root!r})
_margins = _seeds.Margins()
_compare = _margins.compare
if {shift}:
    _seeds.shift({shift})
get_ipython().ast_transformers.append(_margins)
"""
AFTER = "print(__import__('json').dumps(_margins.least))"


# The runs.


def kinds(asked: list[str]) -> list[str]:
    """Those instruction sets, of those asked for, that this processor has."""
    import torch

    best = torch.backends.cpu.get_cpu_capability().lower()
    order = list(KINDS)
    has = order[: order.index(best) + 1] if best in order and platform.machine() != "arm64" else []
    for kind in asked:
        if kind not in has:
            print(f"kind {kind}: this processor has none, left out")
    return [kind for kind in has if kind in asked]


def chapter(path: pathlib.Path, by: int, environment: dict) -> tuple[list[str], dict[str, float]]:
    """What fails in a chapter, and its comparisons' margins by cell and text."""
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
    client.create_kernel_manager()
    client.execute(env={**os.environ, **environment})
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
    """What fails in a file of findings."""
    command = [sys.executable, *"-m pytest -q -rfE -p no:cacheprovider --tb=no".split(), str(path)]
    run = {"env": {**os.environ, **environment, SHIFT: str(by)}, "cwd": ROOT}
    said = subprocess.run(command, capture_output=True, text=True, **run).stdout
    failed = re.findall(r"^(?:FAILED|ERROR) (.*)", said, re.MULTILINE)
    return failed or ([] if " passed" in said else [said[-300:]]), {}


def report(margins: dict[str, list[float]]) -> None:
    """The comparisons nearest to their bounds, in standard deviations over the runs."""
    rows = []
    for key, values in margins.items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        if spread > 1e-9:  # else nothing random is compared
            rows.append((statistics.mean(values) / spread, min(values), *key.split("\n", 1)))
    print("  spreads  least margin  code cell")
    for spreads, least, cell, text in sorted(rows)[:SHOWN]:
        print(f"  {spreads:7.1f}  {least:12.3g}  {cell:>4}  {text[:90]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", nargs="?", help="03, a path, `findings`, or all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    os.environ |= {"ATTNBOOK_PROGRESS": "0", "MPLBACKEND": "agg"}
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tests = sorted((ROOT / "tests").glob("test_findings*.py"))
    paths = [] if asked.chapter == "findings" else chosen(asked.chapter)
    paths += tests if asked.chapter in (None, "findings") else []
    ways = [
        (f"kind {k}", 0, dict(zip(LIBRARIES, KINDS[k], strict=True)))
        for k in kinds(asked.kinds.split(","))
    ]
    ways += [(f"seed {s}", s * STEP, {}) for s in range(1, asked.seeds + 1)]
    held = 0
    for path in paths:
        margins: dict[str, list[float]] = {}
        judge = chapter if path.suffix == ".ipynb" else findings

        def one(way: tuple, path=path, judge=judge) -> tuple:
            start = time.perf_counter()
            return way[0], *judge(path, *way[1:]), time.perf_counter() - start

        with ThreadPoolExecutor(asked.jobs) as pool:
            for way, failures, found, seconds in pool.map(one, ways):
                held += not failures
                verdict = "holds" if not failures else f"{len(failures)} fail"
                print(f"{path.name}, {way}: {verdict} ({seconds:.0f} s)", flush=True)
                for line in failures:
                    print(f"    {line}", flush=True)
                for key, value in found.items():
                    margins.setdefault(key, []).append(value)
        if margins:
            report(margins)
    print(f"{held} of {len(paths) * len(ways)} runs without a failure")
    sys.exit(held < len(paths) * len(ways))


if __name__ == "__main__":
    main()
