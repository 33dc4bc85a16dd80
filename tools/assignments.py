"""Make students' notebooks from the solutions, by nbgrader: `python -m tools.assignments`.

`book/solutions/a1.ipynb` is what nbgrader calls the source version, executed. From it comes
`book/assignments/a1.ipynb`: without solutions and hidden tests, but with the checks' output for
right answers, so that nbval can judge.
"""

import pathlib

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions, ComputeChecksums, LockCells

from tools import notebooks
from tools.notebooks import BOOK

STEPS = (LockCells, ClearSolutions, ClearHiddenTests, ComputeChecksums)


def sources(book: pathlib.Path = BOOK) -> list[pathlib.Path]:
    """The notebooks of solutions."""
    return sorted((book / "solutions").glob("a*.ipynb"))


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


def main() -> None:
    for path in sources():
        where = path.parents[1] / "assignments" / path.name
        where.parent.mkdir(exist_ok=True)
        notebooks.write(where, student(path))
        print(where.relative_to(path.parents[2]))


if __name__ == "__main__":
    main()
