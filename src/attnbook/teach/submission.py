"""A student's notebook, of which nothing is trusted, and the reference it is put into."""

import ast
import hashlib
import json
import os
import symtable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

LARGEST, NAME = 20_000_000, 150  # bytes of a notebook, and of a student's name
RUNNING = ("time", "capture", "prun")  # magics that run a cell, and keep its names


class RefusedError(Exception):
    """A notebook that cannot be graded: why, in words for its student."""


@dataclass
class Task:
    """A check of the reference, and the cells whose answer it judges.

    Attributes:
        name: the check's `grade_id`.
        points: what it is worth.
        check: its source, hidden tests included.
        answers: the `grade_id` of the cells since the check before.
        names: what the check uses of what this and earlier cells define in the reference.
        reader: whether a person reads the answer.
    """

    name: str = ""
    points: float = 0.0
    check: str = ""
    answers: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    reader: bool = False


@dataclass
class Reference:
    """The notebook of the solutions: what stands before each task, and the tasks in order."""

    name: str
    tasks: list[Task]
    given: dict[str, str]  # sources of cells that are neither answers nor checks, by their id
    order: list[str]  # ids of all code cells


def reference(path: Path) -> Reference:
    """Read the notebook of the solutions, which is nbgrader's source version.

    Raises:
        ValueError: if it has no checks.
    """
    found, task, names = Reference(path.stem, [], {}, []), Task(), list[str]()
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        said, code = _said(cell), cell["cell_type"] == "code"
        if not (code or said.get("grade")):
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
            task.reader = bool(said.get("solution"))
            task.check = "" if task.reader else _source(cell)
            task.names = [name for name in dict.fromkeys(names) if name in _used(task.check)]
            found.tasks.append(task)
            task = Task()
    if not found.tasks:
        raise ValueError(f"reference must have cells with points, got none in {path.name}")
    return found


def submissions(folder: Path, name: str) -> dict[str, Path]:
    """The notebook of each student: STUDENT.ipynb, or STUDENT/**/a1*.ipynb as nbgrader has it."""
    found = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        inside = [entry]
        if entry.is_dir() and not entry.is_symlink():
            every = sorted(p for p in entry.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
            inside = [p for p in every if p.name.startswith(name)] or every or [entry]
        student = _named(entry.stem if entry.suffix == ".ipynb" else entry.name)
        while student in found:  # ada.ipynb and ada/a1.ipynb
            student += "+"
        found[student] = inside[0]
    return found


def _named(name: str) -> str:
    """A student's name that is also a file's, even where the system's own are longer or no text."""
    whole = os.fsencode(name)
    known = hashlib.sha256(whole).hexdigest()[:8]
    short = whole if len(whole) <= NAME else whole[: NAME - 9] + f"-{known}".encode()
    return short.decode("utf-8", "backslashreplace" if short is whole else "ignore")


def answers(path: Path, known: Reference) -> dict[str, list[str]]:
    """The sources of a student's cells, by the `grade_id` of the reference's cell they belong to.

    Cells that the student added belong to the one before them; a cell that is there twice is run
    twice. What stands in checks and in the reference's own cells is not read.

    Raises:
        RefusedError: if the file is no notebook of this assignment.
    """
    if path.is_symlink() or not path.is_file():
        raise RefusedError("it must be a file, not a link")
    if path.stat().st_size > LARGEST:
        raise RefusedError(f"it must have at most {LARGEST // 10**6} MB, clear its outputs")
    try:
        nb: Any = json.loads(path.read_text("utf-8-sig"))  # a mark in front is no fault
        language = nb["metadata"].get("kernelspec", {}).get("language", "python")
        if nb.get("nbformat") != 4:
            raise RefusedError("it must be a notebook of format 4, save it with a present Jupyter")
        if str(language).lower() != "python":
            raise RefusedError(f"its language must be Python, not {str(language)[:40]}")
        found: dict[str, list[str]] = {}
        last, theirs = known.order[0], False
        written = {answer for task in known.tasks for answer in task.answers}
        for cell in nb["cells"]:
            said = _said(cell)
            name = said.get("grade_id")
            if name in known.order:
                last = name
            elif name or cell["cell_type"] != "code":
                continue  # a text, or a check of another assignment
            if name in written:
                theirs = True
            elif name in known.order:
                continue  # the reference has its own
            found.setdefault(last, []).append(_source(cell))
    except RefusedError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OSError):
        raise RefusedError("it must be a Jupyter notebook") from None
    if not theirs:
        raise RefusedError(f"it must hold cells of assignment {known.name}, got none")
    return found


def python(source: str) -> str:
    """A cell as Python: magics, shell lines and questions are calls of `get_ipython()`."""
    return TransformerManager().transform_cell(source)


class Shell:
    """What `get_ipython()` gives: magics that time a cell run it, all else does nothing."""

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
    """The names that a check asks for."""
    return {node.id for node in ast.walk(ast.parse(python(source))) if isinstance(node, ast.Name)}


def _said(cell: dict[str, Any]) -> dict[str, Any]:
    """What nbgrader keeps about a cell."""
    return cell.get("metadata", {}).get("nbgrader") or {}


def _source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])
