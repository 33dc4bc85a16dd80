"""Set up .venv for building (`book`), for everything (`test`), or also for `make mutants`.

Versions are pinned by requirements.txt. Runs before anything is installed, with any `python3`:
standard library only.
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
PINS = ROOT / "requirements.txt"
GROUPS = {
    "book": ["backend", "book"],
    "test": ["backend", "book", "edit", "test"],
    "mutants": ["mutants"],
}
OLDEST = (3, 11)


def main():
    kind = sys.argv[1]
    os.chdir(ROOT)
    if not usable():
        create()
    pip("pip")  # a fresh environment's pip may not know --group
    if kind == "test":
        # torch first, by its exact version: other requirements may otherwise bring another build.
        pip(*[line for line in PINS.read_text().split() if line.startswith("torch==")])
    pip(*[part for group in GROUPS[kind] for part in ("--group", group)])
    if kind == "test":
        pip("--no-build-isolation", "--editable", ".[bertviz,devices,pretrained]")
    (VENV / (".%s" % kind)).touch()


def usable():
    """Whether the environment is complete, as a set-up may be interrupted, and recent enough."""
    check = "import sys, pip; sys.exit(sys.version_info < %r)" % (OLDEST,)
    try:
        return not subprocess.call([str(PYTHON), "-c", check], stderr=subprocess.DEVNULL)
    except OSError:
        return False


def create():
    """Create the environment with the first Python that is new enough."""
    names = ["python3.%d" % minor for minor in range(OLDEST[1], OLDEST[1] + 4)]
    found = sys.executable if sys.version_info >= OLDEST else first(names)
    if not found:
        sys.exit(
            "Python %d.%d or newer is needed, this is %d.%d: install python3.11, or name one with "
            "make PYTHON=/path/to/python" % (OLDEST + tuple(sys.version_info[:2]))
        )
    print("Setting up .venv; the first time takes some minutes.", flush=True)
    if subprocess.call([found, "-m", "venv", "--clear", str(VENV)], stdout=subprocess.DEVNULL):
        shutil.rmtree(str(VENV), ignore_errors=True)
        sys.exit("Python's venv module is needed: install python3-venv (Debian, Ubuntu).")


def first(names):
    return next(filter(None, map(shutil.which, names)), None)


def pip(*what):
    command = [str(PYTHON), "-m", "pip", "install", "-qq", "--constraint", str(PINS)]
    command += ["--disable-pip-version-check", "--no-warn-script-location", *what]
    if subprocess.call(command):
        sys.exit("Setting up failed: " + " ".join(command))


if __name__ == "__main__":
    main()
