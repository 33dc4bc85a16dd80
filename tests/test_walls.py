"""A wall that is missing is seen before anything runs, and stops the grader."""

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from attnbook.teach import cage, grade, probes, walls, wire
from tests.helpers import attacks, ordinary
from tests.helpers.assignments import needed
from tools.notebooks import ROOT

SOLUTIONS = needed()
EVERY = set(walls.WALLS)
BARE = {"files", "disk", "memory", "forks"}  # missing without namespaces


def landlock() -> int:
    """Its version on this machine, whose sixth keeps signals in."""
    return cage.LIBC.syscall(cage.CREATE_RULES, None, 0, 1) if sys.platform == "linux" else 0


# What nothing watches: the number of root's processes has no limit of the system's.
UNWATCHED = {"memory", *["forks"] * ordinary.root()}
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
    "nothing watches": ("cage.watch = lambda child, _: os.waitpid(child, 0)", UNWATCHED),
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
                self.close_all_but(int(number))
                sys.argv = ["sandbox", number]
                exec(f"{BEFORE}\n{change}\nsandbox.main()", {})
            finally:
                os._exit(1)

    def close_all_but(self, kept: int) -> None:
        """As `Popen` does: a nursery may open 64, and those of the tests' process would count."""
        os.closerange(3, kept)
        os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        os.waitpid(self.pid, 0)


@pytest.fixture
def imitate(monkeypatch):
    """Make nurseries those of another Linux, without bubblewrap."""
    if sys.platform != "linux":
        attacks.proved()
    start = subprocess.Popen

    def imitate(change: str) -> None:
        def started(command: list[str], **more: Any) -> Any:
            ours = "attnbook.teach.sandbox" in command
            return Forked(command[-1], change) if ours else start(command, **more)

        monkeypatch.setattr(subprocess, "Popen", started)
        monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
        monkeypatch.setattr(walls, "PATIENCE", 300.0)  # other tests run beside

    return imitate


def notebook(answer: str | None = None) -> str:
    """A student's notebook with all answers right, or one in another way."""
    nb = json.loads((SOLUTIONS / "a1.ipynb").read_text("utf-8"))
    for cell in nb["cells"]:
        if answer and cell["metadata"].get("nbgrader", {}).get("grade_id") == "a1-dot-scores":
            cell["source"] = answer
    return json.dumps(nb)


def hand_in(folder: Path, answer: str | None = None) -> list[str]:
    """Ada's notebook, and the arguments that grade it."""
    (folder / "handed-in").mkdir()
    (folder / "handed-in" / "ada.ipynb").write_text(notebook(answer))
    return ["a1", str(folder / "handed-in"), f"--out={folder}", f"--solutions={SOLUTIONS}"]


@pytest.fixture(scope="module")
def bare() -> None:
    """All walls stand here without bubblewrap; else a test is skipped, in CI it fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "which", lambda *_, **__: None)
        attacks.proved()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_missing_wall_is_named_and_nothing_is_run(system, request, imitate, tmp_path, capsys):
    change, missing = SYSTEMS[system]
    if BARE - missing:  # a wall of namespaces stands there
        request.getfixturevalue("bare")
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


@pytest.mark.parametrize("wall", ["memory", "forks", "disk"])
@pytest.mark.parametrize("why", [wire.ENDED, wire.LATE, "the nursery has ended", "it sent x"])
def test_only_the_end_of_its_process_holds_and_nothing_else_that_stops_a_probe(
    wall, why, monkeypatch
):
    def probe(*_: Any) -> list[str]:
        raise wire.GoneError(why)

    monkeypatch.setattr(walls.Student, "run", lambda *_: None)
    monkeypatch.setattr(walls.Student, "get", lambda *_: probe)
    with walls.decoys() as decoys:
        through = walls._probed(wall, object.__new__(walls.Student), decoys, [])
    held = why == wire.ENDED and wall != "disk"
    assert through == ([] if held else [f"its probe ended: {why}"])


def test_a_system_that_makes_no_process_at_all_has_no_bound_on_them(monkeypatch):
    def fork() -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(probes, "SOON", 0)
    monkeypatch.setattr(probes.os, "fork", fork)
    number = errno.EAGAIN
    assert probes.forks(3) == []
    number = errno.ENOSYS
    with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)):
        probes.forks(3)


def test_a_lecturer_can_do_without_a_wall(imitate, tmp_path, capsys):
    imitate("cage.alone = lambda: False\ncage.LIBC = Old(4)")
    words = [word for name in [*BARE, "processes"] for word in ("--without", name)]
    patient = ["--seconds=300", "--whole=600"]  # other tests run beside
    grade.main([*hand_in(tmp_path), "--as-root", *patient, *words])
    (row,) = csv.DictReader((tmp_path / "a1.csv").open())
    assert float(row["points"]) == 16, row
    assert row["note"] == "without walls: processes, files, disk, memory, forks"
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("walls: network, calls; without: processes, files, disk, memory, forks")
    assert first in (tmp_path / "a1.html").read_text()


def test_root_has_to_say_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SystemExit) as stopped:
        grade.main(hand_in(tmp_path))
    assert stopped.value.code == 2
    assert "root must not grade" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_system_that_has_no_walls_is_refused_in_words(system, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(walls, "Nursery", None)  # nothing is started
    if system == "win32":
        monkeypatch.delattr(os, "fork")
    with pytest.raises(SystemExit) as stopped:
        grade.main([*hand_in(tmp_path), "--as-root"])
    assert stopped.value.code == 2
    assert {"darwin": "darwin has none", "win32": "in WSL"}[system] in capsys.readouterr().err


@pytest.mark.parametrize("ci", ["", "1"])
def test_no_attack_is_tried_where_a_wall_is_missing(ci, imitate, monkeypatch):
    imitate("cage.LIBC = Without()")
    monkeypatch.setenv("CI", ci)
    with pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match="network") as stopped:
        attacks.proved()
    assert stopped.type is (pytest.fail.Exception if ci else pytest.skip.Exception)


def test_a_bubblewrap_that_does_not_work_is_done_without(tmp_path, monkeypatch):
    """As on a system that refuses it what it needs."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    attacks.proved()
    monkeypatch.setattr(shutil, "which", lambda _: str(broken))
    stood = walls.prove()
    assert not stood.holes and stood.tool is None


