"""Started by test_train.py in a process of its own, to be killed: a run of the training engine."""

import os

from attnbook.learn.engine import run
from attnbook.learn.settings import Settings


def start(settings: Settings, cache: str) -> None:
    """Run, with token files in another cache."""
    os.environ["ATTNBOOK_CACHE"] = cache
    run(settings)
