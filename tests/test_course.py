"""`make course`: a copy of the repository becomes a course, with and without its solutions."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.helpers.assignments import NAMES
from tests.helpers.files import listed
from tests.helpers.repeats import repeats
from tools import course
from tools.notebooks import PRIVATE, ROOT, SOLUTIONS

FORK = "https://github.com/someone/fork"
LONG = f"https://github.com/someone/{'f' * 100}"
# The light part of the suite: the tree, what notebooks promise, assignments.
LIGHT = ["tests/test_repository.py", "tests/test_notebooks.py", "tests/test_assignments.py"]
LIGHT += ["tests/test_answers_shown.py", "tests/test_walls.py", "-k"]
LIGHT += ["test_repository or test_notebooks and not has_no_problem or made_of_the_solution"]
Run = Callable[..., str]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the tree as a repository of its own, with its solutions."""
    root = tmp_path / "fork"
    for name in listed():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    for name in course.PRIVATE:
        shutil.copytree(PRIVATE / name, root / name, dirs_exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "--all"], cwd=root, check=True)
    return root


@pytest.fixture
def run(clone: Path) -> Run:
    """Runs a module of Python in the clone, which must end well; returns what it printed."""

    def go(*said: str, fails: bool = False, **environment: str) -> str:
        whole = {**os.environ, "PYTHONPATH": str(clone / "src"), "BOOK_PRIVATE": ""} | environment
        command = [sys.executable, "-m", *said]
        done = subprocess.run(command, cwd=clone, env=whole, capture_output=True, text=True)
        assert bool(done.returncode) == fails, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout + done.stderr

    return go


def changed(clone: Path) -> set[str]:
    """The files that differ from what was committed, or the folders that lack them."""
    command = ["git", "status", "--porcelain", "-uall"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line[1] != " "]
    return {re.sub(r"/[^/]*$", "", line[3:]) for line in lines}


def judged(run: Run, **environment: str) -> str:
    """What lint and the light part of the suite say in the clone."""
    run("ruff", "check", "-q")
    run("ruff", "format", "--check", "-q")
    run("tools.chapters", "check", **environment)
    said = run("pytest", "-q", "-rs", "-p", "no:cacheprovider", *LIGHT, **environment)
    assert re.search(r"\d+ passed", said)
    return said


@pytest.mark.skipif(not NAMES, reason="the solutions are kept elsewhere: BOOK_PRIVATE=their folder")
# Moved solutions that are named serve as if kept, so `make test` judges a course without them.
@pytest.mark.parametrize("kept", repeats(False, True))
def test_a_course_is_green(clone: Path, run: Run, kept: bool) -> None:
    folder = clone.parent / "own"
    said = run("tools.course", LONG, *["--keep"] * kept, BOOK_PRIVATE=str(folder))
    moved = set() if kept else set(course.PRIVATE)
    assert changed(clone) == {"_config.yml", *moved}
    assert LONG in (clone / "_config.yml").read_text("utf-8")
    assert f"{LONG}/settings/pages" in said and f"https://someone.github.io/{'f' * 100}/" in said
    assert (clone / "book" / "solutions").exists() == kept and (str(folder) in said) != kept
    light = judged(run)
    assert ("SKIPPED" in light) != kept
    if kept:
        return
    for name in ("answers_shown", "assignments", "walls"):
        assert re.search(rf"SKIPPED \[1\] tests/test_{name}.py:\d+: the solutions are kept", light)
    assert "no solutions in" in run("tools.assignments", fails=True)
    assert f"BOOK_PRIVATE={folder}" in (folder / "README.md").read_text()
    # Named, the folder serves as if nothing had been moved.
    assert "SKIPPED" not in judged(run, BOOK_PRIVATE=str(folder))
    run("tools.assignments", BOOK_PRIVATE=str(folder))
    assert changed(clone) == {"_config.yml", *course.PRIVATE}
    assert "moved to" not in run("tools.course", FORK, BOOK_PRIVATE=str(folder))  # a second time


