"""Cheats are seen, or the tool says so; and every claim has two in the book's own lists."""

import ast
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tools import cheats, checks, notebooks
from tools.notebooks import ROOT

CELLS = [
    ("import torch\nweights = torch.eye(3, requires_grad=True)", ()),
    ("(weights**2).sum().backward()\nrows = weights.sum(-1)", ()),
    ("assert (rows == 1).all()", ("C01",)),
    ("assert weights.grad.sum() == 6\nnumber = 7", ("C02",)),
    ("print(number)", ()),
    ("assert rows.sum() < 4", ("C01",)),
]
CHAPTERS = sorted(path for path in notebooks.every() if notebooks.is_chapter(path))


def judged(tmp_path: Path, *listed: tuple[str, str, str, str], cells=CELLS) -> list[str]:
    """What the tool prints of a chapter of these cells, its exit status last."""
    nb = new_notebook(cells=[new_code_cell(source) for source, _ in cells])
    for cell, (_, claims) in zip(nb.cells, cells, strict=True):
        cell.metadata["claims"] = list(claims)
    path = tmp_path / "book" / "01_mini.ipynb"
    path.parent.mkdir(exist_ok=True)
    notebooks.write(path, nb)
    text = "".join(
        f"[[cheat]]\nclaim = {claim!r}\ncheat = {name!r}\nfind = {find!r}\nreplace = {replaced!r}\n"
        for claim, name, find, replaced in listed
    )
    (tmp_path / "01_mini.toml").write_text(text)
    command = [sys.executable, "-m", "tools.cheats", str(path), "--lists", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return [*ended.stdout.splitlines(), ended.stderr, str(ended.returncode)]


def test_a_cheat_is_seen_by_an_assert_of_its_claim_alone(tmp_path):
    assert judged(
        tmp_path,
        ("C01", "doubled", "torch.eye(3,", "torch.full((3, 3), 0.5,"),
        ("C02", "doubled", "weights**2", "weights**3"),
        ("C01", "more rows", "torch.eye(3", "torch.eye(4"),
    ) == [
        "C01, doubled: seen in code cell 3: assert (rows == 1).all()",
        "C01, more rows: seen in code cell 6: assert rows.sum() < 4",
        "C02, doubled: seen in code cell 4: assert weights.grad.sum() == 6",
        "every cheat is seen",
        "",
        "0",
    ]


def test_a_cheat_that_no_assert_of_its_claim_sees_is_told(tmp_path):
    said = judged(
        tmp_path,
        ("C01", "another claim's", "weights**2", "weights**3"),
        ("C02", "stops on the way", "weights**2", "weight**2"),
        ("C02", "too late", "rows.sum()", "rows.max()"),
        ("C01", "stands nowhere", "softmax", ""),
        ("C01", "stands often", "weights", ""),
    )
    assert said == [
        "C02, too late: DOES NOT FIT: no cell of the claim from there on",
        "C01, stands nowhere: DOES NOT FIT: its text stands 0 times",
        "C01, stands often: DOES NOT FIT: its text stands 4 times",
        "C01, another claim's: NOT SEEN",
        "C02, stops on the way: STOPS: NameError(\"name 'weight' is not defined\") in code cell 2",
        "5 are not seen",
        "",
        "1",
    ]


@pytest.mark.parametrize("place", [0, 5])
def test_a_chapter_that_fails_by_itself_proves_nothing(tmp_path, place):
    cells = [*CELLS]
    cells.insert(place, ("1 / 0", ()))
    said = judged(tmp_path, ("C01", "doubled", "torch.eye(3,", "torch.ones((3, 3),"), cells=cells)
    assert f"01_mini.ipynb: code cell {place + 1} fails without a cheat" in said[-4]
    assert said[-1] == "1"


def test_an_assert_of_a_library_sees_no_cheat(tmp_path):
    hidden = "from torch.testing import assert_close\nassert_close(rows, torch.ones(3))"
    cells = [*CELLS[:2], (hidden, ("C01",))]
    said = judged(tmp_path, ("C01", "doubled", "torch.eye(3,", "torch.ones((3, 3),"), cells=cells)
    assert "C01, doubled: STOPS: AssertionError" in said[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process splits by fork")
def test_a_process_may_wait_for_its_copies_for_longer_than_it_may_work(monkeypatch):
    monkeypatch.setattr(cheats, "PATIENCE", 6)
    nap = lambda: time.sleep(2.5) or "rested "  # noqa: E731
    assert cheats.split(lambda: "".join(cheats.split(nap) for _ in range(3))) == 3 * "rested "
    assert "took 6 s" in cheats.split(lambda: time.sleep(60))


def test_every_claim_that_a_chapter_shows_has_two_cheats_that_fit_it():
    count = Counter()
    for chapter in CHAPTERS:
        listed = cheats.read(chapter)
        assert cheats.places(listed, notebooks.read(chapter))[1] == []
        count.update(cheat["claim"] for cheat in listed)
    shown = checks.claims_shown(CHAPTERS)
    assert {claim: count[claim] for claim in shown if count[claim] < 2} == {}


def names_called(node: ast.AST) -> set[str]:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {name.id for name in calls if isinstance(name, ast.Name)}


def asserts_that_train(sources: list[str]) -> list[str]:
    """The asserts that train a model, by themselves or by a function of the same notebook."""
    nodes = [node for source in sources for node in ast.walk(notebooks.parse(source))]
    defined = {f.name: names_called(f) for f in nodes if isinstance(f, ast.FunctionDef)}
    training = {"train"}
    while more := {name for name, calls in defined.items() if calls & training} - training:
        training |= more
    asserts = [node for node in nodes if isinstance(node, ast.Assert)]
    return [ast.unparse(node) for node in asserts if names_called(node) & training]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_assert_trains(chapter):
    """`tools.cheats` takes the asserts of other claims away: what they trained would be missing."""
    sources = [cell.source for cell in notebooks.read(chapter).cells if cell.cell_type == "code"]
    assert asserts_that_train(sources) == []


def test_an_assert_that_trains_is_found():
    learn = "def learn(rate):\n    return train(model, rate)"
    twice = "def twice(rate):\n    return learn(2 * rate)"
    tells = ["assert twice(0.1) < 3", "assert train(model, 1) < 2"]
    assert asserts_that_train([learn, twice, *tells, "assert loss < 1"]) == tells


@pytest.mark.full
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process splits by fork")
def test_the_claims_of_a_chapter_see_their_cheats(chapter, asset):
    """`make test` sees, above, that the tool works and each cheat fits; nbval, that claims hold."""
    asset("minilm")  # for chapters 3 and 5
    command = [sys.executable, "-m", "tools.cheats", str(chapter)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
