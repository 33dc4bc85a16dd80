"""`make again`: repeat a randomly chosen run of each stored table, and compare.

A table of `book/experiments` is evidence only as long as its script reproduces it. `NAME=norms`
tests one table; `--seed 3` repeats the same choices.
"""

import argparse
import importlib
import os
import random
import sys
from types import ModuleType

from tools.notebooks import BOOK

SCRIPTS = BOOK / "experiments"


def script(name: str) -> ModuleType:
    """Import `book/experiments/<name>.py`, so that it and its processes can import its siblings."""
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))
    return importlib.import_module(name)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?")
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    asked = parser.parse_args()
    os.environ |= {"ATTNBOOK_PROGRESS": "0", "ACCELERATE_USE_CPU": "true"}
    names = [asked.name] if asked.name else sorted(p.stem for p in SCRIPTS.glob("*.csv"))
    away = 0
    for name in names:
        experiment = script(name).EXPERIMENT
        setting = random.Random(f"{name} {asked.seed}").choice(experiment.settings)
        print(f"{name}:", *(f"{key}={value}" for key, value in setting.items()), flush=True)
        try:
            said = experiment.again(setting)
        except Exception as error:  # go on with the other tables
            said = [repr(error)]
        away += bool(said)
        print("\n".join(f"  ELSEWHERE: {line}" for line in said) or "  found again", flush=True)
    print(f"{len(names) - away} of {len(names)} tables found again (--seed {asked.seed})")
    sys.exit(bool(away))


if __name__ == "__main__":
    main()
