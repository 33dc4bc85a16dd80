"""Grade a folder of notebooks: `attnbook-grade a1 SUBMISSIONS`.

Each student's cells are put into the untouched reference and run in a process of their own. The
checks, hidden ones included, run in another, which takes nothing but values from the student's.
So nothing that a student's code does to Python can make a check pass.
"""

import argparse
import io
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnbook.teach import records, report
from attnbook.teach.exhibit import Exhibit, clean
from attnbook.teach.handed_in import HandedIn, handed_in
from attnbook.teach.judging import AnswerError
from attnbook.teach.overview import overview
from attnbook.teach.report import NOT_ANSWERED, Graded, Mark
from attnbook.teach.sandbox import follow
from attnbook.teach.student import SECONDS, Nursery, Student
from attnbook.teach.submission import (
    Reference,
    RefusedError,
    Shell,
    answers,
    cells,
    python,
    reference,
    work,
)
from attnbook.teach.wire import GoneError, RaisedError

WALLS = ("network", "processes", "files", "disk")
TURNS = 2  # times that each task may take all its seconds


class Sitting:
    """One student's cells and the checks, from top to bottom."""

    def __init__(
        self, known: Reference, cells: dict[str, list[str]], nursery: Nursery, seconds: float
    ):
        self.known, self.cells, self.nursery, self.seconds = known, cells, nursery, seconds
        self.deadly: set[str] = set()  # cells that ended the process
        self.failed: dict[str, str] = {}  # what a cell's error said
        self.until = time.monotonic() + TURNS * seconds * len(known.tasks)
        self.student = Student(nursery, seconds=seconds)

    def marks(self) -> Iterator[Mark]:
        """Judge task after task."""
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
                done.append(task.name)  # the student's own cells behind the check
                self._run(task.name, done)

    def _run(self, cell: str, done: list[str]) -> None:
        """The reference's own cell, then the student's."""
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
        """A new process, in which all cells are run that did no harm."""
        self.student.end()
        self.student = Student(self.nursery, seconds=self.seconds)
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
        return Mark(task.name, points, task.points, report.said("\n".join([*told, said])))


def _seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def grade(student: str, path: Path, known: Reference, nursery: Nursery, seconds: float) -> Graded:
    """Grade one notebook; whatever is in it, there is a result."""
    begin, found, walls, refused = time.perf_counter(), [], [], ""
    shown = dict[str, str]()
    try:
        theirs = cells(path)
        sitting = Sitting(known, answers(theirs, known), nursery, seconds)
        try:
            walls = sitting.student.walls
            found = list(sitting.marks())
        finally:
            sitting.student.end()
        exhibit, wrote = Exhibit(path.name), work(theirs, known)
        shown = {task: exhibit.show(each) for task, each in wrote.items()}
        elsewhere = any(not cell.code for each in wrote.values() for cell in each)
        for mark in found:
            if mark.points is None and not wrote[mark.task] and not elsewhere:
                mark.points, mark.said = 0.0, NOT_ANSWERED
    except RefusedError as why:
        refused = report.said(f"{path.name}: {why}")
    took = round(time.perf_counter() - begin, 1)
    return Graded(student, found, refused, walls, took, shown=shown)


_here: dict[str, Nursery] = {}  # of this process


def _worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent hears it
    torch.set_num_threads(1)
    follow()


def _one(student: str, path: Path, where: Path, seconds: float) -> Graded:
    known = reference(where)
    for last in (False, True):
        if "nursery" not in _here:
            _here["nursery"] = Nursery().__enter__()
        try:
            return grade(student, path, known, _here["nursery"], seconds)
        except GoneError:  # the nursery itself was hurt: another one, once
            _here.pop("nursery").__exit__(None, None, None)
            if last:
                raise
    raise AssertionError


