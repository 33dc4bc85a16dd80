"""`make seeds` shifts every seed, measures each comparison's margin, and tells what fails."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import notebooks, seeds
from tools.notebooks import ROOT

DRAWS = """
import random, numpy, torch
from tools import seeds
if {by}:
    seeds.shift({by})
torch.manual_seed(1)
numbers = [torch.rand(()).item()]
numbers.append(torch.rand((), generator=torch.Generator().manual_seed(2)).item())
numbers += [numpy.random.default_rng(3).random(), random.Random(4).random()]
numbers += [random.Random("batch 5").random()]
numpy.random.seed(6); random.seed(7)
numbers += [numpy.random.rand(), random.random()]
print(*numbers)
"""
CELLS = [
    "import torch\ntorch.manual_seed(0)\nfound = torch.rand(1000)",
    "assert 0.4 < found.mean() < 0.6 and (found < 1).all()",
    "assert found[0] == torch.rand(1000)[0] or found.std() > 0.2, 'as many'",
    "{}",
]


def draws(by: int) -> list[float]:
    command = [sys.executable, "-c", DRAWS.format(by=by)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [*map(float, said.split())]


def test_every_seed_is_shifted_and_the_same_each_time():
    plain, shifted = draws(0), draws(1000)
    assert len(plain) == 7 and draws(1000) == shifted
    assert all(a != b for a, b in zip(plain, shifted, strict=True))


def said(tmp_path: Path, last: str, *more: str) -> tuple[str, int]:
    """What the tool prints of a chapter with this last cell, and its exit status."""
    path = tmp_path / "book" / "01_mini.ipynb"
    path.parent.mkdir(exist_ok=True)
    cells = [new_code_cell(source.format(last)) for source in CELLS]
    notebooks.write(path, new_notebook(cells=cells))
    command = [sys.executable, "-m", "tools.seeds", str(path), "--kinds", "default", *more]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return ended.stdout + ended.stderr, ended.returncode


def test_a_chapter_that_holds_shows_its_least_margins(tmp_path):
    out, status = said(tmp_path, "", "--seeds", "2")
    assert status == 0 and out.endswith("3 of 3 runs without a failure\n")
    assert "01_mini.ipynb, kind default: holds" in out and "seed 2: holds" in out
    rows = [line.split(maxsplit=3) for line in out.splitlines() if "found.mean()" in line]
    assert [row[2:] for row in rows] == [["2", "0.4 < found.mean() < 0.6"]]
    assert float(rows[0][0]) > 3 and 0.07 < float(rows[0][1]) < 0.1


def test_what_fails_under_another_seed_is_named(tmp_path):
    alone = "assert found.mean().item() == {}"
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    out, status = said(tmp_path, alone.format(torch.rand(1000).mean().item()), "--seeds", "1")
    assert status == 1 and out.endswith("1 of 2 runs without a failure\n")
    assert "seed 1: 1 fail" in out and "code cell 4: AssertionError: assert found.mean()" in out


def test_a_comparison_says_what_it_said_before():
    margins = seeds.Margins()
    for text in ("1 < 2 < 3", "2 < 1 < 3", "3 > 2 or 1 / 0", "all(x <= 2 for x in (1, 2))"):
        tree = margins.visit(ast.parse(f"assert {text}"))
        try:
            exec(compile(tree, "", "exec"), {"_compare": margins.compare})
            held = True
        except AssertionError:
            held = False
        assert held == ("2 < 1" not in text)
    assert margins.least["1\n1 < 2 < 3"] == 1 and margins.least["2\n2 < 1 < 3"] == -1
    assert margins.least["4\nx <= 2"] == 0
