"""Every test runs with shapes and types checked, from a known seed, without progress bars, and on
one thread: with small matrices, and other tests beside, a second one only waits.

With ATTNBOOK_TYPES=0 nothing checks types but the package itself, as a reader meets it: so run
the tests in bad_inputs, which ask what it says of a wrong argument."""

import os

os.environ["ATTNBOOK_PROGRESS"] = "0"
os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import install_import_hook

if os.environ.get("ATTNBOOK_TYPES") == "0":
    collect_ignore = []
else:
    collect_ignore = ["bad_inputs"]
    install_import_hook("attnbook", "beartype.beartype")  # before anything imports attnbook

import random
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy
import pytest

from attnbook import assets

if shift := os.environ.get("ATTNBOOK_SEED_SHIFT"):  # `make seeds CHAPTER=findings`
    from tools import shifted

    shifted.shift(int(shift))

hypothesis.settings.register_profile("book", deadline=None)  # no test asserts a time
hypothesis.settings.load_profile("book")


@pytest.fixture(autouse=True)
def seed() -> None:
    import torch

    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def site() -> Path:
    """The built book."""
    from tests.helpers.minibook import whole_book

    return whole_book()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of the engine, as a bundle has them."""
    from tests.helpers.engine import KERNELS, node

    path = tmp_path_factory.mktemp("kernels") / "kernels.wasm"
    path.write_bytes(bytes(node("", KERNELS)))
    return path


@pytest.fixture
def asset() -> Callable[[str], Path]:
    """`asset("minilm")`: its folder. `make test` has fetched it, no test asks the network. Without
    it the test is skipped, in CI it fails."""

    def find(name: str) -> Path:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PIP_NO_INDEX", "1")
                return assets.fetch(name)
        except assets.AssetError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))

    return find
