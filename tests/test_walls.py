"""A wall that is missing is seen before anything runs, and stops the grader."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from attnbook.teach import cage, grade, walls
from tools.notebooks import BOOK

SOLUTIONS = BOOK / "solutions"
EVERY = set(walls.WALLS)
BARE = {"files", "disk", "memory", "forks"}  # missing without namespaces


def landlock() -> int:
    """Its version on this machine, whose sixth keeps signals in."""
    return cage.LIBC.syscall(cage.CREATE_RULES, None, 0, 1) if sys.platform == "linux" else 0


# Systems that lack something, or say that they had it: how, and which walls are then missing.
SYSTEMS = {
    "no namespaces": ("cage.alone = lambda: False", {*BARE, *["processes"] * (landlock() < 6)}),
    "no namespaces, old Landlock": (
        "cage.alone = lambda: False\ncage.LIBC = Old(4)",
        {*BARE, "processes"},
    ),
    "old Landlock": ("cage.LIBC = Old(4)", set()),
    "no Landlock": ("cage._landlock = lambda *_: False", {"files"}),
    "Landlock only claimed": ("cage._landlock = lambda *_: True", {"files"}),
    "mounts only claimed": ("cage._read_only = lambda: True", {"files"}),
    "no filter": ("calls.refuse = lambda _: False", {"network", "calls"}),
    "a filter only claimed": ("calls.refuse = lambda _: True", {"network", "calls"}),
    "nothing watches": ("cage.watch = lambda child, _: os.waitpid(child, 0)", {"memory", "forks"}),
    "no disk": ("cage.LIBC = Without(-1, 'mount')", {"disk"}),
    "a disk only claimed": ("cage.LIBC = Without(0, 'mount')", {"disk"}),
    "nothing": ("cage.LIBC = Without()", EVERY),
    "all only claimed": ("cage.alone = lambda: True\ncage.LIBC = Without(0)", EVERY),
}
BEFORE = """
import ctypes, os
from attnbook.teach import cage, calls, sandbox
class Without(ctypes.CDLL):
    def __init__(self, answer=-1, name=None):
        self.answer, self.name = answer, name
    def __getattr__(self, asked):
        return (lambda *_: self.answer) if self.name in (None, asked) else getattr(libc, asked)
class Old(ctypes.CDLL):
    def __init__(self, version): self.version = version
    def __getattr__(self, asked): return self.ask if asked == "syscall" else getattr(libc, asked)
    def ask(self, number, *words):
        asks = number == cage.CREATE_RULES and words[0] is None
        return self.version if asks else libc.syscall(number, *words)
libc = cage.LIBC
"""


class Forked:
    """A nursery's process, as `Popen` gives it, that has imported all before and is changed."""

    def __init__(self, number: str, change: str):
        self.pid = os.fork()
        if self.pid == 0:
            try:
                sys.argv = ["sandbox", number]
                exec(f"{BEFORE}\n{change}\nsandbox.main()", {})
            finally:
                os._exit(1)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        os.waitpid(self.pid, 0)


@pytest.fixture
def imitate(monkeypatch):
    """Make nurseries those of another system, without bubblewrap."""
    start = subprocess.Popen

    def imitate(change: str) -> None:
        def started(command: list[str], **more: Any) -> Any:
            ours = "attnbook.teach.sandbox" in command
            return Forked(command[-1], change) if ours else start(command, **more)

        monkeypatch.setattr(subprocess, "Popen", started)
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)

    return imitate


def hand_in(folder: Path, answer: str | None = None) -> list[str]:
    """Ada's notebook, and the arguments that grade it."""
    nb = json.loads((SOLUTIONS / "a1.ipynb").read_text("utf-8"))
    for cell in nb["cells"]:
        if answer and cell["metadata"].get("nbgrader", {}).get("grade_id") == "a1-dot-scores":
            cell["source"] = answer
    (folder / "handed-in").mkdir()
    (folder / "handed-in" / "ada.ipynb").write_text(json.dumps(nb))
    return ["a1", str(folder / "handed-in"), f"--out={folder}", f"--solutions={SOLUTIONS}"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_missing_wall_is_named_and_nothing_is_run(system, imitate, tmp_path, capsys):
    change, missing = SYSTEMS[system]
    imitate(change)
    if not missing:
        assert not walls.prove().holes
        return
    with walls.decoys() as decoys:
        before = decoys.state()
        mine = decoys.folder / "decoy"
        arguments = hand_in(
            tmp_path,
            f"import os\nos.kill({decoys.process.pid}, 15)\nopen({str(mine)!r}, 'w').write('x')",
        )
        with pytest.raises(SystemExit) as stopped:
            grade.main([*arguments, "--as-root"])
        assert stopped.value.code == 2
        assert decoys.process.poll() is None and decoys.state() == before
    said = capsys.readouterr()
    named = {line.split()[0] for line in said.err.splitlines() if line.startswith("  ")}
    assert named == missing and "the trial process ended" not in said.err, said.err
    assert "Nothing was run" in said.err and not said.out
    assert not (tmp_path / "a1").exists() and not (tmp_path / "a1.csv").exists()
