"""Finds the notebook of each student in a folder."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from attnbook.teach.submission import UNSOLVED, Reference, RefusedError, cells

NAME, TRIED = 150, 20  # most bytes of a student's name, and most files per student that are read
SYSTEM = ("__MACOSX", "__pycache__")  # folders that no student made
COPY = re.compile(r"(-Copy\d+| ?\(\d+\)| - Copy| copy( \d+)?)+$", re.IGNORECASE)  # as in "a1-Copy1"
NUMBERED = re.compile(
    r"^(.+_\d{3,})_\d{3,}_(.+)$"
)  # Canvas: student and number, file's number, file


@dataclass
class HandedIn:
    """The contents of a folder of hand-ins.

    Attributes:
        notebooks: student -> the file to grade.
        notes: for students with several files: which one is graded, and which ones are skipped.
        strays: names of files that belong to no student.
    """

    notebooks: dict[str, Path]
    notes: dict[str, str]
    strays: list[str]


def handed_in(folder: Path, known: Reference) -> HandedIn:
    """The notebook of each student: STUDENT.ipynb, or STUDENT/**/a1*.ipynb as in nbgrader.

    Of several files, the one with exactly the assignment's name is graded (in a flat folder: the
    name without "-Copy1" or " (1)"). If there is none, it is the file with the most answered tasks,
    and of these the newest.

    Args:
        folder: the folder of hand-ins.
        known: the assignment.
    """
    found, files, flat = HandedIn({}, {}, []), dict[Path, list[Path]](), list[Path]()
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name in SYSTEM:
            found.strays.append(entry.name)
        elif entry.is_dir() and not entry.is_symlink():
            files[entry] = _inside(entry, known.name)
        elif entry.suffix.lower() == ".ipynb" or entry.is_dir():
            flat.append(entry)
        else:
            found.strays.append(entry.name)
    for path, original in _originals(flat).items():
        files.setdefault(original, []).append(path)
    for whose, theirs in sorted(files.items()):
        best, note = theirs[0], ""
        if len(theirs) > 1:
            best, note = _chosen(theirs, whose, known)
        student = _named(whose.stem if whose.suffix.lower() == ".ipynb" else whose.name)
        while student in found.notebooks:  # ada.ipynb and ada/a1.ipynb
            student += "+"
        found.notebooks[student] = best
        if note:
            found.notes[student] = note
    return found


def _originals(flat: list[Path]) -> dict[Path, Path]:
    """Map each file to the file that it is a copy of, often itself.

    If "ada.ipynb" is missing, "ada (1).ipynb" and "ada (2).ipynb" may be two students.
    """
    names = {path: NUMBERED.sub(r"\1/\2", path.stem) for path in flat}
    of = {
        path: [first for first in flat if names[first] == COPY.sub("", names[path])]
        for path in flat
        if COPY.search(names[path])
    }
    return {path: of[path][0] if len(of.get(path, [])) == 1 else path for path in flat}


def _inside(folder: Path, name: str) -> list[Path]:
    """The notebooks of a student's folder that may be the assignment's, or the folder itself."""
    every = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() == ".ipynb"
        and not any(part.startswith(".") or part in SYSTEM for part in _parts(path, folder))
    )
    others = re.compile(rf"(?<![a-z0-9]){re.escape(name.rstrip('0123456789'))}\d+(?!\d)", re.I)
    wanted = [path for path in every if name.lower() in others.findall(path.stem.lower())]
    return wanted or [path for path in every if not others.search(path.stem)] or every or [folder]


def _parts(path: Path, folder: Path) -> tuple[str, ...]:
    return path.relative_to(folder).parts


def _chosen(files: list[Path], whose: Path, known: Reference) -> tuple[Path, str]:
    """The file of a student to grade, and a note about the choice."""
    inside = whose.is_dir()
    parts = {path: _parts(path, whose if inside else whose.parent) for path in files}
    exact = [path for path in files if path == whose or (inside and path.stem == known.name)]
    newest = sorted(files, key=lambda path: (path in exact, path.lstat().st_mtime))
    done = {path: _answered(path, known) for path in reversed(newest[-TRIED:])}
    most = max(done, key=lambda path: done[path])
    named = [path for path in reversed(newest) if path in exact]
    best = min(named, key=lambda path: len(parts[path])) if named else most
    passed = ", ".join("/".join(parts[path]) for path in files if path != best)
    said = f"{'/'.join(parts[best])} was graded, passed over: {passed}"
    if done[most] > done.get(best, 0):
        said += f"; more tasks are answered in {'/'.join(parts[most])}"
    return best, said


def _answered(path: Path, known: Reference) -> int:
    """How many answers a notebook holds, right or wrong."""
    wanted = {answer for task in known.tasks for answer in task.answers}
    try:
        found = [cell for cell in cells(path) if cell.name in wanted and not cell.blank]
    except RefusedError:
        return -1
    return len({cell.name for cell in found if UNSOLVED not in cell.source})


def _named(name: str) -> str:
    """A student's name as a legal file name, even if the original is too long or not text."""
    whole = os.fsencode(name)
    known = hashlib.sha256(whole).hexdigest()[:8]
    short = whole if len(whole) <= NAME else whole[: NAME - 9] + f"-{known}".encode()
    return short.decode("utf-8", "backslashreplace" if short is whole else "ignore")
