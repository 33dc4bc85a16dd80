"""Run a command as an ordinary user, where the tests run as root.

`python -m tests.helpers.ordinary COMMAND ...` does it.

The command's files may be in folders that only root can open, as root's home. Then they are mounted
in a namespace that ends with the command.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NOBODY = 65534
NEW_MOUNTS, BIND, PRIVATE = 1 << 17, 1 << 12 | 1 << 14, 1 << 14 | 1 << 18
NEEDED = [Path(path).resolve() for path in (sys.base_prefix, sys.prefix, __file__, *sys.path)]


def root() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def own(folder: Path) -> None:
    """Give a folder to the ordinary user."""
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python as an ordinary user who owns a folder."""
    own(folder)
    command = [sys.executable, "-m", "tests.helpers.ordinary", sys.executable, *words]
    return subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "HOME": str(folder)}
    )


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    words = (source, str(target), kind)
    if ctypes.CDLL(None).mount(*map(os.fsencode, words), flags, os.fsencode(data)):
        raise OSError(f"cannot mount {source} at {target}")


def _open(needed: set[Path]) -> None:
    """Make folders accessible to everybody, even if a parent folder is private to root."""
    if ctypes.CDLL(None).unshare(NEW_MOUNTS):
        raise OSError("no mounts of its own")
    _mount("none", Path("/"), "none", PRIVATE)
    closed: dict[Path, set[Path]] = {}
    for path in needed:
        for above in reversed(path.parents):
            if not above.stat().st_mode & 1:
                closed.setdefault(above, set()).add(path)
                break
    for above, inside in closed.items():
        kept = {path: Path(tempfile.mkdtemp(prefix="kept-")) for path in inside if path.is_dir()}
        for path, place in kept.items():
            _mount(str(path), place, "none", BIND)
        _mount("none", above, "tmpfs", 0, "mode=755")
        for path, place in sorted(kept.items()):
            path.mkdir(parents=True, exist_ok=True)
            _mount(str(place), path, "none", BIND)
            ctypes.CDLL(None).umount2(os.fsencode(place), 2)
            place.rmdir()


if __name__ == "__main__":
    _open({path for path in NEEDED if path.exists()})
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.execv(sys.argv[1], sys.argv[1:])
