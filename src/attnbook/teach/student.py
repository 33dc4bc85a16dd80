"""A student's code, run in a process of its own, seen from outside."""

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
from pathlib import Path
from types import TracebackType
from typing import Any

import attnbook
from attnbook.teach.wire import GoneError, Peer

MEMORY, SECONDS = 1 << 30, 60.0
START = 600.0  # seconds that importing torch may take
KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")  # no secrets
SEEN = [  # what a student's code may read: Python, its packages, and the system's libraries
    *sorted({sys.prefix, sys.base_prefix, sysconfig.get_path("purelib")}),
    *("/usr/lib", "/usr/share", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime"),
    *("/dev/null", "/dev/urandom", "/dev/zero", "/sys/devices/system/cpu", "/proc/cpuinfo"),
]


class Nursery:
    """Processes for students, each of which is there at once.

    One process imports torch, and every student's is a copy of it. Use it in a `with` statement.
    """

    def __enter__(self) -> "Nursery":
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-m", "attnbook.teach.sandbox", str(theirs.fileno())]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=Path(attnbook.__file__).parents[1],  # not where somebody's torch.py may lie
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,  # Ctrl-C is not meant for it
        )
        theirs.close()
        self._control.settimeout(START)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()

    def born(self) -> tuple[int, socket.socket]:
        """A new process: its number, and the line to it.

        Raises:
            GoneError: if there are no more, as something has ended the nursery.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._control, [b"!"], [theirs.fileno()])
            (number,) = struct.unpack(">I", self._control.recv(4))
        except (OSError, struct.error) as why:
            ours.close()
            raise GoneError(f"the nursery has ended: {why}") from None
        return number, ours


class Student:
    """A student's names, and what stands behind them in the process.

    Args:
        nursery: where the process comes from.
        memory: bytes that it may have on top of what Python and torch need.
        seconds: that a cell, or a call, may take.

    Attributes:
        walls: what keeps the process in: "network", "processes", "files", "disk", as far as the
            system can.
    """

    def __init__(self, nursery: Nursery, memory: int = MEMORY, seconds: float = SECONDS):
        self._seconds = seconds
        self._folder = tempfile.TemporaryDirectory(prefix="student-", ignore_cleanup_errors=True)
        self._number, line = nursery.born()
        self._peer = Peer(line, {"call": lambda function, args, more: function(*args, **more)})
        package = Path(attnbook.__file__).parent
        seen = [*SEEN, str(package), str(package.parents[1] / "book" / "experiments")]
        self.walls = self._ask("close", self._folder.name, seen, memory)

    def run(self, source: str, name: str) -> None:
        """Run a cell.

        Raises:
            RaisedError: if the cell raises an error.
            GoneError: if the process ends, takes too long, or says nonsense.
        """
        self._ask("run", source, f"<{name}>")

    def get(self, name: str) -> Any:
        """What a name stands for: a value, or a `Remote`; None where there is no such name."""
        return self._ask("get", name) if self._ask("has", name) is True else None

    def hurry(self) -> None:
        """From now on, its answers have to come within `seconds`."""
        self._peer.until = time.monotonic() + self._seconds

    def _ask(self, *what: Any) -> Any:
        self.hurry()
        return self._peer.ask(*what)

    def end(self) -> None:
        """End the process, and take its files away."""
        with suppress(ProcessLookupError):
            os.kill(self._number, signal.SIGKILL)
        self._peer.line.close()
        self._folder.cleanup()
