"""Nothing that a student's code tries gets through the walls: as root, and as an ordinary user."""

import builtins
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers import attacks, ordinary
from tools.notebooks import ROOT

UNREAL = ["the course's mode", "the times of 1970", "an attribute", "a name", "a file removed"]

# Without walls, too, these come to nothing: only the filter says that they are not permitted.
HARMLESS = {
    "another's namespaces",
    "a mount that can be written",
    "its own disk gone",
    "a read-only mark taken off",
}

LIMITS = {*attacks.AMOUNTS, "more memory allowed", "more processes allowed"}


@pytest.fixture(scope="module", params=["as it is", "bare"])
def tried(request, tmp_path_factory) -> dict[str, str]:
    """What came of all attacks: of who runs the tests, with bubblewrap where it is installed; and
    of an ordinary user, without it."""
    words, bare = ["-m", "tests.helpers.attacks"], request.param == "bare"
    if not (bare or ordinary.root() or shutil.which("bwrap")):
        pytest.skip("neither root nor bubblewrap: the other run is the same")
    if bare:
        words.append("--own")
    if bare and ordinary.root():
        done = ordinary.run(tmp_path_factory.mktemp("home"), *words)
    else:
        run = [sys.executable, *words]
        done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    attacks.complain(said["holes"])
    if os.environ.get("CI"):  # elsewhere a bubblewrap that does not work is done without
        assert ("bubblewrap" in said["made"]) == (not bare and shutil.which("bwrap") is not None)
    if bare:  # else the folder is not even there
        for name in UNREAL:
            assert "Read-only file system" in said["came"][name]
    return said["came"]


def refused(attack: str, came: str) -> bool:
    """Whether the system said no; a mistake in an attack raises another kind of error."""
    kinds = [OSError, subprocess.CalledProcessError]
    if attack in HARMLESS:
        kinds = [PermissionError]
    if attack in LIMITS:
        kinds += [MemoryError, RuntimeError, ValueError]
    how, _, said = came.partition(" ")
    if how == "ended:":
        return attack in attacks.AMOUNTS
    kind = getattr(builtins, said.partition(":")[0], None) or getattr(
        subprocess, said.partition(":")[0], object
    )
    return how == "raised" and issubclass(kind, tuple(kinds))


@pytest.mark.parametrize(
    ("attack", "came", "is_so"),
    [
        ("a file read", "raised PermissionError: [Errno 13]", True),
        ("a file read by a program", "raised CalledProcessError: Command", True),
        ("memory of one", "raised MemoryError", True),
        ("memory of one", "ended: it ended by itself", True),
        ("more memory allowed", "raised ValueError: not allowed", True),
        ("a file read", "raised NameError: name 'FILE' is not defined", False),
        ("memory of one", "raised NameError: name 'FILE' is not defined", False),
        ("a file read", "raised ValueError: not allowed", False),
        ("a file read", "raised Unknown: x", False),
        ("a file read", "ended: it ended by itself", False),
        ("a file read", "got through", False),
        ("a read-only mark taken off", "raised PermissionError: [Errno 1]", True),
        ("a read-only mark taken off", "raised OSError: [Errno 22]", False),
    ],
)
def test_a_mistake_in_an_attack_is_no_wall(attack, came, is_so):
    assert refused(attack, came) == is_so


@pytest.mark.parametrize("attack", attacks.ATTACKS)
def test_an_attack_is_refused_and_leaves_its_decoys_alone(tried, attack):
    assert refused(attack, tried[attack]), tried[attack]
    assert "CHANGED" not in tried[attack] and "HURT" not in tried[attack]
