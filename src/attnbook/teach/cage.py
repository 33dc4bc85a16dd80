"""The walls that a student's process puts around itself, and its watching parent process."""

import ctypes
import os
import resource
import signal
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnbook.teach import calls

LIBC = ctypes.CDLL(None, use_errno=True)
NO_PROGRAMS = 2 | 4  # flags of mount: no rights by set-user-id, no devices
PRIVATE = 1 << 14 | 1 << 18  # flags of mount: private, with everything below it
SET_MOUNTS, HERE, BELOW, READ_ONLY = 442, -100, 0x8000, 1  # mount_setattr and its arguments
CAPABILITIES = 0x20080522  # version 3 of capset
CREATE_RULES, ADD_RULE, RESTRICT = 444, 445, 446  # Landlock's system calls
EXECUTE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
ALL = [(1, 13), (2, 14), (3, 15), (5, 16)]  # Landlock version, number of rights that it knows
OFTEN = 0.05  # seconds between two inspections of the processes inside
ENDED = (FileNotFoundError, ProcessLookupError)  # errors about a process that has ended
QUICK = "status", ("RssAnon:", "RssShmem:", "VmSwap:")
EXACT = "smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")


def alone() -> bool:
    """Enter new namespaces, in which the user id stays the same."""
    user, group = os.getuid(), os.getgid()
    kinds = calls.NEW_USER | calls.NEW_NET | calls.NEW_PID | calls.NEW_IPC | calls.NEW_MOUNTS
    if sys.platform != "linux" or LIBC.unshare(kinds):
        return False
    with suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def watch(child: int, limits: dict[str, Any]) -> tuple[int, int]:
    """Wait for a child, and end it if all processes inside together exceed a limit.

    `setrlimit` limits each process separately, and never limits the number of processes of the
    machine's root user, whatever the namespace.
    """
    own = _held([os.getpid()], exact=False)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        inside, tasks = _inside(child, limits["processes"])
        most = limits["memory"] + own - _stored(limits["folder"])
        if tasks > limits["processes"] or (
            _held(inside, exact=False) > most and _held(inside, exact=True) > most
        ):
            os.kill(child, signal.SIGKILL)
        time.sleep(OFTEN)
    return ended


def _inside(process: int, most: int) -> tuple[list[int], int]:
    """The processes inside, up to the limit, and the number of their threads."""
    todo, found, threads = [process], [], 0
    while todo and threads <= most:
        found.append(todo.pop())
        with suppress(*ENDED):
            for thread in os.listdir(tasks := f"/proc/{found[-1]}/task"):
                threads += found[-1] != process  # the first one only waits
                todo += map(int, Path(f"{tasks}/{thread}/children").read_text().split())
    return found, threads


def _held(processes: list[int], *, exact: bool) -> int:
    """Bytes of memory; without `exact`, which is slower, shared memory is counted twice."""
    total = 0
    for process in processes:
        with suppress(*ENDED):
            try:
                total += _listed(process, *(EXACT if exact else QUICK))
            except PermissionError:  # it has hidden its memory
                total += _listed(process, *QUICK)
    return total


def _listed(process: int, name: str, kinds: tuple[str, ...]) -> int:
    """Bytes of memory of these kinds, read from a file in `/proc` about a process."""
    lines = Path(f"/proc/{process}/{name}").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(kinds))


def _stored(folder: str) -> int:
    """Bytes of memory used by the files of an in-memory disk."""
    if not os.path.ismount(folder):
        return 0
    disk = os.statvfs(folder)
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def close(limits: dict[str, Any], namespaces: bool) -> list[str]:
    """Put up all walls that the system supports, irrevocably.

    Args:
        limits: `folder`, its own folder; `seen`, readable paths; `memory` and `disk`, in bytes;
            `processes`.
        namespaces: whether the process has its own namespaces.

    Returns:
        The mechanisms that the walls consist of.
    """
    folder = limits["folder"]
    built = ["namespaces", "watch"] * namespaces
    with suppress(OSError):  # if memory runs out, the system ends this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    if namespaces:
        built += ["read-only mounts"] * _read_only()
        disk = f"size={limits['disk']},nr_inodes=4k".encode()
        made = LIBC.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", NO_PROGRAMS, disk)
        built += ["disk in memory"] * (made == 0)
    os.nice(10)  # the grader and other programs have priority
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(HOME=folder, TMPDIR=folder, MPLBACKEND="agg", OMP_NUM_THREADS="1")
    most = {
        resource.RLIMIT_AS: _size() + limits["memory"],
        resource.RLIMIT_CPU: 600,
        resource.RLIMIT_FSIZE: limits["disk"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_CORE: 0,
    }
    if namespaces:  # otherwise all processes of the user would count
        most[resource.RLIMIT_NPROC] = limits["processes"]
    for which, value in most.items():
        with suppress(ValueError, OSError):  # a system that has no such limit
            resource.setrlimit(which, (value, value))
    if sys.platform == "linux":
        LIBC.capset(struct.pack("Ii", CAPABILITIES, 0), bytes(24))
        built += ["Landlock"] * _landlock(folder, limits["seen"])
        built += ["seccomp"] * calls.refuse(LIBC)
    return built


def bound(memory: int) -> None:
    """Limit this process to `memory` more bytes; its children may set another limit."""
    which = resource.RLIMIT_AS
    with suppress(ValueError, OSError):  # it has a lower one already
        resource.setrlimit(which, (_size() + memory, resource.getrlimit(which)[1]))


def _read_only() -> bool:
    """Make all files inside read-only, including their mode, times and names."""
    LIBC.mount(None, b"/", None, PRIVATE, None)
    change = struct.pack("QQQQ", READ_ONLY, 0, 0, 0)
    return LIBC.syscall(SET_MOUNTS, HERE, b"/", BELOW, change, len(change)) == 0


def _size() -> int:
    """Bytes of address space in use."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 1 << 36  # effectively no limit: the system counts differently
    return int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def _landlock(folder: str, seen: list[str]) -> bool:
    """Restrict the process by Landlock: read only some folders, write only its own."""
    version = LIBC.syscall(CREATE_RULES, None, 0, 1)
    if version < 1:
        return False
    rights = (1 << max(n for least, n in ALL if version >= least)) - 1
    handled = struct.pack("QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = LIBC.syscall(CREATE_RULES, handled, size, 0)
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
    LIBC.prctl(calls.NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return LIBC.syscall(RESTRICT, rules, 0) == 0
