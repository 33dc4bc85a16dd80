"""Nothing that a student's code tries gets through the walls: as root, and as an ordinary user."""

import json
import subprocess
import sys

import pytest

from tests.helpers import attacks, ordinary
from tools.notebooks import ROOT

UNREAL = ["the course's mode", "the times of 1970", "an attribute", "a name", "a file removed"]


@pytest.fixture(scope="module", params=["root", "ordinary"])
def tried(request, tmp_path_factory) -> dict[str, str]:
    """What came of all attacks: as root, with bubblewrap where it is there; and without it."""
    words = ["-m", "tests.helpers.attacks"]
    if request.param == "root" and not ordinary.root():
        pytest.skip("the tests do not run as root")
    if request.param == "ordinary":
        words.append("--own")
    if request.param == "ordinary" and ordinary.root():
        done = ordinary.run(tmp_path_factory.mktemp("home"), *words)
    else:
        run = [sys.executable, *words]
        done = subprocess.run(run, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    attacks.complain(said["holes"])
    if request.param == "ordinary":  # else the folder is not even there
        for name in UNREAL:
            assert "Read-only file system" in said["came"][name]
    return said["came"]


@pytest.mark.parametrize("attack", attacks.ATTACKS)
def test_an_attack_is_refused_and_leaves_its_decoys_alone(tried, attack):
    assert tried[attack].startswith(("raised", "ended")), tried[attack]
    assert "CHANGED" not in tried[attack] and "HURT" not in tried[attack]
