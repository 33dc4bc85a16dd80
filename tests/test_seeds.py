"""`make seeds` shifts every seed, measures each comparison's margin, and tells what fails."""

import ast
import math
import re
import subprocess
import sys
from pathlib import Path

import torch
from nbformat.v4 import new_code_cell, new_notebook

from tools import notebooks, seeds, shifted
from tools.notebooks import ROOT

DRAWS = """
import random, numpy, torch
from tools import shifted
if {by}:
    shifted.shift({by})
torch.manual_seed(1)
numbers = [torch.rand(()).item()]
numbers.append(torch.rand((), generator=torch.Generator().manual_seed(2)).item())
numbers += [numpy.random.default_rng(3).random(), random.Random(4).random()]
numbers += [random.Random("batch 5").random()]
numpy.random.seed(6); random.seed(7)
numbers += [numpy.random.rand(), random.random()]
numbers += [numpy.random.default_rng([8, 9]).random()]
again = random.Random(11); again.random(); again.seed(12)
numbers += [again.random()]
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
    assert len(plain) == 9 and draws(1000) == shifted
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
    assert re.search(r"01_mini.ipynb, (kind default|as it is): holds", out)
    assert "01_mini.ipynb, seed 2: holds" in out
    rows = [line.split(maxsplit=3) for line in out.splitlines() if "found.mean()" in line]
    assert {(row[2], row[3]) for row in rows} == {
        *(("2", "0.4 < found.mean()"), ("2", "found.mean() < 0.6"))
    }
    assert all(float(row[0]) > 3 and 0.07 < float(row[1]) < 0.11 for row in rows)


def test_what_fails_under_another_seed_is_named(tmp_path):
    torch.manual_seed(0)
    alone = f"assert found.mean().item() == {torch.rand(1000).mean().item()}"
    out, status = said(tmp_path, alone, "--seeds", "1")
    assert status == 1 and out.endswith("1 of 2 runs without a failure\n")
    assert "seed 1: 1 fail" in out and "code cell 4: AssertionError: assert found.mean()" in out


def test_a_comparison_says_what_it_said_before_and_notes_its_links():
    margins, x, y = shifted.Margins(), 2.0, torch.tensor([1.0, 3.0])
    held = {}
    for text in (
        "1 < x < 3",
        "3 > x > 2.5",
        "x > 1 > 0.5 > x - 2",
        "x > 5 or 1 == x - 1 < 4",
        "all(part <= x for part in (1, x))",
        "(y > 0.5).all()",
        "x < math.inf and not x < -math.inf",
        "'a' < 'b' and x in (1, 2) and (x < 1) == (x < 0)",
        "10**400 > 10**399",
    ):
        tree = margins.visit(ast.parse(f"assert {text}"))
        names = {"_compare": margins.compare, "x": x, "y": y, "math": math}
        try:
            exec(compile(tree, "", "exec"), names)
            held[text] = True
        except AssertionError:
            held[text] = False
    assert [text for text, holds in held.items() if not holds] == ["3 > x > 2.5"]
    noted = {tuple(key.split("\n")[::2]): value for key, value in margins.least.items()}
    assert noted == {
        **{("1", "1 < x"): 1, ("1", "x < 3"): 1, ("2", "3 > x"): 1, ("2", "x > 2.5"): -0.5},
        **{("3", "x > 1"): 1, ("3", "0.5 > x - 2"): 0.5, ("4", "x > 5"): -3, ("4", "x - 1 < 4"): 3},
        **{("5", "part <= x"): 0, ("7", "x < math.inf"): -math.inf},
        **{("7", "x < -math.inf"): -math.inf, ("8", "x < 1"): -1, ("8", "x < 0"): -2},
    }


def test_a_margin_that_is_not_finite_stands_first_in_the_report(capsys):
    margins = {
        "1\n1\nx > 2": [1.0, 2.0],
        "2\n1\ny > 2": [1.0, -math.inf],
        "3\n1\nz > 2": [1.0, 1.0],
    }
    seeds.report({**margins, "4\n1\nw > 2": [5.0, 6.0, 5.5]}, 3)
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split(maxsplit=3)[2:] for line in lines] == [
        *(["2", "y > 2 (2 runs)"], ["1", "x > 2 (2 runs)"], ["4", "w > 2"])
    ]


def test_what_ends_before_its_last_cell_is_a_failure_and_the_others_go_on(tmp_path):
    out, status = said(tmp_path, "import os; os._exit(1)", "--seeds", "1")
    assert status == 1 and out.endswith("0 of 2 runs without a failure\n")
    assert out.count("DeadKernelError") == 2
