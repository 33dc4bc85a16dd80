"""The assignments, their references, and the answers that their checks must judge."""

import tomllib
from functools import cache
from pathlib import Path

import pytest

from attnbook.teach.submission import Reference, reference
from tools import assignments, notebooks
from tools.notebooks import PRIVATE, SOLUTIONS

NAMES = [path.stem for path in assignments.sources()]


@cache
def known(name: str) -> Reference:
    return reference(SOLUTIONS / f"{name}.ipynb")


def needed() -> Path:
    """The folder of the solutions. In a course's copy without them the test file is skipped."""
    __tracebackhide__ = True  # the reason is told with the name of the file that asks
    if not NAMES:
        why = "the solutions are kept elsewhere: BOOK_PRIVATE=their folder runs these tests"
        pytest.skip(why, allow_module_level=True)
    return SOLUTIONS


def listed(name: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    path = PRIVATE / "tests" / "answers" / f"{name}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def solution(path: Path) -> dict[str, str]:
    """The sources of all code cells, by their `grade_id`."""
    cells = notebooks.read(path).cells
    return {
        cell.metadata.get("nbgrader", {}).get("grade_id", cell.id): cell.source
        for cell in cells
        if cell.cell_type == "code"
    }
