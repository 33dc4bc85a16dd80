"""A student's notebook, which is not trusted, and the reference that its cells are put into."""

import ast
import json
import re
import symtable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

LARGEST = 20_000_000  # bytes of a notebook
BLANK, UNSOLVED = "YOUR ANSWER HERE", "raise NotImplementedError()"  # nbgrader's stubs
HIDDEN = re.compile("### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", re.DOTALL)
HEADING = re.compile(r"#+ *(.+?) *(\(\d[^()]*\))? *$", re.MULTILINE)  # and its points and minutes
TARGET = re.compile(r"\]\([^()\s]*\)|\s+")  # link targets, which differ on the site, and spaces
DOOR = re.compile(  # the first lines of a notebook from the repository, or of one from the site
    r"import attnbook  # missing\?[^\n]*"
    r"|try:\n    import attnbook\nexcept ImportError:[^\n]*\n"
    r"(    %pip install[^\n]*\n    import attnbook"
    r"|    raise ImportError\(\n        \"get [^\n]*\n        'and install[^\n]*\n    \) from None)"
)
RUNNING = ("time", "capture", "prun")  # magics that run a cell and keep its names


class RefusedError(Exception):
    """A notebook cannot be graded; the message tells the student why."""


@dataclass
class Task:
    """A check of the reference, and the cells that it grades.

    Attributes:
        name: the check's `grade_id`.
        points: the largest number of points.
        check: its source, hidden tests included.
        answers: the `grade_id`s of the cells since the previous check.
        names: names that the check uses and that these or earlier cells of the reference define.
        reader: whether a person grades the answer.
        title: the heading above it, such as "Task 1: the last state".
    """

    name: str = ""
    points: float = 0.0
    check: str = ""
    answers: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    reader: bool = False
    title: str = ""


@dataclass
class Reference:
    """The notebook of the solutions: its given cells, and the tasks in order."""

    name: str
    tasks: list[Task]
    given: dict[str, str]  # sources of cells that are neither answers nor checks, by their id
    order: list[str]  # ids of all code cells
    texts: dict[str, str]  # text of the book -> the task that it belongs to


@dataclass
class Cell:
    """A cell of a student's notebook.

    Attributes:
        number: its position, counted from 1.
        name: its `grade_id`, or "".
        code: whether it is a code cell.
        source: its text.
        outputs: its stored outputs, not validated.
        attachments: pictures in its text, not validated.
    """

    number: int
    name: str
    code: bool
    source: str
    outputs: Any = ()
    attachments: Any = ()

    @property
    def blank(self) -> bool:
        """Whether the student wrote nothing into it."""
        return self.source.strip() in ("", BLANK)


def reference(path: Path) -> Reference:
    """Read the notebook of the solutions, which is nbgrader's source version.

    Raises:
        ValueError: if it has no checks.
    """
    found, task, names = Reference(path.stem, [], {}, [], {}), Task(), list[str]()
    texts: list[str] = []
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        said, code = _said(cell), cell["cell_type"] == "code"
        if not (code or said.get("grade")):
            texts.append(_words(_source(cell)))
            heading = HEADING.match(_source(cell))
            task.title = heading[1] if heading else task.title
            continue
        name = said.get("grade_id") or f"cell-{number}"
        found.order.append(name)
        if said.get("solution"):
            task.answers.append(name)
            names += defined(_source(cell)) if code else []
        elif not said.get("grade"):
            found.given[name] = _source(cell)
        if said.get("grade"):
            task.name, task.points = name, float(said["points"])
            task.title = task.title or name
            task.reader = bool(said.get("solution"))
            task.check = "" if task.reader else _source(cell)
            task.names = [name for name in dict.fromkeys(names) if name in _used(task.check)]
            found.tasks.append(task)
            found.texts |= dict.fromkeys(texts, name)
            task, texts = Task(), []
    if not found.tasks:
        raise ValueError(f"reference must have cells with points, got none in {path.name}")
    found.texts |= dict.fromkeys(texts, found.tasks[-1].name)
    return found


