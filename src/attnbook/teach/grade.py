"""Grade a folder of notebooks: `attnbook-grade a1 SUBMISSIONS`.

Each student's cells are put into the untouched reference and run in a process of their own. The
checks, including hidden ones, run in another process, which takes only values from the student's.
So a student's code cannot make a check pass by changing Python.
"""

import argparse
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import NoReturn

import torch

from attnbook.checks import part
from attnbook.teach import records, report
from attnbook.teach.exhibit import clean
from attnbook.teach.handed_in import HandedIn, handed_in
from attnbook.teach.overview import overview
from attnbook.teach.report import Graded
from attnbook.teach.sitting import WHOLE, grade
from attnbook.teach.student import SECONDS, Nursery, follow
from attnbook.teach.submission import Reference, reference
from attnbook.teach.walls import WALLS, Stood, WallError, admitted
from attnbook.teach.wire import GoneError

ROOM = 4 << 30  # bytes of memory for the checks, whatever an answer returns


@dataclass(frozen=True)
class Terms:
    """Settings for all students: seconds per cell and per notebook, and the walls that stand."""

    seconds: float
    whole: float
    stood: Stood


_here: dict[str, Nursery] = {}  # of this process
_known = cache(reference)  # read once per process, and never changed


def _worker(folder: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent handles it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    tempfile.tempdir = folder
    torch.set_num_threads(1)
    follow()
    if sys.platform == "linux":
        from attnbook.teach import cage  # which Windows cannot import

        cage.bound(ROOM)


def _close() -> None:
    """Close the nursery, which would otherwise leave a folder behind."""
    if "nursery" in _here:
        _here.pop("nursery").__exit__(None, None, None)


def _one(student: str, path: Path, where: Path, terms: Terms) -> Graded:
    known = _known(where)
    for last in (False, True):
        if "nursery" not in _here:
            _here["nursery"] = Nursery(terms.stood.tool, terms.stood.built).__enter__()
            Finalize(None, _close, exitpriority=0)
        try:
            graded = grade(student, path, known, _here["nursery"], terms.seconds, terms.whole)
        except GoneError:  # the nursery itself was damaged: try another one, once
            _close()
            if last:
                raise
        else:
            graded.walls = terms.stood.walls
            return graded
    raise AssertionError


def _all(todo: dict[str, Path], where: Path, terms: Terms, jobs: int) -> Generator[Graded]:
    """Grade all; if a grader process dies, its unfinished students are graded one at a time."""
    again: list[str] = []
    # the files of graders and students are deleted when grading ends or is stopped
    with tempfile.TemporaryDirectory(prefix="grading-", ignore_cleanup_errors=True) as folder:
        pool = ProcessPoolExecutor(jobs, initializer=_worker, initargs=(folder,))
        tried = {pool.submit(_one, who, path, where, terms): who for who, path in todo.items()}
        for job in as_completed(tried):
            try:
                yield job.result()
            except Exception as error:  # the others' work must not be lost
                if isinstance(error, BrokenProcessPool) and len(todo) > 1:
                    again.append(tried[job])
                    continue
                why = f"the grader failed, tell its authors: {type(error).__name__}: {error}"
                why = report.short_message(f"needs a person: {why}")
                yield Graded(tried[job], [], "", [], 0.0, failed=why)
        pool.shutdown()
    for student in again:
        yield from _all({student: todo[student]}, where, terms, 1)


def _write(
    out: Path, results: Iterable[Graded], known: Reference, handed: HandedIn, stood: Stood
) -> None:
    """Write the table and the page of the class, including hand-ins without a result."""
    by_name = {each.student: each for each in results}
    late = "not graded yet: the run was stopped"
    every = [
        by_name.get(student) or Graded(student, [], "", [], 0.0, failed=late)
        for student in handed.notebooks
    ]
    records.write(out / f"{known.name}.csv", report.table(every, known, WALLS))
    page = overview(every, known, WALLS, handed.strays, str(stood))
    records.write(out / f"{known.name}.html", page)


def main(argv: list[str] | None = None) -> None:
    """The command `attnbook-grade`."""
    if argv is None:  # the command itself: when a job queue ends it, that acts like Ctrl-C
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    asked = _arguments(argv)
    found = sorted(asked.solutions.glob(f"{asked.assignment}*.ipynb"))
    if len(found) != 1:
        sys.exit(
            f"{asked.solutions} must hold one notebook {asked.assignment}*.ipynb, got {len(found)}"
        )
    if not asked.submissions.is_dir():
        sys.exit(f"submissions must be a folder, got {asked.submissions}")
    solution, known = found[0], reference(found[0])
    terms = _terms(asked)
    print(terms.stood, flush=True)
    handed = handed_in(asked.submissions, known)
    if handed.strays:
        print(clean(f"no student's, passed over: {', '.join(handed.strays)}"))
    if asked.part:
        handed.notebooks = dict([*handed.notebooks.items()][asked.part])
    made = terms, records.package()
    digests = {
        student: records.digest(made, handed.notes.get(student, ""), path, solution)
        for student, path in handed.notebooks.items()
    }
    kept = {each: records.kept(asked.out, known, each, digest) for each, digest in digests.items()}
    graded = [old for old in kept.values() if old]
    if graded:
        print(f"{len(graded)} were graded before")
    todo = {each: path for each, path in handed.notebooks.items() if not kept[each]}
    try:
        with closing(_all(todo, solution, terms, asked.jobs)) as everyone:
            for each in everyone:
                each.note = report.short_message(handed.notes.get(each.student, ""))
                graded.append(each)
                _keep(asked.out, known, each, digests[each.student])
                print(
                    report.short_message(f"{each.student}: {each.result} ({each.seconds} s)"),
                    flush=True,
                )
    except BaseException as error:
        _stop(error, lambda: asked.part or _write(asked.out, graded, known, handed, terms.stood))
    where = asked.out / known.name
    if asked.part:  # a part writes no table
        print(f"{len(graded)} students of this part: {where}")
    else:
        _write(asked.out, graded, known, handed, terms.stood)
        print(f"{len(graded)} students: {where}.csv, {where}.html")
    if failed := [each.student for each in graded if each.failed]:
        sys.exit(report.short_message(f"{len(failed)} could not be graded: {', '.join(failed)}"))


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="attnbook-grade", description=__doc__)
    parser.add_argument("assignment", help="as a1: the reference is book/solutions/a1*.ipynb")
    parser.add_argument(
        "submissions", type=Path, help="a folder: STUDENT.ipynb, or STUDENT/a1*.ipynb"
    )
    parser.add_argument("--solutions", type=Path, default=Path("book/solutions"))
    parser.add_argument("--out", type=Path, default=Path("graded"), help="a1.csv and pages")
    parser.add_argument("--jobs", type=int, default=2, help="students at a time")
    parser.add_argument(
        "--part",
        type=part,
        metavar="K/N",
        help="grade the K-th of every N students alone, as a job of an array: a run without it"
        " takes over what all parts graded, and writes the tables",
    )
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
    return parser.parse_args(argv)


def _terms(asked: argparse.Namespace) -> Terms:
    """The settings for all students once the walls stand; without walls the command ends."""
    course = (asked.solutions, asked.submissions, *[asked.out] * asked.out.is_dir())
    try:
        stood = admitted(asked.without, asked.as_root, course)
    except WallError as why:
        print(why, file=sys.stderr)
        sys.exit(2)
    return Terms(asked.seconds, asked.whole, stood)


def _keep(out: Path, known: Reference, each: Graded, digest: str) -> None:
    """Write a student's page; if that fails, grading goes on and a note says so."""
    try:
        records.keep(out, known, each, digest)
    except OSError as error:
        why = f"the page could not be written: {error}"
        each.note = report.short_message(f"{each.note}; {why}" if each.note else why)
    each.shown.clear()  # it is on the page


def _stop(error: BaseException, write: Callable[[], None]) -> NoReturn:
    """After an interrupt or an error in the grader, write what was graded and end at once."""
    stopped = isinstance(error, KeyboardInterrupt)
    if stopped:
        print("stopped; what was graded is kept", flush=True)
    else:
        traceback.print_exception(error)
    try:
        write()
    finally:
        os._exit(130 if stopped else 1)  # its child processes end with it


if __name__ == "__main__":
    main()
