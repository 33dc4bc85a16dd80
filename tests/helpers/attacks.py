"""Attacks on the walls around a student's code, each aimed at decoys.

`python -m tests.helpers.attacks [--own]` tries them.

Every attack is bounded, and aims at a folder, a process, a port and two services that were made for
it: without walls, nothing else would be touched. The walls are tested before the first attack.
Prints the result of each as JSON. With `--own`, bubblewrap is not used.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from attnbook.teach import walls
from attnbook.teach.student import Limits, Nursery, Student
from attnbook.teach.wire import GoneError, RaisedError

LIMITS = Limits(memory=1 << 28, disk=1 << 24)
BEFORE = """
import ctypes, mmap, os, pathlib, resource, shutil, signal, socket, subprocess, threading, time
from attnbook.teach.calls import CLONE, CLONE_3, MACHINES, NEW_MOUNTS, NEW_USER, numbers
FOLDER, VICTIM, PORT = pathlib.Path({folder!r}), {victim}, {port}
FILE, NR = FOLDER / "decoy", numbers()
pathlib.Path("own").write_text("what an honest answer may do")
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *words):
    answer = libc.syscall(NR[name], *words) if name in NR else getattr(libc, name)(*words)
    if answer < 0: raise OSError(ctypes.get_errno(), name)
    return answer
