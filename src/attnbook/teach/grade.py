"""Grade a folder of notebooks: `attnbook-grade a1 SUBMISSIONS`.

Each student's cells are put into the untouched reference and run in a process of their own. The
checks, hidden ones included, run in another, which takes nothing but values from the student's.
So nothing that a student's code does to Python can make a check pass. Before the first of their
lines runs, each wall around that process is tried (`walls`); where one is missing, nothing runs.
"""

import argparse
import csv
import hashlib
import html
import io
import json
import os
import random
import signal
import sys
import time
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attnbook import files
from attnbook.teach.judging import AnswerError
from attnbook.teach.student import SECONDS, Nursery, Student, follow
from attnbook.teach.submission import (
    Reference,
    RefusedError,
    Shell,
    answers,
    python,
    reference,
    submissions,
)
from attnbook.teach.walls import WALLS, Stood, WallError, admitted
from attnbook.teach.wire import GoneError, RaisedError

WHOLE = 300.0  # seconds that all cells and checks of a notebook may take
LONGEST = 2000  # letters of a message
STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui; margin: 1em auto; max-width: 50em; padding: 0 1em }
td, th { text-align: left; vertical-align: top; padding: 0.4em }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 }
"""
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


@dataclass
class Mark:
    """What a task got: points of `most`, and what its student is told."""

    task: str
    points: float | None  # None: a person has to read it
    most: float
    said: str


@dataclass
class Graded:
    """A student's marks, or why there are none."""

    student: str
    marks: list[Mark]
    refused: str
    walls: list[str]
    seconds: float

    @property
    def points(self) -> float:
        return float(sum(mark.points or 0 for mark in self.marks))


class Sitting:
    """One student's cells and the checks, from top to bottom: each cell and each check has
    `seconds`, all together have `whole`."""

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
        self.failed: dict[str, str] = {}  # what a cell's error said
        self.until = time.monotonic() + whole
        self.student = Student(nursery, seconds, self.until)

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
                said = "\n".join(self.cells.get(task.name, []))
                yield Mark(task.name, None, task.points, _clean(said))
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
        return Mark(task.name, points, task.points, _clean("\n".join([*told, said])))


def _clean(said: str) -> str:
    """What can be written to a file, and read on a page or a screen."""
    return "".join(
        "?" if unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" else letter
        for letter in said[:LONGEST]
    ).strip()


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
    """Grade one notebook; whatever is in it, there is a result."""
    begin, found, refused = time.perf_counter(), [], ""
    try:
        sitting = Sitting(known, answers(path, known), nursery, seconds, whole)
        try:
            found = list(sitting.marks())
        finally:
            sitting.student.end()
    except RefusedError as why:
        refused = _clean(f"{path.name}: {why}")
    return Graded(student, found, refused, [], round(time.perf_counter() - begin, 1))


@dataclass(frozen=True)
class Terms:
    """What holds for all: seconds for a cell, and for a whole notebook; the walls that stand."""

    seconds: float
    whole: float
    stood: Stood


_here: dict[str, Nursery] = {}  # of this process


def _worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent hears it
    torch.set_num_threads(1)
    follow()


def _close() -> None:
    """Without the nursery, which leaves a folder behind where its process only ends."""
    if "nursery" in _here:
        _here.pop("nursery").__exit__(None, None, None)


def _one(student: str, path: Path, where: Path, out: Path, terms: Terms) -> Graded:
    known = reference(where)
    for last in (False, True):
        if "nursery" not in _here:
            _here["nursery"] = Nursery(terms.stood.tool, terms.stood.built).__enter__()
            Finalize(None, _close, exitpriority=0)
        try:
            graded = grade(student, path, known, _here["nursery"], terms.seconds, terms.whole)
        except GoneError:  # the nursery itself was hurt: another one, once
            _close()
            if last:
                raise
        else:
            graded.walls = terms.stood.walls
            _store(out, known.name, graded, _digest(terms, path, where))
            return graded
    raise AssertionError


def _all(
    todo: dict[str, Path], where: Path, out: Path, terms: Terms, jobs: int
) -> Iterator[Graded]:
    """Grade all. Where a process of the grader ends, who was not done by then is tried alone."""
    again: list[str] = []
    pool = ProcessPoolExecutor(jobs, initializer=_worker)
    tried = {pool.submit(_one, who, path, where, out, terms): who for who, path in todo.items()}
    for job in as_completed(tried):
        try:
            yield job.result()
        except Exception as error:  # the others' work must not be lost
            if isinstance(error, BrokenProcessPool) and len(todo) > 1:
                again.append(tried[job])
                continue
            why = f"the grader failed, tell its authors: {type(error).__name__}: {error}"
            yield Graded(tried[job], [], _clean(why), [], 0.0)
    pool.shutdown()
    for student in again:
        yield from _all({student: todo[student]}, where, out, terms, 1)


