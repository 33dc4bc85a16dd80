"""Seconds and memory of each page of a chapter in a fresh kernel, against the budget.

Nothing is stored. A story whose evidence has a page of its own may take half the seconds.

usage: make bench NAME=chapters
"""

import time

from benchmarks import _stored
from tools import chapters, notebooks

SECONDS, STORY_SECONDS, MEGABYTES = 120, 60, 1500


def main() -> None:
    total, over, rows = 0.0, [], []
    for path in filter(notebooks.is_chapter, notebooks.every()):
        start = time.perf_counter()
        _, megabytes = chapters.execute(notebooks.read(path), path)
        seconds = time.perf_counter() - start
        total += seconds
        divided = notebooks.evidence_of(path).is_file()
        shares = seconds / (STORY_SECONDS if divided else SECONDS), megabytes / MEGABYTES
        print(
            f"{path.stem}: {seconds:.1f} s ({shares[0]:.0%}), {megabytes:.0f} MB ({shares[1]:.0%})"
        )
        most = STORY_SECONDS if divided else SECONDS
        rows.append(_stored.budget(f"running {path.stem}: time", "s", [seconds], most))
        rows.append(_stored.budget(f"running {path.stem}: memory", "MB", [megabytes], MEGABYTES))
        if max(shares) > 1:
            over.append(path.stem)
    print(f"all pages: {total:.0f} s; over budget: {', '.join(over) or 'none'}")
    _stored.finish(__file__, rows)


if __name__ == "__main__":
    main()