def _all(todo: dict[str, Path], where: Path, seconds: float, jobs: int) -> Iterator[Graded]:
    """Grade all. Where a process of the grader ends, who was not done by then is tried alone."""
    again: list[str] = []
    pool = ProcessPoolExecutor(jobs, initializer=_worker)
    tried = {pool.submit(_one, who, path, where, seconds): who for who, path in todo.items()}
    for job in as_completed(tried):
        try:
            yield job.result()
        except Exception as error:  # the others' work must not be lost
            if isinstance(error, BrokenProcessPool) and len(todo) > 1:
                again.append(tried[job])
                continue
            why = f"the grader failed, tell its authors: {type(error).__name__}: {error}"
            why = report.said(f"needs a person: {why}")
            yield Graded(tried[job], [], "", [], 0.0, failed=why)
    pool.shutdown()
    for student in again:
        yield from _all({student: todo[student]}, where, seconds, 1)


def _write(out: Path, results: Iterable[Graded], known: Reference, handed: HandedIn) -> None:
    """The table and the page of the class, with all hand-ins, also those without a result."""
    by_name = {each.student: each for each in results}
    late = "not graded yet: the run was stopped"
    every = [
        by_name.get(student) or Graded(student, [], "", [], 0.0, failed=late)
        for student in handed.notebooks
    ]
    records.write(out / f"{known.name}.csv", report.table(every, known, WALLS))
    page = overview(every, known, WALLS, handed.strays)
    records.write(out / f"{known.name}.html", page)


def main(argv: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="attnbook-grade", description=__doc__)
    parser.add_argument("assignment", help="as a1: the reference is book/solutions/a1*.ipynb")
    parser.add_argument(
        "submissions", type=Path, help="a folder: STUDENT.ipynb, or STUDENT/a1*.ipynb"
    )
    parser.add_argument("--solutions", type=Path, default=Path("book/solutions"))
    parser.add_argument("--out", type=Path, default=Path("graded"), help="a1.csv and pages")
    parser.add_argument("--jobs", type=int, default=2, help="students at a time")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that a cell may take")
    said = parser.parse_args(argv)
    found = sorted(said.solutions.glob(f"{said.assignment}*.ipynb"))
    if len(found) != 1:
        sys.exit(
            f"{said.solutions} must hold one notebook {said.assignment}*.ipynb, got {len(found)}"
        )
    if not said.submissions.is_dir():
        sys.exit(f"submissions must be a folder, got {said.submissions}")
    known = reference(found[0])
    handed = handed_in(said.submissions, known)
    if handed.strays:
        print(clean(f"no student's, passed over: {', '.join(handed.strays)}"))
    todo, graded = dict(handed.notebooks), list[Graded]()
    digests = {
        student: records.digest(said.seconds, handed.notes.get(student, ""), path, found[0])
        for student, path in todo.items()
    }
    for student, digest in digests.items():
        if old := records.kept(said.out, known, student, digest):
            graded.append(old)
            del todo[student]
    if graded:
        print(f"{len(graded)} were graded before")
    try:
        for each in _all(todo, found[0], said.seconds, said.jobs):
            each.note = report.said(handed.notes.get(each.student, ""))
            graded.append(each)
            try:
                records.keep(said.out, known, each, digests[each.student])
            except OSError as error:
                why = f"the page could not be written: {error}"
                each.note = report.said(f"{each.note}; {why}" if each.note else why)
            each.shown.clear()  # it is on the page
            print(report.said(f"{each.student}: {each.result} ({each.seconds} s)"), flush=True)
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt)
        if stopped:
            print("stopped; what was graded is kept", flush=True)
        else:
            traceback.print_exc()
        try:
            _write(said.out, graded, known, handed)
        finally:
            os._exit(130 if stopped else 1)  # its processes follow it
    _write(said.out, graded, known, handed)
    where = said.out / known.name
    print(f"{len(graded)} students: {where}.csv, {where}.html")
    if failed := [each.student for each in graded if each.failed]:
        sys.exit(report.said(f"{len(failed)} could not be graded: {', '.join(failed)}"))


if __name__ == "__main__":
    main()
