"""Files that are written whole or not at all."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from uuid import uuid4

ABANDONED = 86400  # seconds from its last change until a partial file counts as abandoned


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, for a file or a folder, that is renamed to `path` at the end.

    Each writer has a temporary path of its own, so that several processes or machines can write the
    same file: the last one wins. After an error the temporary file is removed; if the writer was
    killed, the next writer into the same folder removes it, a day later. Everything is on the disk
    before it is renamed, so that a power cut leaves the old file or the new one. The parent folder
    of `path` is created.

    Args:
        path: a file, or a folder that does not exist yet.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"*.{32 * '[0-9a-f]'}.partial"):
        with suppress(FileNotFoundError):  # another writer removed it first
            if time.time() - left.stat().st_mtime > ABANDONED:
                _remove(left)
    # Hidden: JupyterLab fails to list a folder if a file disappears meanwhile.
    partial = path.with_name(f".{path.name}.{uuid4().hex}.partial")
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
    """Wait until a file is on the disk, or a folder's list of files if the system can."""
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