def clone(flags):
    number = CLONE[list(MACHINES).index(os.uname().machine)]
    child = libc.syscall(number, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0: os._exit(0)
    if child < 0: raise OSError(ctypes.get_errno(), "clone")
def children(count, task):
    for _ in range(count):
        if os.fork() == 0:
            held = task()
            time.sleep(6)
            os._exit(0)
    time.sleep(6)
def shared():
    held = mmap.mmap(-1, 100 << 20)
    held.write(b"x" * (100 << 20))
    return held
"""
CHANGES = {
    "the course's mode": "FOLDER.chmod(0)",
    "a solution's mode": "FILE.chmod(0)",
    "a result's mode": "FILE.chmod(0o666)",
    "a mode by descriptor": "os.fchmod(os.open(FOLDER, os.O_RDONLY), 0)",
    "a mode by a path of /proc": "os.chmod(f'/proc/self/fd/{os.open(FILE, os.O_PATH)}', 0)",
    "a mode from within": "os.chdir(FOLDER)\nos.chmod('decoy', 0)",
    "the home's mode": "(FOLDER / 'home').chmod(0)",
    "the times of 1970": "os.utime(FILE, (0, 0))",
    "a folder's times": "os.utime(FOLDER, (0, 0))",
    "an attribute": "os.setxattr(FILE, 'user.x', b'x')",
    "an owner": "os.chown(FILE, os.getuid(), os.getgid())",
    "a name": "FILE.rename(FOLDER / 'renamed')",
    "a name of its own": "FILE.rename('mine')",
    "a hard link to read by": "os.link(FILE, 'mine')",
    "a hard link": "os.link(FILE, FOLDER / 'twin')",
    "a link": "(FOLDER / 'link').symlink_to(FILE)",
    "a folder": "(FOLDER / 'made').mkdir()",
    "a pipe": "os.mkfifo(FOLDER / 'pipe')",
    "a file": "(FOLDER / 'made').touch()",
    "a file without a name": "os.open(FOLDER, os.O_TMPFILE | os.O_RDWR)",
    "a file emptied": "os.truncate(FILE, 0)",
    "a file opened anew": "FILE.open('w')",
    "a line added": "FILE.open('a').write('x')",
    "a file removed": "FILE.unlink()",
    "a folder's files removed": "for file in FOLDER.iterdir(): file.unlink()",
    "a whole folder removed": "shutil.rmtree(FOLDER)",
    "a program that writes": "subprocess.run(['sh', '-c', f'echo x > {FILE}'], check=True)",
}
READS = {
    "a file read": "FILE.read_text()",
    "a file read through a link": "os.symlink(FILE, 'mine')\nopen('mine').read()",
    "a file read from within": "os.chdir(FOLDER)\nopen('decoy').read()",
    "a file read through a root": "open(f'/proc/self/root{FILE}').read()",
    "a file read by a program": "subprocess.run(['cat', FILE], check=True)",
    "a file read by exec": "import sys\nif (child := os.fork()) == 0:\n"
    "    os.dup2(os.open('mine', os.O_CREAT | os.O_WRONLY), 1)\n"
    "    asked = f'print(open({str(FILE)!r}).read())'\n"
    "    os.execv(sys.executable, [sys.executable, '-S', '-c', asked])\n"
    "os.waitpid(child, 0)\nif not os.path.getsize('mine'): raise OSError('nothing was read')",
    "a folder listed": "os.listdir(FOLDER)",
    "a folder above listed": "os.listdir(FOLDER.parent)",
    "the root listed": "os.listdir('/')",
    "homes listed": "os.listdir('/home' if os.path.exists('/home') else '/root')",
    "settings listed": "os.listdir('/etc')",
    "users read": "open('/etc/passwd').read()",
    "processes listed": "os.listdir('/proc')",
    "mounts read": "open('/proc/self/mountinfo').read()",
    "a process's environment": "open(f'/proc/{VICTIM}/environ').read()",
    "its own memory as a file": "open('/proc/self/mem', 'rb')",
    "neighbours watched": "call('inotify_add_watch', call('inotify_init1', 0), bytes(FOLDER), 256)",
    "neighbours watched by the C library": "call('syscall', NR['inotify_init1'], 0)",
    "all files watched": "call('fanotify_init', 0, 0)",
    "a folder watched by a signal": "import fcntl\n"
    "fcntl.fcntl(os.open(FOLDER, os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE)",
    "a handle": "call('name_to_handle_at', -100, bytes(FILE), b'\\x80' + bytes(200), bytes(8), 0)",
}
PROCESSES = {
    "a process ended": "os.kill(VICTIM, signal.SIGTERM)",
    "a process killed": "os.kill(VICTIM, signal.SIGKILL)",
    "a process stopped": "os.kill(VICTIM, signal.SIGSTOP)",
    "a group killed": "os.killpg(VICTIM, signal.SIGKILL)",
    "a process killed by its descriptor": "signal.pidfd_send_signal(os.pidfd_open(VICTIM), 9)",
    "a process slowed": "os.setpriority(os.PRIO_PROCESS, VICTIM, 19)",
    "a process moved": "os.sched_setaffinity(VICTIM, {0})",
    "a process limited": "resource.prlimit(VICTIM, resource.RLIMIT_CPU, (1, 1))",
    "a process traced": "call('ptrace', 16, VICTIM, 0, 0)",
    "a process's memory": "call('process_vm_readv', VICTIM, 0, 0, 0, 0, 0)",
    "a process's files": "call('pidfd_getfd', os.pidfd_open(os.getpid()), 0, 0)",
    "a process's priority raised": "os.nice(-5)",
}
SYSTEM = {
    "a user of its own": "call('unshare', NEW_USER)",
    "mounts of its own": "call('unshare', NEW_MOUNTS)",
    "a child with users of its own": "clone(NEW_USER)",
    "a child with mounts of its own": "clone(NEW_MOUNTS)",
    "a child by clone3": "asked = (ctypes.c_uint64 * 8)(NEW_USER, 0, 0, 0, 17)\n"
    "child = libc.syscall(CLONE_3, asked, 64)\nif child == 0: os._exit(0)\n"
    "if child < 0: raise OSError('clone3')",
    "another's namespaces": "call('setns', os.open('.', os.O_RDONLY), 0)",
    "a disk": "call('mount', b'tmpfs', b'.', b'tmpfs', 0, b'')",
    "a folder shown twice": "call('mount', bytes(FOLDER), b'.', b'', 4096, b'')",
    "a mount that can be written": "call('mount', b'', bytes(FOLDER), b'', 4096 | 32, b'')",
    "its own disk gone": "call('umount2', os.fsencode(os.getcwd()), 2)",
    "a read-only mark taken off": "call('mount_setattr', -100, bytes(FOLDER), 0,"
    " (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32)",
    "a new kind of disk": "call('fsopen', b'tmpfs', 0)",
    "a disk without a place": "call('fsmount', call('fsopen', b'tmpfs', 0), 0, 0)",
    "a tree": "call('open_tree', -100, bytes(FOLDER), 1)",
    "a tree moved": "call('move_mount', -100, bytes(FOLDER), -100, b'.', 0)",
    "another root": "call('chroot', b'.')",
    "the root exchanged": "call('pivot_root', b'.', b'.')",
    "a device": "os.mknod('device', 0o60600, os.makedev(7, 0))",
    "events of the processor": "call('perf_event_open', bytes(128), 0, -1, -1, 0)",
    "a program in the kernel": "call('bpf', 0, bytes(64), 64)",
    "pages of its own": "call('userfaultfd', 0)",
    "a ring": "call('io_uring_setup', 1, bytes(256))",
    "a key": "call('add_key', b'user', b'attnbook', b'x', 1, -2)",
    "numbers of x32": "if libc.syscall(1 << 30 | 39) < 0: raise OSError('x32')",
    "more memory allowed": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "more processes allowed": "resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))",
    "ended last": "open('/proc/self/oom_score_adj', 'w').write('-1000')",
    "at once": "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))",
}
NETWORK = {
    **{
        f"a socket of {kind}": f"socket.socket(socket.{kind}, socket.{how})"
        for kind, how in (
            ("AF_INET", "SOCK_STREAM"),
            ("AF_INET6", "SOCK_DGRAM"),
            ("AF_NETLINK", "SOCK_RAW"),
            ("AF_PACKET", "SOCK_RAW"),
            ("AF_VSOCK", "SOCK_STREAM"),
            ("AF_ALG", "SOCK_SEQPACKET"),
        )
    },
    "a port": "socket.create_connection(('127.0.0.1', PORT), 1)",
    "a service": "socket.socket(socket.AF_UNIX).connect(str(FOLDER / 'service'))",
    "a letter": "pair = socket.socketpair(type=socket.SOCK_DGRAM)\n"
    "pair[0].sendto(b'x', str(FOLDER / 'letters'))",
}
AMOUNTS = {
    "memory of six processes": "children(6, lambda: bytearray(b'x' * (100 << 20)))",
    "shared memory of six processes": "children(6, shared)",
    "shared memory of one": "held = [shared() for _ in range(6)]",
    "memory of six processes that hide it": "children(6, lambda: (libc.prctl(4, 0, 0, 0, 0),"
    " bytearray(b'x' * (100 << 20))))",
    "memory of one": "held = bytearray(600 << 20)",
    "sixty processes": "children(60, int)",
    "sixty daemons": "children(60, os.setsid)",
    "two hundred threads": "for _ in range(200):\n"
    "    threading.Thread(target=time.sleep, args=(6,), daemon=True).start()\ntime.sleep(6)",
    "a full disk": "for n in range(3): open(str(n), 'wb').write(bytes(8 << 20))",
    "a long file": "open('long', 'wb').write(bytes(1 << 25))",
    "a long file without bytes": "open('long', 'wb').truncate(1 << 25)",
    "many files": "for n in range(5000): open(str(n), 'w').close()",
    "many descriptors": "held = [os.dup(0) for _ in range(100)]",
    "memory lent to a pipe": "lent = ctypes.create_string_buffer(b'x')\n"
    "call('vmsplice', os.pipe()[1], (ctypes.c_uint64 * 2)(ctypes.addressof(lent), 1), 1, 0)",
    "a queue": "call('msgctl', call('msgget', 0, 0o1600), 0, 0)",
    "a queue with a name": "call('mq_open', b'attnbook', os.O_CREAT | os.O_RDWR, 0o600, 0)\n"
    "call('mq_unlink', b'/attnbook')",
    "a counter": "call('semctl', call('semget', 0, 1, 0o1600), 0, 0)",
    "a segment": "call('shmctl', call('shmget', 0, 4096, 0o1600), 0, 0)",
    "a file in memory": "os.memfd_create('x')",
    "a secret file in memory": "call('memfd_secret', 0)",
}
ATTACKS = CHANGES | READS | PROCESSES | SYSTEM | NETWORK | AMOUNTS


def proved(*course: Path) -> walls.Stood:
    """The walls, tried on this system; where one is missing no attack runs, and in CI that is a
    failure."""
    stood = walls.prove(course)
    complain(stood.holes)
    return stood


def complain(holes: dict[str, str]) -> None:
    """Skip a test of attacks where a wall is missing; in CI, fail."""
    if holes:
        why = f"no attack is tried on a system with holes: {holes}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)


def state(folder: Path) -> dict[str, Any]:
    """The state of everything in a folder that could be changed."""
    found: dict[str, Any] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        known = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        marks = sorted(os.listxattr(path, follow_symlinks=False))
        kept = known.st_mode, known.st_mtime_ns, known.st_uid, known.st_nlink, text.hex(), marks
        found[str(path)] = list(kept)
    return found


def came(nursery: Nursery, decoys: walls.Decoys, attack: str) -> str:
    """The result of an attack, from its process and the decoys."""
    before = state(decoys.folder)
    known = {"folder": str(decoys.folder), "victim": decoys.process.pid, "port": decoys.port}
    student = Student(nursery, 30.0, limits=LIMITS)
    student.run(BEFORE.format(**known), "before")
    try:
        student.run(attack, "attack")
        said = "got through"
    except RaisedError as error:
        said = f"raised {error}"
    except GoneError as why:
        said = f"ended: {why}"
    student.end()
    changed = state(decoys.folder) != before
    status = Path(f"/proc/{decoys.process.pid}/stat").read_text().split()
    own = str(os.nice(0))  # the priority that it was started with
    hurt = status[2] != "S" or status[18] != own or decoys.process.poll() is not None
    return said + ", and CHANGED the decoy" * changed + ", and HURT the process" * hurt


def main() -> None:
    if "--own" in sys.argv:
        walls.shutil.which = lambda *_, **__: None
    stood = walls.prove()
    found: dict[str, str] = {}
    if not stood.holes:
        with walls.decoys() as decoys, Nursery(stood.tool, stood.built) as nursery:
            found = {name: came(nursery, decoys, source) for name, source in ATTACKS.items()}
    print(json.dumps({"holes": stood.holes, "made": str(stood), "came": found}))


if __name__ == "__main__":
    main()
