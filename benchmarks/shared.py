"""How many times as long chapters 10 and 11 take beside a busy process, and on one core.

usage: make bench NAME=shared
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks import _stored
from tools import chapters, notebooks

PAGES, MOST = ("10_sampling", "11_prompting"), 2


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing is changed."""
    yield


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Another process computes without a pause."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """What starts now has one core, as with the least quota of a hub."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)


def seconds(page: str, among: contextlib.AbstractContextManager[None]) -> float:
    """How long a page takes in a fresh kernel."""
    path = notebooks.BOOK / f"{page}.ipynb"
    with among:
        start = time.perf_counter()
        chapters.execute(notebooks.read(path), path)
        return time.perf_counter() - start


def main() -> None:
    rows = []
    for page in PAGES:
        seconds(page, quiet())  # what it reads is in the machine's memory afterwards
        alone = seconds(page, quiet())
        print(f"{page}: {alone:.1f} s")
        for what, among in (("beside a busy process", busy()), ("on one core", one_core())):
            times = seconds(page, among) / alone
            print(f"{page} {what}: {times:.2f} times")
            rows.append(_stored.budget(f"{page} {what}", "times", [times], MOST))
    _stored.finish(__file__, rows)


if __name__ == "__main__":
    main()
