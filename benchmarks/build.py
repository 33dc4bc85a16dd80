"""Build time of the site: from nothing (budget 60 s), and after one chapter changed (20 s).

make bench NAME=build    (needs the set-up of `make book`)
"""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import _stored
from tests.helpers.minibook import ROOT, build_book

NOTHING, SECONDS = 60, 20


def seconds(target: Path) -> float:
    start = time.perf_counter()
    done = build_book(ROOT, target)
    taken = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stdout)
    return taken


@contextlib.contextmanager
def touched(path: Path) -> Iterator[None]:
    """Make a file look changed for a while; an edited text stays newer than its notebook."""
    stat = path.stat()
    path.touch()
    try:
        yield
    finally:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def main() -> None:
    chapters = sorted((ROOT / "book").glob("[0-9]*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        print(f"from nothing           {(whole := seconds(Path(folder))):6.1f} s")
        with touched(chapters[0]):
            print(f"one chapter changed    {(changed := seconds(Path(folder))):6.1f} s")
        print(f"nothing changed        {(same := seconds(Path(folder))):6.1f} s")
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"load average while measuring: {load}")
    rows = [
        _stored.budget("building the site from nothing", "s", [whole], NOTHING),
        _stored.budget("building it after one chapter changed", "s", [changed], SECONDS),
        _stored.budget("building it after nothing changed", "s", [same]),
    ]
    _stored.finish(__file__, rows)


if __name__ == "__main__":
    main()
