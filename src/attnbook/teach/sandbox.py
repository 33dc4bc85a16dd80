"""The process in which a student's code runs: little memory, no network, no files but its own.

`python -m attnbook.teach.sandbox N` waits on the socket N. For each other socket that comes along
it makes a child that has imported torch already, and knows nothing of solutions and hidden tests.
"""

import ctypes
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from attnbook.teach import wire

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NET, NEW_PID, NEW_IPC = 0x10000000, 0x40000000, 0x20000000, 0x08000000
DEATH_SIGNAL, NO_NEW_PRIVILEGES = 1, 38  # of prctl
CREATE_RULES, ADD_RULE, RESTRICT = 444, 445, 446  # Landlock's system calls
EXECUTE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
ALL = [(1, 13), (2, 14), (3, 15), (5, 16)]  # version: number of rights it knows


def follow() -> None:
    """End this process when its parent ends, where the system can."""
    if sys.platform == "linux":
        LIBC.prctl(DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Make a child for each socket that comes, and say its process number."""
    follow()
    torch.set_num_threads(1)
    _ = torch.randn(3, 3).softmax(-1) @ torch.randn(3, 3)  # what the first use loads
    control = socket.socket(fileno=int(sys.argv[1]))
    while True:
        message, (descriptor,), _, _ = _descriptors(control)
        if not message:
            return
        if child := os.fork():
            os.close(descriptor)
            control.sendall(struct.pack(">I", child))
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        else:
            control.close()
            _live(socket.socket(fileno=descriptor))


def _descriptors(control: socket.socket) -> tuple[bytes, list[int], int, Any]:
    message, descriptors, flags, address = socket.recv_fds(control, 1, 1)
    return message, descriptors or [-1], flags, address


def _live(line: socket.socket) -> None:
    """Be the child: alone in a namespace where the system allows, then what it is asked."""
    walls = []
    if LIBC.unshare(NEW_USER | NEW_NET | NEW_PID | NEW_IPC) == 0:
        walls += ["network", "processes"]
        if child := os.fork():  # only a child of this process is inside
            line.close()
            os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
        follow()
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    names: dict[str, Any] = {"__name__": "__main__", "display": lambda *_, **__: None}
    commands: dict[str, Callable[..., Any]] = {
        "close": lambda folder, seen, memory: _close(folder, seen, memory, walls),
        "run": lambda source, name: exec(compile(source, name, "exec"), names),
        "get": lambda name: names[name],
        "has": lambda name: name in names,
        "call": lambda function, args, more: function(*args, **more),
        "attribute": getattr,
    }
    try:
        wire.Peer(line, commands).serve()
    except BaseException:
        os._exit(1)


def _close(folder: str, seen: list[str], memory: int, walls: list[str]) -> list[str]:
    """Set the limits, for good; which walls stand."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(HOME=folder, TMPDIR=folder, MPLBACKEND="agg", OMP_NUM_THREADS="1")
    limits = {
        resource.RLIMIT_AS: _size() + memory,
        resource.RLIMIT_CPU: 600,
        resource.RLIMIT_FSIZE: 1 << 26,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    if "processes" in walls:  # else those of all programs of the user would count
        limits[resource.RLIMIT_NPROC] = 32
    for which, most in limits.items():
        resource.setrlimit(which, (most, most))
    if _landlock(folder, seen):
        walls.append("files")
    return walls


def _size() -> int:
    """Bytes of address space in use."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 1 << 36  # no limit, in effect: the system counts otherwise
    return int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _landlock(folder: str, seen: list[str]) -> bool:
    """Let the process see nothing but some folders, and write nowhere but in its own."""
    version = LIBC.syscall(CREATE_RULES, None, 0, 1)
    if version < 1:
        return False
    rights = (1 << max(n for least, n in ALL if version >= least)) - 1
    said = struct.pack("QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = LIBC.syscall(CREATE_RULES, said, size, 0)
    if rules < 0:
        return False
    for path in [folder, *filter(os.path.exists, seen)]:
        allowed = rights if path == folder else EXECUTE | READ_FILE | READ_FOLDER
        allowed &= rights if os.path.isdir(path) else ~READ_FOLDER
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, descriptor)
        done = LIBC.syscall(ADD_RULE, rules, 1, rule, 0)
        os.close(descriptor)
        if done < 0:
            return False
    LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return LIBC.syscall(RESTRICT, rules, 0) == 0


if __name__ == "__main__":
    main()
