"""How long the site takes: from nothing, and again after one chapter changed (budget 20 s).

python -m benchmarks.build    (needs the set-up of `make book`)
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from tests.minibook import ROOT, build_book


def seconds(target: Path) -> float:
    start = time.perf_counter()
    done = build_book(ROOT, target)
    taken = time.perf_counter() - start
    if done.returncode:
        sys.exit(done.stdout)
    return taken


def main() -> None:
    chapters = sorted((ROOT / "book").glob("[0-9]*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        print(f"from nothing           {seconds(Path(folder)):6.1f} s, {len(chapters)} chapter(s)")
        chapters[0].touch()
        print(f"one chapter changed    {seconds(Path(folder)):6.1f} s")
        print(f"nothing changed        {seconds(Path(folder)):6.1f} s")
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"load average while measuring: {load}")


if __name__ == "__main__":
    main()
