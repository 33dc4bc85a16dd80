"""Resolve all dependencies anew in an empty environment and rewrite requirements.txt.

torch keeps its pin unless TORCH=2.14.0 names another: everything else is resolved around it.
"""

import os
import re
import subprocess
import sys
import tempfile

from tools.notebooks import ROOT

PINS = ROOT / "requirements.txt"
HEADER = (
    "# Exact pins for building and testing, written by `make lock`.\n"
    "# tools/environment.py installs torch first, by the exact version that stands here.\n"
)
GROUPS = ("backend", "book", "edit", "mutants", "test")
OWN = re.compile(r"^(attnbook|wheel)\b|^-e ")


def pins(frozen: str) -> str:
    """requirements.txt from the output of `pip freeze`, without local versions of builds."""
    lines = [re.sub(r"\+\w+$", "", line) for line in frozen.splitlines() if not OWN.match(line)]
    return HEADER + "".join(f"{line}\n" for line in sorted(lines, key=str.lower))


def main() -> None:
    found = re.search(r"^torch==(\S+)$", PINS.read_text(), re.MULTILINE)
    assert found, "requirements.txt names no torch"
    torch = os.environ.get("TORCH", found[1])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip"]
        install = [*pip, "install", "-qq"]
        subprocess.run([*install, "--upgrade", "pip"], check=True)
        subprocess.run([*install, f"torch=={torch}"], check=True)
        groups = [part for group in GROUPS for part in ("--group", group)]
        command = [*install, f"torch=={torch}", *groups, ".[bertviz,devices,pretrained]"]
        subprocess.run(command, check=True, cwd=ROOT)
        frozen = subprocess.run(
            [*pip, "freeze", "--all"], check=True, capture_output=True, text=True
        )
    PINS.write_text(pins(frozen.stdout))
    print(f"{PINS.name}: {len(PINS.read_text().splitlines()) - HEADER.count(chr(10))} pins")


if __name__ == "__main__":
    main()
