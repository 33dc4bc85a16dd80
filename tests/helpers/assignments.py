"""The assignments, their references, and the answers that their checks must judge."""

import tomllib
from functools import cache
from pathlib import Path

from attnbook.teach.submission import Reference, reference
from tools import assignments, notebooks
from tools.notebooks import BOOK, ROOT

NAMES = [path.stem for path in assignments.sources()]


@cache
def known(name: str) -> Reference:
    return reference(BOOK / "solutions" / f"{name}.ipynb")


def listed(name: str) -> dict[str, dict[str, list[dict[str, str]]]]:
    path = ROOT / "tests" / "answers" / f"{name}.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


def solution(path: Path) -> dict[str, str]:
    """The sources of all code cells, by their `grade_id`."""
    cells = notebooks.read(path).cells
    return {
        cell.metadata.get("nbgrader", {}).get("grade_id", cell.id): cell.source
        for cell in cells
        if cell.cell_type == "code"
    }