def cells(path: Path) -> list[Cell]:
    """The cells of a student's notebook.

    Raises:
        RefusedError: if the file is not a Python notebook.
    """
    if path.is_symlink() or not path.is_file():
        raise RefusedError("it must be a file, not a link")
    if path.stat().st_size > LARGEST:
        raise RefusedError(f"it must have at most {LARGEST // 10**6} MB, clear its outputs")
    try:
        nb: Any = json.loads(path.read_text("utf-8-sig"))
        language = nb["metadata"].get("kernelspec", {}).get("language", "python")
        if nb.get("nbformat") != 4:
            raise RefusedError("it must be a notebook of format 4, save it with a present Jupyter")
        if str(language).lower() != "python":
            raise RefusedError(f"its language must be Python, not {str(language)[:40]}")
        return [
            Cell(
                number,
                str(_said(cell).get("grade_id") or ""),
                cell["cell_type"] == "code",
                _source(cell),
                cell.get("outputs", ()),
                cell.get("attachments", ()),
            )
            for number, cell in enumerate(nb["cells"], 1)
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError):
        raise RefusedError("it must be a Jupyter notebook") from None


def answers(cells: list[Cell], known: Reference) -> dict[str, list[str]]:
    """The sources of a student's cells, by the `grade_id` of the reference's cell they belong to.

    Cells that the student added belong to the cell before them; a duplicated cell runs twice. The
    student's versions of checks and of given cells are ignored.

    Raises:
        RefusedError: if none of the cells belongs to this assignment.
    """
    found: dict[str, list[str]] = {}
    last, theirs = known.order[0], False
    written = {answer for task in known.tasks for answer in task.answers}
    for cell in cells:
        if cell.name in known.order:
            last = cell.name
        elif cell.name or not cell.code:
            continue  # a text, or a check of another assignment
        if cell.name in written:
            theirs = True
        elif cell.name in known.order:
            continue  # the reference has its own
        found.setdefault(last, []).append(cell.source)
    if not theirs:
        raise RefusedError(f"it must hold cells of assignment {known.name}, got none")
    return found


def work(cells: list[Cell], known: Reference) -> dict[str, list[Cell]]:
    """Everything that a student wrote, by the name of its task.

    A cell that the student added belongs to the task of the cell before it or, after a check, to
    the next task. Text of the book is left out, and so are blank cells without outputs.
    """
    task_of = {answer: task.name for task in known.tasks for answer in task.answers}
    checks = {task.name: task.check for task in known.tasks if not task.reader}
    following = {task.name: after.name for task, after in pairwise(known.tasks) if not task.reader}
    found: dict[str, list[Cell]] = {task.name: [] for task in known.tasks}
    here, seen = known.tasks[0].name, set[str]()
    for cell in cells:
        text = "" if cell.code else _words(cell.source)
        here = task_of.get(cell.name) or known.texts.get(text) or here
        if cell.name in checks:
            here, given = (
                cell.name,
                cell.source.strip() == HIDDEN.sub("", checks[cell.name]).strip(),
            )
        elif cell.name in known.given:
            wanted = _inside(known.given[cell.name])
            given = cell.code and cell.name not in seen and _inside(cell.source) == wanted
        else:
            given = text in known.texts
        seen.add(cell.name)
        if not (given or (cell.blank and not cell.outputs and not cell.attachments)):
            found[here].append(cell)
        here = following.get(cell.name, here)
    return found


def python(source: str) -> str:
    """A cell as Python: magics, shell commands and `?` become calls of `get_ipython()`."""
    return TransformerManager().transform_cell(source)


class Shell:
    """A stand-in for `get_ipython()`: timing magics run their cell, others do nothing."""

    def __init__(self, names: dict[str, Any]):
        self._names = names

    def run_cell_magic(self, name: str, _: str, cell: str) -> None:
        if name in RUNNING:
            exec(python(cell), self._names)

    def run_line_magic(self, name: str, line: str, *_: Any) -> None:
        if name == "time":
            exec(line, self._names)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


def defined(source: str) -> list[str]:
    """The names that a cell defines at its top level."""
    table = symtable.symtable(python(source), "cell", "exec")
    return [symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()]


def _used(source: str) -> set[str]:
    """The names that a check uses."""
    return {node.id for node in ast.walk(ast.parse(python(source))) if isinstance(node, ast.Name)}


def _inside(source: str) -> str:
    """A given cell without its first lines, which differ between editions of a notebook."""
    return DOOR.sub("", source, count=1).strip() if DOOR.match(source) else source.strip()


def _words(source: str) -> str:
    """A text without white space and link targets, for comparison."""
    return TARGET.sub("", source)


def _said(cell: dict[str, Any]) -> dict[str, Any]:
    """nbgrader's metadata of a cell."""
    return cell.get("metadata", {}).get("nbgrader") or {}


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])
