"""A planted error is caught, missed, or does not fit; the tree itself stays sound."""

import re
import textwrap
from pathlib import Path

import pytest

from tools import planted
from tools.notebooks import ROOT

SOUND = "def double(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n"
TESTS = """
from sums import double

def test_four_is_twice_two():
    assert double(2) == 4

def test_six_is_twice_three():
    assert double(3) == 6
"""
ERRORS = {
    "a square": ("2 * x", "x * x"),
    "an unseen third": ("x / 2", "x / 3"),
    "no such text": ("x // 2", "x // 3"),
    "text that stands twice": ("return", "yield"),
    "no end": ("2 * x", "x + max(iter(int, 1))"),
    "no Python": ("2 * x", "2 * x)"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small checkout with a list of errors."""
    for name, text in {
        "src/sums.py": SOUND,
        "tests/test_sums.py": TESTS,
        "tests/signs.test.mjs": 'import { test } from "node:test";\ntest("a sign", () => {});\n',
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout"


def listed(tree: Path, *names: str, tests: str = '["tests/test_sums.py"]') -> None:
    """Write the errors of these names into the tree's list."""
    entry = """
        [[error]]
        id = {!r}
        file = "src/sums.py"
        find = {!r}
        replace = {!r}
        tests = {}
    """
    text = "".join(entry.format(name, *ERRORS[name], tests) for name in names)
    (tree / "tests" / "planted.toml").write_text(textwrap.dedent(text))


def said(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *more) -> str:
    """What the tool prints at its end, its exit status last."""
    monkeypatch.setattr("sys.argv", ["planted", "--root", str(tree), *more])
    with pytest.raises(SystemExit) as end:
        planted.main()
    return f"{capsys.readouterr().out}{end.value.code:d}"


def test_each_error_is_planted_alone_and_judged(tree, monkeypatch, capsys) -> None:
    listed(tree, "a square", "an unseen third", "no such text", "text that stands twice")
    assert said(tree, monkeypatch, capsys).splitlines() == [
        "a square: caught by test_sums.py::test_six_is_twice_three",
        "an unseen third: MISSED",
        "no such text: DOES NOT FIT: what it replaces stands 0 times in src/sums.py",
        "text that stands twice: DOES NOT FIT: what it replaces stands 2 times in src/sums.py",
        "1 of 4 caught",
        "1",
    ]
    assert (tree / "src" / "sums.py").read_text() == SOUND


def test_some_can_be_chosen_and_a_tree_elsewhere_with_another_list(
    tree, tmp_path, monkeypatch, capsys
) -> None:
    listed(tree, "a square", "an unseen third")
    other = (tree / "tests" / "planted.toml").rename(tmp_path / "other.toml")
    out = said(tree, monkeypatch, capsys, "--list", str(other), "--only", "square")
    assert out.endswith("three\n1 of 1 caught\n0")


def test_an_error_that_never_ends_is_caught(tree, monkeypatch, capsys) -> None:
    listed(tree, "no end")
    monkeypatch.setattr(planted, "PATIENCE", 1)
    out = said(tree, monkeypatch, capsys)
    assert out == "no end: caught, as its tests do not end\n1 of 1 caught\n0"


def test_what_cannot_run_is_not_caught(tree, monkeypatch, capsys) -> None:
    listed(tree, "no Python")
    out = said(tree, monkeypatch, capsys)
    assert out.startswith("no Python: DOES NOT RUN: ") and "SyntaxError" in out
    assert out.endswith("0 of 1 caught\n1")


def test_tests_may_be_nodes(tree, monkeypatch, capsys) -> None:
    listed(tree, "a square", tests='["node:tests/signs.test.mjs"]')
    assert "a square: MISSED" in said(tree, monkeypatch, capsys)
    script = tree / "tests" / "signs.test.mjs"
    read = 'import { readFileSync } from "node:fs";\n'
    check = 'if (!readFileSync("src/sums.py", "utf8").includes("2 * x")) throw Error();'
    script.write_text(read + script.read_text().replace("{}", f"{{ {check} }}"))
    assert "a square: caught by a sign" in said(tree, monkeypatch, capsys)


def test_bad_inputs_are_tested_with_types_unchecked(tree, monkeypatch, capsys) -> None:
    listed(tree, "a square", tests='["tests/bad_inputs/test_sums.py", "tests/test_sums.py"]')
    (tree / "tests" / "bad_inputs").mkdir()
    (tree / "tests" / "bad_inputs" / "test_sums.py").write_text(
        "import os, sums\n"
        "def test_bad(): assert os.environ['ATTNBOOK_TYPES'] == '0' and sums.double(3) == 6\n"
    )
    monkeypatch.delenv("ATTNBOOK_TYPES", raising=False)
    out = said(tree, monkeypatch, capsys)
    assert out == "a square: caught by bad_inputs/test_sums.py::test_bad\n1 of 1 caught\n0"


def test_what_fails_before_proves_nothing(tree, monkeypatch) -> None:
    listed(tree, "a square")
    (tree / "src" / "sums.py").write_text(SOUND.replace("2 * x", "3 * x"))
    monkeypatch.setattr("sys.argv", ["planted", "--root", str(tree)])
    with pytest.raises(SystemExit, match="The tests fail before any error is planted"):
        planted.main()


@pytest.mark.parametrize("change", [("tests =", "test ="), ("'an unseen third'", "'a square'")])
def test_a_list_that_says_too_little_or_one_name_twice_is_refused(tree, change) -> None:
    listed(tree, "a square", "an unseen third")
    path = tree / "tests" / "planted.toml"
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(SystemExit, match=re.escape("planted.toml: an error has ['file', 'find'")):
        planted.read(path)


def test_the_books_own_list_fits_the_code() -> None:
    """So that who changes a listed line brings the list along."""
    for error in planted.read(ROOT / "tests" / "planted.toml"):
        assert (ROOT / error["file"]).read_text("utf-8").count(error["find"]) == 1, error["id"]
        for test in error["tests"]:
            assert (ROOT / test.removeprefix("node:").split("::")[0]).is_file(), test
