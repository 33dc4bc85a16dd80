"""Every test runs with shapes and types checked, from a known seed, without progress bars, and on
one thread: with small matrices, and other tests beside, a second one only waits."""

import os

os.environ["ATTNBOOK_PROGRESS"] = "0"
os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import install_import_hook

install_import_hook("attnbook", "beartype.beartype")  # before anything imports attnbook

import random

import numpy
import pytest


@pytest.fixture(autouse=True)
def seed() -> None:
    import torch

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)
