"""What earlier runs found out, for runs that go on, and how far it is trusted.

A record is taken for a result only if nothing that it depends on has changed, if its words are
those that were sealed with it, and if nobody but the user who grades could have written it. It
is a memory and no proof: who can write as that user can write the table of points as well.
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
    """What a result depends on: the time, the notebooks, all of this package, and torch's version.

    Args:
        terms: what holds for all, as the seconds of a cell.
        note: what is known about the choice of the file.
        paths: of the notebooks.
    """
    seen = hashlib.sha256(f"{terms} {note} {torch.__version__}".encode("utf-8", "surrogateescape"))
    for path in [*paths, *sorted(PACKAGE.rglob("*.py"))]:
        seen.update(b"\0" + os.fsencode(path))
        with suppress(OSError):  # a file that nobody may read is refused later
            if not path.is_symlink() and path.is_file() and path.stat().st_size < 1 << 28:
                seen.update(path.read_bytes())
    return seen.hexdigest()


def write(path: Path, text: str) -> None:
    """Write a file whole, for the user alone."""
    with files.atomic(path) as place:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def keep(out: Path, known: Reference, graded: Graded, digest: str) -> None:
    """Write a student's page, and the record, if there is a result to go on with."""
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
    """The result of an earlier run, if it can be trusted, and its page is there."""
    record = out / known.name / f"{student}.json"
    if not record.with_name(f"{student}.html").is_file():
        return None
    try:
        found = json.loads(_own(record))
        if found.pop("digest") == _seal(digest, found) and found["student"] == student:
            return Graded(**{**found, "marks": [Mark(**mark) for mark in found["marks"]]})
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # there is none, or another version wrote it, or a hand
    return None


def _own(path: Path) -> bytes:
    """What stands in a file that nobody but this user could have written."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise PermissionError(f"{path} must be a file that only its owner writes")
        return file.read()


def _seal(digest: str, kept: dict[str, Any]) -> str:
    """A digest of what a result depends on, and of the result."""
    return hashlib.sha256(f"{digest} {json.dumps(kept, sort_keys=True)}".encode()).hexdigest()
