"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A place beside `path` to write to, a file or a folder, which then becomes `path` at once.

    Whoever is stopped while writing leaves what stood at `path`; what is half written has another
    name, and is written over next time. The folder of `path` is made.

    Args:
        path: of the file, or of a folder that is not there yet.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    yield partial
    os.replace(partial, path)
