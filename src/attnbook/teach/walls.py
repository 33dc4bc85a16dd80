"""The walls that confine a student's code on this system; each is tested, none is assumed."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbook.teach.student import Limits, Nursery, Student
from attnbook.teach.wire import ENDED, GoneError, RaisedError

WALLS = {
    "network": "no network, and no service of this machine",
    "processes": "no other process seen or stopped",
    "files": "nothing read but libraries, nothing changed but its own folder",
    "disk": "a bound on what it writes there",
    "memory": "a bound on what all its processes hold",
    "forks": "a bound on how many there are",
    "calls": "no new namespaces, mounts or message queues, no watching of files",
}
SMALL = Limits(memory=96 << 20, disk=6 << 20, processes=8)  # so that the trial is harmless
ENDING = ("memory", "forks")  # walls that end the student's process
PATIENCE = 60.0  # seconds for a probe


class WallError(Exception):
    """Unknown code cannot be run safely; the message says what is missing."""


@dataclass(frozen=True)
class Stood:
    """The result of testing the walls.

    Attributes:
        walls: names of `WALLS` that stood.
        holes: wall -> what got through it, for the others.
        built: the mechanisms that a student's walls use; None: any.
        tool: the bubblewrap program around them, if there is one.
    """

    walls: list[str]
    holes: dict[str, str]
    built: list[str] | None = None
    tool: str | None = None

    def __str__(self) -> str:
        made = ["bubblewrap"] * (self.tool is not None) + (self.built or [])
        open_ = f"; without: {', '.join(self.holes)}" * bool(self.holes)
        return f"walls: {', '.join(self.walls) or 'none'}{open_}; made of: {', '.join(made) or '-'}"


def admitted(without: Iterable[str], as_root: bool, course: Iterable[Path] = ()) -> Stood:
    """The walls that stand, after a check that they suffice for running unknown code.

    Args:
        without: names of walls that may be missing.
        as_root: whether the machine's root may grade.
        course: folders that a student must not see.

    Raises:
        WallError: if another wall is missing, or root grades without being allowed.
    """
    if not hasattr(os, "fork"):
        raise WallError(
            f"{sys.platform} cannot keep a student's code in: on Windows, grade in WSL."
        )
    if os.geteuid() == 0 and not as_root:
        raise WallError(
            "root must not grade: what gets through a wall could do anything. Grade as an ordinary"
            " user, or say --as-root in a container or machine that you can throw away."
        )
    stood = prove(course)
    if missing := {name: why for name, why in stood.holes.items() if name not in set(without)}:
        lines = [f"  {name} ({WALLS[name]}): {why}" for name, why in missing.items()]
        allowed = " ".join(f"--without {name}" for name in missing)
        raise WallError(
            "\n".join(["this system lacks walls around a student's code:", *lines])
            + "\nNothing was run. Grade on Linux 5.13 or newer with user namespaces (Ubuntu needs"
            " sysctl kernel.apparmor_restrict_unprivileged_userns=0 from 24.04 on); or, in a"
            f" container or machine that you can throw away, say {allowed}"
        )
    return stood


def prove(course: Iterable[Path] = ()) -> Stood:
    """Test all walls, with bubblewrap if it is installed and works, otherwise without."""
    if sys.platform != "linux":
        return Stood([], dict.fromkeys(WALLS, f"{sys.platform} has none"), [])
    tools = [tool for tool in (shutil.which("bwrap"),) if tool]
    tried = []
    for tool in [*tools, None]:
        tried.append(_tried(tool, [str(path.resolve()) for path in course]))
        if not tried[-1].holes:
            break
    return min(tried, key=lambda stood: len(stood.holes))


def _tried(tool: str | None, course: list[str]) -> Stood:
    """The walls that hold in a trial process, which runs no student's code."""
    holes: dict[str, str] = {}
    built: list[str] = []
    try:
        with Nursery(tool) as nursery, decoys() as aims:
            for name in WALLS:
                student = Student(nursery, PATIENCE, limits=SMALL)
                built = student.built
                try:
                    through = _probed(name, student, aims, course)
                    if name in ENDING and "processes" in holes:
                        through.append("processes may outlive the one that is ended")
                    if through:
                        holes[name] = ", ".join(through)
                finally:
                    student.end()
    except GoneError as why:
        return Stood([], dict.fromkeys(WALLS, f"the trial process ended: {why}"), [], tool)
    return Stood([name for name in WALLS if name not in holes], holes, built, tool)


def _probed(name: str, student: Student, aims: "Decoys", course: list[str]) -> list[str]:
    """What got through one wall, by the function of its name in `probes`."""
    arguments: dict[str, tuple[Any, ...]] = {
        "network": (aims.port, str(aims.folder / "service"), str(aims.folder / "letters")),
        "processes": (aims.process.pid,),
        "files": (str(aims.folder / "decoy"), course),
        "disk": (SMALL.disk,),
        "memory": (SMALL.memory, 4),
        "forks": (SMALL.processes,),
    }
    before = aims.state()
    student.run("from attnbook.teach.probes import *", "probes")
    probe: Callable[..., Any] = student.get(name)
    try:
        through = [str(each) for each in probe(*arguments.get(name, ()))]
    except RaisedError as error:
        through = [f"its probe raised {error}"]
    except GoneError as why:
        held = name in ENDING and str(why) == ENDED
        through = [] if held else [f"its probe ended: {why}"]
    if name == "processes":
        with suppress(subprocess.TimeoutExpired):
            aims.process.wait(0.2)
            through.append("a process was stopped")
    if aims.state() != before:
        through.append("the decoy was changed")
    return through


@dataclass
class Decoys:
    """Decoys of the grader: the targets of the probes."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def state(self) -> dict[str, Any]:
        """The state of everything in the folder that could be changed."""
        found: dict[str, Any] = {}
        for path in [self.folder, *sorted(self.folder.iterdir())]:
            known = path.lstat()
            found[path.name] = known.st_mode, known.st_mtime_ns, known.st_size, known.st_nlink
        return found


@contextmanager
def decoys() -> Iterator[Decoys]:
    """A folder with two files and two services, a port, and a process that sleeps."""
    with tempfile.TemporaryDirectory(prefix="decoys-") as name:
        folder = Path(name)
        (folder / "home").mkdir()
        for file in ("decoy", "decoy-too"):
            (folder / file).write_text("nothing of value")
        service, letters = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, 2)
        server = socket.create_server(("127.0.0.1", 0))
        sleep = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
        with server, service, letters, subprocess.Popen(sleep, start_new_session=True) as process:
            service.bind(str(folder / "service"))
            service.listen()
            letters.bind(str(folder / "letters"))
            try:
                yield Decoys(folder, server.getsockname()[1], process)
            finally:
                process.send_signal(signal.SIGKILL)
