"""Make students' notebooks from the solutions, by nbgrader: `python -m tools.assignments`.

`book/solutions/a1.ipynb` is what nbgrader calls the source version, executed. From it comes
`book/assignments/a1.ipynb`: without solutions and hidden tests, but with the checks' output for
right answers, so that nbval can judge.
"""

import pathlib
import sys

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions, ComputeChecksums, LockCells

from tools import notebooks
from tools.notebooks import BOOK, SOLUTIONS

STEPS = (LockCells, ClearSolutions, ClearHiddenTests, ComputeChecksums)


def sources(folder: pathlib.Path = SOLUTIONS) -> list[pathlib.Path]:
    """The notebooks of solutions; none if `make course` has moved them."""
    return sorted(folder.glob("a*.ipynb"))


def student(path: pathlib.Path) -> NotebookNode:
    """The notebook that a student opens."""
    nb = notebooks.read(path)
    for step in STEPS:
        nb, _ = step().preprocess(nb, ResourcesDict())
    for cell in notebooks.code_cells(nb):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.outputs, cell.execution_count = [], None
    notebooks.settle_cells(nb)
    nb.metadata.pop("attnbook", None)  # this notebook itself was not run
    return nb


def main(folder: pathlib.Path = SOLUTIONS) -> None:
    if not sources(folder):
        sys.exit(f"no solutions in {folder}: make assignments BOOK_PRIVATE=their folder")
    for path in sources(folder):
        where = BOOK / "assignments" / path.name
        where.parent.mkdir(exist_ok=True)
        notebooks.write(where, student(path))
        print(where.relative_to(BOOK.parent))


if __name__ == "__main__":
    main()
