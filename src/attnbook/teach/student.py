"""A student's code, run in a process of its own, seen from outside."""

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import attnbook
from attnbook.teach.wire import GoneError, Peer

SECONDS = 60.0
START = 600.0  # seconds for importing torch
KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")  # no secrets
DEATH_SIGNAL = 1  # option of prctl
PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Limits:
    """Limits for one student's processes together.

    Attributes:
        memory: bytes of memory beyond those of Python and torch.
        disk: bytes in files, which also count as memory.
        processes: number of processes and threads.
    """

    memory: int = 1 << 30
    disk: int = 1 << 26
    processes: int = 32


def libraries() -> list[str]:
    """Paths that a student's code may read: Python, its packages, and the system's libraries.

    Never a whole environment, since `python -m venv .` puts one into a course's folder.
    """
    known = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib")]
    for prefix in {sys.prefix, sys.base_prefix}:
        known += [Path(prefix, name) for name in ("bin", "lib", "lib64", "pyvenv.cfg")]
    known += [Path(path) for path in sys.path if Path(path).name in PACKAGES]
    package = Path(attnbook.__file__).parent
    known += [package, package.parents[1] / "book" / "experiments"]
    system = ("/usr/lib", "/usr/lib64", "/usr/share", "/lib", "/lib64")
    devices = ("/dev/null", "/dev/urandom", "/dev/zero", "/sys/devices/system/cpu", "/proc/cpuinfo")
    files = [*system, "/etc/ld.so.cache", "/etc/localtime", *devices]
    every = [*map(str, known), *(str(path.resolve()) for path in known), *files]
    return sorted({path for path in every if os.path.exists(path)})


def follow() -> None:
    """End this process when its parent ends, if the system supports that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)


class Nursery:
    """Starts processes for students without delay.

    One process imports torch; every student's is a fork of it. Use it in a `with` statement.

    Args:
        tool: a bubblewrap program that puts walls around all processes; without it, each student's
            process has only its own walls.
        built: the mechanisms that each process's walls must use; None: any.
    """

    def __init__(self, tool: str | None = None, built: list[str] | None = None):
        self.tool, self.built = tool, built

    def __enter__(self) -> "Nursery":
        self._control, theirs = socket.socketpair()
        self.folder = tempfile.TemporaryDirectory(prefix="students-", ignore_cleanup_errors=True)
        where = Path(attnbook.__file__).parents[1]  # a folder that holds no other torch.py
        command = [sys.executable, "-m", "attnbook.teach.sandbox", str(theirs.fileno())]
        self._process = subprocess.Popen(
            [*self._around(where), *command],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=where,
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,  # Ctrl-C is not meant for it
        )
        theirs.close()
        self._control.settimeout(START)
        return self

    def _around(self, where: Path) -> list[str]:
        """The bubblewrap command: only libraries are visible, read-only."""
        if self.tool is None:
            return []
        given = ("/dev/", "/proc/")  # bubblewrap makes its own
        shown = [path for path in libraries() if not path.startswith(given)]
        words = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if os.geteuid() == 0:  # otherwise children could not be root in their own namespaces
            words += ["--cap-add", "CAP_SETFCAP"]
        words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
        words += [word for path in shown for word in ("--ro-bind", path, path)]
        words += ["--bind", self.folder.name, self.folder.name]
        return [self.tool, *words, "--chdir", str(where), "--"]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()
        self.folder.cleanup()

    def born(self, limits: dict[str, Any]) -> tuple[int, socket.socket]:
        """Start a process; returns its number in the nursery and the socket to it.

        Raises:
            GoneError: if the nursery has ended.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                return self._ask(limits, [theirs.fileno()]), ours
            except GoneError:
                ours.close()
                raise

    def end(self, number: int) -> None:
        """End a process, by its number in the nursery."""
        with suppress(GoneError):  # all have ended
            self._ask({"end": number}, [])

    def _ask(self, question: dict[str, Any], descriptors: list[int]) -> int:
        """Ask a question and wait for the answer, so that answers do not run together."""
        try:
            socket.send_fds(self._control, [json.dumps(question).encode() + b"\n"], descriptors)
            return struct.unpack(">I", self._control.recv(4))[0]
        except (OSError, struct.error) as why:
            raise GoneError(f"the nursery has ended: {why}") from None


class Student:
    """A student's process, and the names that its cells define.

    Args:
        nursery: starts the process.
        seconds: time limit of a cell or a call.
        until: deadline for all of them, by `time.monotonic`.
        limits: bounds of its resources.

    Attributes:
        built: the mechanisms that its walls use.

    Raises:
        GoneError: if the process does not run, or its walls are not the nursery's.
    """

    def __init__(
        self,
        nursery: Nursery,
        seconds: float = SECONDS,
        until: float = float("inf"),
        limits: Limits = Limits(),
    ):
        self._nursery, self._seconds, self._until = nursery, seconds, until
        self._folder = tempfile.TemporaryDirectory(
            prefix="student-", dir=nursery.folder.name, ignore_cleanup_errors=True
        )
        own = {"folder": self._folder.name, "seen": libraries()}
        self._number, line = nursery.born({**own, **asdict(limits)})
        self._peer = Peer(line, {"call": lambda function, args, more: function(*args, **more)})
        self._peer.begin(time.monotonic() + START)
        self.built: list[str] = self._peer.ask("built")
        if nursery.built is not None and self.built != nursery.built:
            self.end()
            raise GoneError(f"its walls must be of {nursery.built}, got {self.built}")

    def run(self, source: str, name: str) -> None:
        """Run a cell.

        Raises:
            RaisedError: if the cell raises an error.
            GoneError: if the process ends, takes too long, or answers nonsense.
        """
        self._ask("run", source, f"<{name}>")

    def get(self, name: str) -> Any:
        """The value of a name, or a `Remote` for it; None if the name is undefined."""
        return self._ask("get", name) if self._ask("has", name) is True else None

    def hurry(self) -> None:
        """Require answers to arrive within `seconds` from now."""
        self._peer.begin(min(time.monotonic() + self._seconds, self._until))

    def _ask(self, *what: Any) -> Any:
        self.hurry()
        return self._peer.ask(*what)

    def end(self) -> None:
        """End the process and delete its files."""
        self._nursery.end(self._number)
        self._peer.line.close()
        self._folder.cleanup()
