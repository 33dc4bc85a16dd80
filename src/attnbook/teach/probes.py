"""Harmless attempts to get through each wall, aimed at decoys that the grader made.

They run in a student's process. Each describes in words what got through: [] if the wall holds.
"""

import ctypes
import errno
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnbook.teach.calls import CLONE, CLONE_3, MACHINES, NEW_MOUNTS, NEW_USER, numbers

SOON = 5.0  # seconds in which the watching process notices a process, even on a busy machine
LIBC = ctypes.CDLL(None, use_errno=True)
DUMPABLE = 4  # option of prctl: at 0, others cannot read how much memory a process uses
SHARE_FILES = 0x200  # flag of clone, refused together with a new namespace: no child is made


def _through(tries: dict[str, Callable[[], Any]]) -> list[str]:
    """The names of the attempts that no OSError stopped."""
    found = []
    for name, attempt in tries.items():
        with suppress(OSError):
            attempt()
            found.append(name)
    return found


def network(port: int, service: str, letters: str) -> list[str]:
    """Try to reach a port of this machine, and two services with Unix sockets."""
    here = ("127.0.0.1", port)
    kinds = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}
    return _through(
        {
            "a connection to a port": lambda: socket.create_connection(here, 1).close(),
            "a packet to a port": lambda: socket.socket(type=kinds["datagram"]).sendto(b"x", here),
            "a connection to a service": lambda: socket.socket(socket.AF_UNIX).connect(service),
            "a letter to a service": lambda: socket.socketpair(type=kinds["datagram"])[0].sendto(
                b"x", letters
            ),
        }
    )


def processes(number: int) -> list[str]:
    """Try to inspect and end a process of the grader, which then checks that it still runs."""
    if number not in (os.getpid(), os.getppid(), 1):  # inside a namespace, numbers start anew
        with suppress(OSError):
            os.kill(number, signal.SIGTERM)
    environment = Path(f"/proc/{number}/environ")
    return _through({"the environment of a process": environment.read_bytes})


def files(decoy: str, course: list[str]) -> list[str]:
    """Try to read and change a file of the grader, and to list the folders of the course."""
    folder = Path(decoy).parent
    state = os.stat(__file__)
    tries: dict[str, Callable[[], Any]] = {
        "a file read": Path(decoy).read_bytes,
        "a folder listed": lambda: os.listdir(folder),
        "a file written": lambda: Path(decoy).open("ab").close(),
        "a file cut": lambda: os.truncate(decoy, 0),
        "a file's mode": lambda: os.chmod(decoy, 0o600),
        "a folder's mode": lambda: os.chmod(folder, 0o700),
        "a file's owner": lambda: os.chown(decoy, os.getuid(), os.getgid()),
        "a file's times": lambda: os.utime(decoy, (0, 0)),
        "a file's attributes": lambda: os.setxattr(decoy, "user.x", b"x"),
        "a file's name": lambda: os.rename(decoy, f"{decoy}-2"),
        "another name": lambda: os.link(decoy, f"{decoy}-3"),
        "a link": lambda: os.symlink(decoy, f"{decoy}-4"),
        "a new folder": lambda: os.mkdir(f"{decoy}-5"),
        "a pipe": lambda: os.mkfifo(f"{decoy}-6"),
        "a file removed": lambda: os.remove(f"{decoy}-too"),
        "a library's mode": lambda: os.chmod(__file__, state.st_mode & 0o7777),
        "a library's times": lambda: os.utime(__file__, ns=(state.st_atime_ns, state.st_mtime_ns)),
    }
    listed = {f"the folder {path} listed": lambda path=path: os.listdir(path) for path in course}
    return _through({**tries, **listed})


def disk(most: int) -> list[str]:
    """Try to write slightly more than `most` bytes into its own folder, in two files.

    Raises:
        OSError: if it can write nothing there, although an honest answer may.
    """
    Path("one").write_bytes(b"x")

    def fill() -> None:
        for name in ("one", "two"):
            Path(name).write_bytes(bytes(most * 2 // 3))

    through = _through({f"more than {most >> 20} MB in files": fill})
    for name in ("one", "two"):
        Path(name).unlink(missing_ok=True)
    return through


def calls() -> list[str]:
    """Try each refused system call with arguments that do nothing, or affect only this process."""
    tries = {name: (number, 1, 0, 0, 0, 0) for name, number in numbers().items()}
    if not tries:
        return ["this processor's system calls are not known"]
    tries["clone3"] = (CLONE_3, 0, 0, 0, 0, 0)
    clone = CLONE[list(MACHINES).index(os.uname().machine)]
    for name, kind in (("users", NEW_USER), ("mounts", NEW_MOUNTS)):
        tries[f"clone with new {name}"] = (clone, kind | SHARE_FILES, 0, 0, 0, 0)
    through = []
    for name, words in tries.items():
        answer = LIBC.syscall(*map(ctypes.c_long, words))
        if answer >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            through.append(f"the system call {name}")
    return through


def _children(count: int, task: Callable[[], Any]) -> int:
    """Start `count` processes that run a task and live for a while; returns how many started.

    Raises:
        OSError: if starting one fails for another reason than the limit of processes.
    """
    made = 0
    try:
        for _ in range(count):
            if os.fork() == 0:
                with suppress(BaseException):
                    held = task()
                    time.sleep(SOON)
                    del held
                os._exit(0)
            made += 1
    except OSError as error:
        if error.errno != errno.EAGAIN:  # the wall's error
            raise
    time.sleep(SOON)  # meanwhile the watching process ends this one
    return made


def memory(most: int, count: int) -> list[str]:
    """Try to hold more than `most` bytes, private and shared, in `count` processes that hide it."""

    def hold() -> Any:
        LIBC.prctl(DUMPABLE, 0, 0, 0, 0)
        private, shared = (bytearray(b"x" * (most // count)), mmap.mmap(-1, most // count))
        shared.write(private)
        return private, shared

    made = _children(count, hold)
    return [f"more than {most >> 20} MB in {made} processes"] * (made == count)


def forks(most: int) -> list[str]:
    """Try to start more than `most` processes."""
    return [f"{most + 4} processes"] * (_children(most + 4, lambda: None) == most + 4)