def test_an_environment_in_the_course_folder_shows_nothing_of_the_course(tmp_path):
    """`python -m venv .`: what belongs to Python is seen, the folder is not."""
    attacks.proved()
    (tmp_path / "solutions").mkdir()
    run = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path)]
    subprocess.run(run, check=True)
    ask = (
        "import pathlib, sys\nfrom attnbook.teach import walls\n"
        "course = pathlib.Path(sys.prefix)\n"
        "print(course, walls.prove([course, course / 'solutions']).holes)"
    )
    seen = os.pathsep.join([str(ROOT / "src"), *(path for path in sys.path if "-packages" in path)])
    run, more = [str(tmp_path / "bin" / "python"), "-c", ask], {"PYTHONPATH": seen}
    done = subprocess.run(run, capture_output=True, text=True, env={**os.environ, **more})
    assert done.stdout == f"{tmp_path} {{}}\n", done.stderr


# What a student once did to those who were graded later, at copies.
NEIGHBOURS = {
    "closed results": "import os\nos.chmod(COURSE / 'graded' / 'a1', 0)",
    "closed solutions": "import os\nos.chmod(COURSE / 'solutions' / 'a1.ipynb', 0)",
    "closed neighbour": "import os\nos.chmod(COURSE / 'handed-in' / 'zoe.ipynb', 0)",
    "closed home": "import os\nos.chmod(COURSE, 0)",
    "times": "import os\nos.utime(COURSE / 'solutions' / 'a1.ipynb', (0, 0))",
    "open results": "for path in (COURSE / 'graded' / 'a1').glob('*'): path.chmod(0o666)\n"
    "(COURSE / 'graded' / 'a1' / 'ada.json').chmod(0o666)",
    "names": "import ctypes, os\nlibc = ctypes.CDLL(None)\nline = libc.inotify_init1(0)\n"
    "assert libc.inotify_add_watch(line, bytes(COURSE / 'handed-in'), 0xFFF) >= 0",
}


@pytest.mark.parametrize("who", ["root", "ordinary"])
def test_neighbours_keep_their_points_and_files(who):
    attacks.proved()
    if who == "root" and not ordinary.root():
        pytest.skip("the tests do not run as root")
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        course = Path(name)
        for folder in ("solutions", "handed-in", "graded"):
            (course / folder).mkdir()
        shutil.copy(SOLUTIONS / "a1.ipynb", course / "solutions")
        before = f"import pathlib\nCOURSE = pathlib.Path({name!r})\n"
        for student in ("ada", "zoe"):
            (course / "handed-in" / f"{student}.ipynb").write_text(notebook())
        for student, source in NEIGHBOURS.items():
            answer = before + source + "\ndef dot_scores(q, k): return q @ k.mT"
            (course / "handed-in" / f"{student}.ipynb").write_text(notebook(answer))
        words = ["a1", f"{course}/handed-in", f"--solutions={course}/solutions"]
        words = ["-m", "attnbook.teach.grade", *words, f"--out={course}/graded", "--jobs=1"]
        if who == "ordinary" and ordinary.root():
            ordinary.own(course)
            was = attacks.state(course)
            done = ordinary.run(course, *words)
        else:
            was = attacks.state(course)
            run = [sys.executable, *words, "--as-root"]
            done = subprocess.run(run, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        kept = {path for path in was if not path.startswith(f"{course}/graded")}
        now = attacks.state(course)
        assert {path: now[path] for path in kept} == {path: was[path] for path in kept}
        modes = {Path(path).stat().st_mode & 0o777 for path in now if path.endswith(".json")}
        assert len(modes) == 1 and modes != {0o666}
        rows = csv.DictReader((course / "graded" / "a1.csv").open())
        points = {row["student"]: float(row["points"]) for row in rows}
    assert points == {"ada": 16, "zoe": 16, **dict.fromkeys(NEIGHBOURS, 15)}
