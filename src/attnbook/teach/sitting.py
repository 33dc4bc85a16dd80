"""One student's notebook: its cells run in a separate process and are graded from here."""

import io
import random
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnbook.teach import report
from attnbook.teach.exhibit import Exhibit
from attnbook.teach.judging import AnswerError
from attnbook.teach.report import NOT_ANSWERED, Graded, Mark
from attnbook.teach.student import Nursery, Student
from attnbook.teach.submission import (
    Reference,
    RefusedError,
    Shell,
    answers,
    cells,
    python,
    work,
)
from attnbook.teach.wire import GoneError, RaisedError

WHOLE = 300.0  # seconds for all cells and checks of a notebook


class Sitting:
    """One student's cells and the checks, run from top to bottom.

    Each cell and each check may take `seconds`, and all of them together `whole`.
    """

    def __init__(
        self,
        known: Reference,
        cells: dict[str, list[str]],
        nursery: Nursery,
        seconds: float,
        whole: float = WHOLE,
    ):
        self.known, self.cells, self.nursery, self.seconds = known, cells, nursery, seconds
        self.deadly: set[str] = set()  # cells that ended the process
        self.failed: dict[str, str] = {}  # cell -> message of its error
        self.until = time.monotonic() + whole
        self.student = Student(nursery, seconds, self.until)

    def marks(self) -> Iterator[Mark]:
        """Grade one task after another."""
        names: dict[str, Any] = {"__name__": "__main__"}
        names["get_ipython"] = lambda: Shell(names)
        done: list[str] = []
        todo = iter(self.known.order)
        for task in self.known.tasks:
            for cell in todo:
                if cell == task.name:
                    break
                if cell in self.known.given:
                    with redirect_stdout(io.StringIO()):
                        exec(compile(python(self.known.given[cell]), f"<{cell}>", "exec"), names)
                done.append(cell)
                self._run(cell, done)
            if task.reader:
                yield Mark(task.name, None, task.points, "")
            else:
                yield self._judge(task, names, done)
                done.append(task.name)  # cells that the student added after the check
                self._run(task.name, done)

    def _run(self, cell: str, done: list[str]) -> None:
        """Run the reference's own cell, then the student's."""
        given = [self.known.given[cell]] if cell in self.known.given else []
        theirs = [] if cell in self.deadly else self.cells.get(cell, [])
        for source in [*given, *theirs]:
            if self.late:
                return
            try:
                self.student.run(source, cell)
            except RaisedError as error:
                self.failed.setdefault(cell, f"the cell raised {error}")
            except GoneError as why:
                self.deadly.add(cell)
                self.failed[cell] = f"the process that ran the cell was ended: {why}"
                self._again(done)
                return

    @property
    def late(self) -> bool:
        """Whether all cells and checks together took too long."""
        return time.monotonic() > self.until

    def _again(self, done: list[str]) -> None:
        """Start a new process and rerun all cells that did not end the old one."""
        self.student.end()
        self.student = Student(self.nursery, self.seconds, self.until)
        for cell in done:
            self._run(cell, done[: done.index(cell)])

    def _judge(self, task: Any, names: dict[str, Any], done: list[str]) -> Mark:
        printed, points = io.StringIO(), 0.0
        try:
            if self.late:
                raise GoneError("all cells together took too long")
            names |= {name: self.student.get(name) for name in task.names}
            if missing := [name for name in task.names if names[name] is None]:
                raise AnswerError(f"there is no {missing[0]}: its cell is missing, or failed")
            self.student.hurry()
            _seed()
            with redirect_stdout(printed):
                exec(compile(python(task.check), f"<{task.name}>", "exec"), names)
            points, said = task.points, printed.getvalue()
        except AnswerError as wrong:
            said = str(wrong)
        except RaisedError as error:
            said = f"your code raised {error}"
        except GoneError as why:
            said = f"your code was ended: {why}"
            self._again(done)
        except Exception as error:  # a check met what it did not expect
            said = f"the check could not use your answer: {type(error).__name__}: {error}"
        told = [self.failed[cell] for cell in task.answers if cell in self.failed and not points]
        return Mark(task.name, points, task.points, report.short_message("\n".join([*told, said])))


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def grade(
    student: str,
    path: Path,
    known: Reference,
    nursery: Nursery,
    seconds: float,
    whole: float = WHOLE,
) -> Graded:
    """Grade one notebook; whatever it contains, there is a result."""
    begin, found, refused = time.perf_counter(), [], ""
    shown = dict[str, str]()
    try:
        theirs = cells(path)
        sitting = Sitting(known, answers(theirs, known), nursery, seconds, whole)
        try:
            found = list(sitting.marks())
        finally:
            sitting.student.end()
        exhibit, wrote = Exhibit(path.name), work(theirs, known)
        shown = {task: exhibit.show(each) for task, each in wrote.items()}
        elsewhere = any(not cell.code for each in wrote.values() for cell in each)
        for mark in found:
            if mark.points is None and not wrote[mark.task] and not elsewhere:
                mark.points, mark.message = 0.0, NOT_ANSWERED
    except RefusedError as why:
        refused = report.short_message(f"{path.name}: {why}")
    took = round(time.perf_counter() - begin, 1)
    return Graded(student, found, refused, [], took, shown=shown)
