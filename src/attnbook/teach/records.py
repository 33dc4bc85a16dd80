"""Stored results of an interrupted grading run, and when they are trusted.

A record is used only if nothing that it depends on has changed, if its contents match its seal,
and if only the grading user could have written it. It is a cache, not a proof: whoever can write as
that user can also write the table of points.
"""

import hashlib
import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import attnbook
from attnbook import files
from attnbook.teach.report import Graded, Mark, feedback
from attnbook.teach.submission import Reference

PACKAGE = Path(attnbook.__file__).parent


def digest(terms: object, note: str, *paths: Path) -> str:
    """A hash of what a result depends on.

    Args:
        terms: the settings for all students, such as seconds per cell, and the hash by `package`.
        note: the note about the choice of the file.
        paths: the paths of the notebooks.
    """
    seen = hashlib.sha256(f"{terms} {note}".encode("utf-8", "surrogateescape"))
    for path in paths:
        seen.update(b"\0" + os.fsencode(path))
        with suppress(OSError):  # an unreadable file is refused later
            if not path.is_symlink() and path.is_file() and path.stat().st_size < 1 << 28:
                seen.update(path.read_bytes())
    return seen.hexdigest()


def package() -> str:
    """A hash of this package and of torch's version."""
    return digest(torch.__version__, "", *sorted(PACKAGE.rglob("*.py")))


def write(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner only."""
    with files.atomic(path) as place:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def keep(out: Path, known: Reference, graded: Graded, digest: str) -> None:
    """Write a student's page and, if there is a result, the record."""
    folder = out / known.name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(folder / f"{graded.student}.html", feedback(known, graded))
    record = folder / f"{graded.student}.json"
    if graded.failed:
        record.unlink(missing_ok=True)
    else:
        kept = {name: value for name, value in asdict(graded).items() if name != "shown"}
        write(record, json.dumps({"digest": _seal(digest, kept), **kept}))


def kept(out: Path, known: Reference, student: str, digest: str) -> Graded | None:
    """The result of an earlier run, if it can be trusted and its page exists; otherwise None."""
    record = out / known.name / f"{student}.json"
    if not record.with_name(f"{student}.html").is_file():
        return None
    try:
        found = json.loads(_own(record))
        if found.pop("digest") == _seal(digest, found) and found["student"] == student:
            return Graded(**{**found, "marks": [Mark(**mark) for mark in found["marks"]]})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # no record, or one of another version, or an edited one
    return None


def _own(path: Path) -> bytes:
    """The bytes of a file that only this user could have written."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise PermissionError(f"{path} must be a file that only its owner writes")
        return file.read()


def _seal(digest: str, kept: dict[str, Any]) -> str:
    """A hash of a result and of what it depends on."""
    return hashlib.sha256(f"{digest} {json.dumps(kept, sort_keys=True)}".encode()).hexdigest()
