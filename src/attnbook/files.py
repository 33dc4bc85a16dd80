"""Files that are written whole or not at all."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from uuid import uuid4

FORGOTTEN = 86400  # seconds without a change after which nobody writes any more


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A place beside `path` to write to, a file or a folder, which then becomes `path` at once.

    Each writer has a place of its own, also where several processes or machines write the same:
    the last one stays. What is half written is removed, or, where the writer was killed, by who
    writes into the same folder a day later. All of it is on the disk before it becomes `path`, so
    that a power cut leaves the old one or the new one. The folder of `path` is made.

    Args:
        path: of the file, or of a folder that is not there yet.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"*.{32 * '[0-9a-f]'}.partial"):
        with suppress(FileNotFoundError):  # another writer was quicker
            if time.time() - left.stat().st_mtime > FORGOTTEN:
                _remove(left)
    partial = path.with_name(f"{path.name}.{uuid4().hex}.partial")
    try:
        yield partial
        for folder, _, files in os.walk(partial):
            for name in files:
                _sync(Path(folder, name))
            _sync(Path(folder))
        if not partial.is_dir():
            _sync(partial)
        os.replace(partial, path)
        _sync(path.parent)
    finally:
        _remove(partial)


def _sync(path: Path) -> None:
    """Wait until a file, or where the system can do so the list of a folder, is on the disk."""
    with suppress(OSError) if path.is_dir() else nullcontext():
        place = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