def _store(out: Path, name: str, graded: Graded, digest: str) -> None:
    with files.whole(out / name / f"{graded.student}.html") as page:
        page.write_text(feedback(name, graded), "utf-8")
    with files.whole(out / name / f"{graded.student}.json") as record:
        record.write_text(json.dumps({"digest": digest, **asdict(graded)}), "utf-8")


def _digest(terms: object, *paths: Path) -> str:
    """What a result depends on: time and walls, the notebooks, the checks and the grader itself."""
    seen = hashlib.sha256(str(terms).encode())
    for path in [*paths, *sorted(Path(__file__).parent.glob("*.py"))]:
        seen.update(b"\0" + os.fsencode(path))
        with suppress(OSError):  # a file that nobody may read is refused later
            if not path.is_symlink() and path.is_file() and path.stat().st_size < 1 << 28:
                seen.update(path.read_bytes())
    return seen.hexdigest()


def _stored(out: Path, name: str, student: str, digest: str) -> Graded | None:
    """The result of an earlier run, if nothing has changed since."""
    record = out / name / f"{student}.json"
    if not record.is_file():
        return None
    try:
        said = json.loads(record.read_text("utf-8"))
        if said.pop("digest") == digest:
            return Graded(**{**said, "marks": [Mark(**mark) for mark in said["marks"]]})
    except (ValueError, LookupError, TypeError, AttributeError):
        pass  # another version wrote it, or a hand
    return None


def feedback(name: str, graded: Graded) -> str:
    """A page that tells a student what each task got, and why."""
    rows = "".join(
        f"<tr><th scope=row>{html.escape(mark.task)}"
        f"<td>{'to be read' if mark.points is None else f'{mark.points:g} of {mark.most:g}'}"
        f"<td><pre>{html.escape(mark.said)}</pre>"
        for mark in graded.marks
    )
    most = sum(mark.most for mark in graded.marks)
    total = f"<p>{graded.points:g} of {most:g} points." if graded.marks else ""
    refused = f"<p><strong>Not graded.</strong> {html.escape(graded.refused)}" * bool(
        graded.refused
    )
    title = html.escape(f"{name}: {graded.student}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style>"
        f"<h1>{title}</h1>{refused}{total}<table>{rows}</table></html>\n"
    )


def table(graded: list[Graded], known: Reference) -> str:
    """A row of CSV for each student."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ["student", "points", "of", *(task.name for task in known.tasks), "note", "seconds"]
    )
    most = sum(task.points for task in known.tasks)
    for each in sorted(graded, key=lambda each: each.student):
        by_task = {mark.task: "read" if mark.points is None else mark.points for mark in each.marks}
        open_ = [wall for wall in WALLS if wall not in each.walls and not each.refused]
        note = each.refused or ("without walls: " + ", ".join(open_) if open_ else "")
        points = [by_task.get(task.name, 0) for task in known.tasks]
        row = [each.student, each.points, most, *points, note, each.seconds]
        rows.writerow([f"'{x}" if str(x).startswith(FORMULA) else x for x in row])
    return text.getvalue()


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
    parser.add_argument("--whole", type=float, default=WHOLE, help="seconds for a whole notebook")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=list(WALLS),
        metavar="WALL",
        help="grade though this wall is missing, only on a system that you can throw away; may be"
        " repeated. " + "; ".join(f"{name}: {what}" for name, what in WALLS.items()),
    )
    parser.add_argument("--as-root", action="store_true", help="grade as root, on such a system")
    said = parser.parse_args(argv)
    found = sorted(said.solutions.glob(f"{said.assignment}*.ipynb"))
    if len(found) != 1:
        sys.exit(
            f"{said.solutions} must hold one notebook {said.assignment}*.ipynb, got {len(found)}"
        )
    if not said.submissions.is_dir():
        sys.exit(f"submissions must be a folder, got {said.submissions}")
    known = reference(found[0])
    try:
        course = (said.solutions, said.submissions, *[said.out] * said.out.is_dir())
        terms = Terms(said.seconds, said.whole, admitted(said.without, said.as_root, course))
    except WallError as why:
        print(why, file=sys.stderr)
        sys.exit(2)
    print(terms.stood, flush=True)
    todo, graded = submissions(said.submissions, said.assignment), []
    for student, path in list(todo.items()):
        digest = _digest(terms, path, found[0])
        if old := _stored(said.out, known.name, student, digest):
            graded.append(old)
            del todo[student]
    if graded:
        print(f"{len(graded)} were graded before")
    try:
        for each in _all(todo, found[0], said.out, terms, said.jobs):
            graded.append(each)
            what = each.refused or f"{each.points:g}"
            print(_clean(f"{each.student}: {what} ({each.seconds} s)"), flush=True)
    except KeyboardInterrupt:  # its processes follow it
        print("stopped; what was graded is kept", flush=True)
        os._exit(130)
    with files.whole(said.out / f"{known.name}.csv") as path:
        path.write_text(table(graded, known), "utf-8")
    print(f"{len(graded)} students: {said.out / known.name}.csv")


if __name__ == "__main__":
    main()
