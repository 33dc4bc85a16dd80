"""Seconds and memory of each chapter in a fresh kernel, against the budget; nothing is stored.

usage: make bench NAME=chapters
"""

import sys
import time

from tools import chapters, notebooks

SECONDS, MEGABYTES, ALL_SECONDS = 120, 1500, 720


def main() -> None:
    total, over = 0.0, []
    for path in filter(notebooks.is_chapter, notebooks.every()):
        start = time.perf_counter()
        _, megabytes = chapters.execute(notebooks.read(path), path)
        seconds = time.perf_counter() - start
        total += seconds
        shares = seconds / SECONDS, megabytes / MEGABYTES
        print(
            f"{path.stem}: {seconds:.1f} s ({shares[0]:.0%}), {megabytes:.0f} MB ({shares[1]:.0%})"
        )
        if max(shares) > 1:
            over.append(path.stem)
    print(f"all chapters: {total:.0f} s ({total / ALL_SECONDS:.0%} of the budget)")
    sys.exit(bool(over) or total > ALL_SECONDS)


if __name__ == "__main__":
    main()
