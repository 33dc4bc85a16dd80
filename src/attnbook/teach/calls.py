"""System calls that no answer needs, by number, and the filter that refuses them."""

import ctypes
import errno
import platform
import struct

NEW_USER, NEW_NET, NEW_PID, NEW_IPC, NEW_MOUNTS = 1 << 28, 1 << 30, 1 << 29, 1 << 27, 1 << 17
NAMESPACES = NEW_USER | NEW_NET | NEW_PID | NEW_IPC | NEW_MOUNTS | 1 << 25 | 1 << 26  # cgroup, uts
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {  # numbers on x86_64 and aarch64, which never had `inotify_init`
    # services of the machine
    "socket": (41, 198),
    # memory that counts towards no limit
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    # what other processes do with files
    "inotify_init": (253,),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # further namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    # large parts of the kernel
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}
CLONE, CLONE_3, PAIR = (56, 220), 435, (53, 199)  # PAIR: socketpair
LOAD, EQUAL, AT_LEAST, ANY, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06  # filter opcodes
ALLOWED, REFUSED = 0x7FFF0000, 0x00050000  # results; an errno is added to the second
NUMBER, MACHINE, FIRST, SECOND = 0, 4, 16, 24  # offsets of a call's fields
NO_NEW_PRIVILEGES, FILTER = 38, 22  # options of prctl
STREAM = 1  # type of a connected socketpair; other types can send to any address


def numbers() -> dict[str, int]:
    """The refused calls and their numbers on this machine; {} on an unknown processor."""
    column = list(MACHINES).index(platform.machine()) if platform.machine() in MACHINES else 9
    return {name: known[column] for name, known in CALLS.items() if column < len(known)}


def refuse(libc: ctypes.CDLL) -> bool:
    """Install the filter in this process and its children; returns whether that worked.

    `clone3` fails as if it did not exist, since a filter cannot read its arguments. The C library
    then falls back to `clone`, which is refused when it asks for namespaces.
    """
    calls = sorted(numbers().values())
    if not calls:
        return False
    column = list(MACHINES).index(platform.machine())
    refused = [(RETURN, 0, 0, REFUSED + errno.EPERM)]
    clone = [(LOAD, 0, 0, FIRST), (ANY, 0, 1, NAMESPACES), *refused, (RETURN, 0, 0, ALLOWED)]
    pair = [(LOAD, 0, 0, SECOND), (AND, 0, 0, 0xF), (EQUAL, 1, 0, STREAM), *refused]
    program = [
        (LOAD, 0, 0, MACHINE),
        (EQUAL, 1, 0, MACHINES[platform.machine()]),
        *refused,
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, 1 << 30),  # the x32 ABI has its own numbers
        *refused,
        *(line for call in calls for line in [(EQUAL, 0, 1, call), *refused]),
        (EQUAL, 0, 1, CLONE_3),
        (RETURN, 0, 0, REFUSED + errno.ENOSYS),
        (EQUAL, 0, len(clone), CLONE[column]),
        *clone,
        (EQUAL, 0, len(pair), PAIR[column]),
        *pair,
        (RETURN, 0, 0, ALLOWED),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    whole = ctypes.create_string_buffer(struct.pack("HP", len(program), ctypes.addressof(code)))
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return libc.prctl(FILTER, 2, whole) == 0