@pytest.mark.skipif(not NAMES, reason="the solutions are kept elsewhere: BOOK_PRIVATE=their folder")
def test_no_solution_is_left_in_a_course(clone: Path, tmp_path: Path) -> None:
    """What the book itself does not print, as a line or two of its own attention are."""
    course.hide(clone, tmp_path / "own")
    left = [path for path in clone.rglob("*") if path.is_file() and ".git" not in path.parts]
    texts = {path: squeezed(path.read_text("utf-8", "ignore")) for path in left}
    bodies = [
        squeezed(body)
        for path in sorted(SOLUTIONS.glob("*.ipynb"))
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        for body in re.findall(
            r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", "".join(cell["source"]), re.DOTALL
        )
    ]
    assert len(bodies) > 30
    shown = {body: path for body in bodies for path, text in texts.items() if body in text}
    assert max(map(len, shown), default=0) < 30 and len(shown) <= 2


def squeezed(text: str) -> str:
    return re.sub(r"\\n|\s", "", text)


def test_nothing_is_moved_into_the_tree_or_over_other_files(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "own"
    for name in ("book/solutions/a1.ipynb", "tests/answers/a1.toml"):
        for place in (root, folder):
            (place / name).parent.mkdir(parents=True)
            (place / name).write_text("same")
    with pytest.raises(ValueError, match="outside of"):
        course.hide(root, root / "private")
    (folder / "tests/answers/a1.toml").write_text("other")
    with pytest.raises(ValueError, match="is another"):
        course.hide(root, folder)
    assert (root / "book/solutions/a1.ipynb").is_file()
    (folder / "tests/answers/a1.toml").write_text("same")
    assert course.hide(root, folder) == list(course.PRIVATE)
    assert course.hide(root, folder) == []
    assert [path.name for path in root.rglob("*") if path.is_file()] == []


def test_an_address_changes_no_other_setting(tmp_path: Path) -> None:
    config = tmp_path / "_config.yml"
    shutil.copy(ROOT / "_config.yml", config)
    before = yaml.safe_load(config.read_text())
    for repository in (FORK, FORK + "2"):
        course.write(config, repository)
        after = yaml.safe_load(config.read_text())
        assert after["repository"].pop("url") == repository
        assert after == before | {"repository": after["repository"]}
        assert after["repository"].items() < before["repository"].items()


@pytest.mark.parametrize("end", ["", "/", ".git", ".git/"])
def test_a_course_writes_the_address_that_the_build_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    written = []
    monkeypatch.setattr(course, "ROOT", tmp_path)
    monkeypatch.setattr(course.notebooks, "load", lambda _, load=course.notebooks.load: load(PLACE))
    monkeypatch.setattr(course, "write", lambda config, said: written.append(said))
    course.main([FORK + end])
    assert written == [FORK]


PLACE = ROOT / "book" / "_ext" / "attnbook_site" / "repository.py"
# What the build refuses is refused here.
BAD = ["https://example.org/a/b", "https://github.com/a/b/c", FORK + '"; ls', FORK + "#x"]


@pytest.mark.parametrize(
    "said", [[], [""], ["someone/fork"], ["https://github.com"], *[[bad] for bad in BAD]]
)
def test_a_course_says_what_it_wants(said: list[str]) -> None:
    with pytest.raises(SystemExit, match="make course REPO=https"):
        course.main(said)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (FORK, ["someone.github.io/fork/", "/settings/pages"]),
        ("https://github.com/Someone/someone.github.io", ["build", "https://someone.github.io/"]),
        ("https://gitlab.com/someone/fork", ["no workflow for this host"]),
    ],
)
def test_the_steps_are_those_of_the_host(address: str, words: list[str]) -> None:
    said = course.steps(address, None)
    assert all(word in said for word in words) and "BOOK_PRIVATE" not in said
    assert "BOOK_PRIVATE=/own" in course.steps(address, Path("/own"))
