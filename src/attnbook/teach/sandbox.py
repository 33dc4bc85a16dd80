"""The process in which a student's code runs: little memory, no network, no files but its own.

`python -m attnbook.teach.sandbox N` waits on the socket N. For each other socket that comes along
it makes a child that has imported torch already, and knows nothing of solutions and hidden tests.
"""

import ctypes
import linecache
import os
import platform
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from attnbook.teach import wire
from attnbook.teach.asking import watched
from attnbook.teach.submission import Shell, python

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NET, NEW_PID, NEW_IPC, NEW_MOUNTS = 1 << 28, 1 << 30, 1 << 29, 1 << 27, 1 << 17
DEATH_SIGNAL, FILTER, NO_NEW_PRIVILEGES = 1, 22, 38  # of prctl
NO_PROGRAMS = 2 | 4  # of mount: no rights by set-user-id, no devices
PROCESSES = 32
DISK = b"size=64m,nr_inodes=4k"
# Numbers of the architecture, of `socketpair`, and of system calls that no answer needs: they reach
# services of the machine (socket), memory that no limit counts (shmget, memfd_create,
# memfd_secret), keys (add_key, request_key, keyctl), or much of the kernel (ptrace, mount, unshare,
# perf_event_open, bpf, userfaultfd, io_uring_setup).
CALLS = {
    "x86_64": (
        *(0xC000003E, 53),
        (41, 29, 319, 447, 248, 249, 250, 101, 165, 272, 298, 321, 323, 425),
    ),
    "aarch64": (
        *(0xC00000B7, 199),
        (198, 194, 279, 447, 217, 218, 219, 117, 40, 97, 241, 280, 282, 425),
    ),
}
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06  # of the filter's language
ALLOWED, REFUSED = 0x7FFF0000, 0x00050001
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
            with suppress(ChildProcessError):
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
    if _alone():
        walls += ["network", "processes"]
        for wait in (_watch, os.waitpid):
            follow()
            if child := os.fork():  # the first one is inside; with it ends all inside
                line.close()
                os._exit(os.waitstatus_to_exitcode(wait(child, 0)[1]) & 0xFF)
    follow()
    os.setsid()
    os.register_at_fork(after_in_child=line.close)  # a copy of this process is not asked
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.modules["__main__"] = module = ModuleType("__main__")
    names = vars(module)
    names |= {"get_ipython": lambda: Shell(names), "display": lambda *_, **__: None}
    commands: dict[str, Callable[..., Any]] = {
        "close": lambda folder, seen, memory: _close(folder, seen, memory, walls),
        "run": lambda source, name: _run(source, name, names),
        "get": lambda name: names[name],
        "has": lambda name: name in names,
        "call": lambda function, args, more: function(*args, **more),
        "watch": watched,
        "attribute": getattr,
    }
    try:
        wire.Peer(line, commands).serve()
    except BaseException:
        os._exit(1)


def _watch(child: int, _: int) -> tuple[int, int]:
    """Wait for a child, and end it where there are too many inside.

    The machine's own root, whatever its namespace, has no limit on processes.
    """
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if _descendants(child) > PROCESSES:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.1)
    return ended


def _descendants(process: int) -> int:
    """How many there are, or more than may be."""
    todo, found = [str(process)], -1
    while todo and found <= PROCESSES:
        tasks, found = f"/proc/{todo.pop()}/task", found + 1
        with suppress(OSError):  # it has ended
            for thread in os.listdir(tasks):
                todo += Path(f"{tasks}/{thread}/children").read_text().split()
    return found


def _run(source: str, name: str, names: dict[str, Any]) -> None:
    """Run a cell, whose lines can be asked for, as `torch.jit` does."""
    source = python(source)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), names)


def _alone() -> bool:
    """Leave the namespaces of other processes; in the new ones the user is who it was."""
    user, group = os.getuid(), os.getgid()
    if sys.platform != "linux" or LIBC.unshare(NEW_USER | NEW_NET | NEW_PID | NEW_IPC | NEW_MOUNTS):
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def _close(folder: str, seen: list[str], memory: int, walls: list[str]) -> list[str]:
    """Set the limits, for good; which walls stand."""
    with suppress(OSError):  # where memory ends, the system ends this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    if "processes" in walls and not LIBC.mount(
        b"tmpfs", os.fsencode(folder), b"tmpfs", NO_PROGRAMS, DISK
    ):
        walls.append("disk")
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
        limits[resource.RLIMIT_NPROC] = PROCESSES
    for which, most in limits.items():
        with suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(which, (most, most))
    if sys.platform == "linux":
        walls += ["files"] * _landlock(folder, seen)
        if not _filter() and "network" in walls:
            walls.remove("network")  # a service of this machine could be asked
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


def _filter() -> bool:
    """Refuse system calls that are in no namespace, and that no answer needs."""
    machine, pair, calls = CALLS.get(platform.machine(), (0, 0, ()))
    refuse = len(calls) + 9  # where the program refuses; jumps count from the next line
    program = [
        (LOAD, 0, 0, 4),
        (EQUAL, 0, refuse - 2, machine),
        (LOAD, 0, 0, 0),
        (AT_LEAST, refuse - 4, 0, 1 << 30),  # x32 has numbers of its own
        *((EQUAL, refuse - n - 1, 0, call) for n, call in enumerate(calls, 4)),
        (EQUAL, 0, 3, pair),  # only connected ones: others may be sent to any address
        (LOAD, 0, 0, 24),
        (AND, 0, 0, 0xF),
        (EQUAL, 0, 1, socket.SOCK_STREAM),
        (RETURN, 0, 0, ALLOWED),
        (RETURN, 0, 0, REFUSED),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    said = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(code)))
    LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(calls) and LIBC.prctl(FILTER, 2, said) == 0


if __name__ == "__main__":
    main()
