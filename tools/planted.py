"""`make planted`: plants one error after another in a copy of the tree; the tests must see each.

`tests/planted.toml` lists the errors, mistakes that people make:

    [[error]]
    id = "a query sees the token after it"
    file = "src/attnbook/masks.py"
    find = ".tril()"                   # stands exactly once in the file
    replace = ".tril(1)"
    tests = ["tests/test_masks.py"]    # files, node ids, or "node:..." for a file of Node tests

A line each says which test caught it, or what is wrong. `--only WORD` takes those with the word in
id or file; `--root DIR` and `--list FILE` measure another checkout.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib

from tools.notebooks import ROOT

PYTEST = [sys.executable, *"-m pytest -x -q -p no:cacheprovider".split()]
PYTEST += ["--disable-plugin-autoload"]  # to load nbval's takes longer than most tests
RUNNERS = {  # by how a test's name begins
    "node:": ["node", "--test", "--test-reporter=tap"],
    "tests/bad_inputs": ["env", "ATTNBOOK_TYPES=0", *PYTEST],
    "tests/": PYTEST,
}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "node_modules", "_build", ".*cache*", "*cache__")
KEYS = {"id", "file", "find", "replace", "tests"}
SEEN_BY = re.compile(r"^(?:FAILED|ERROR) (?:tests/)?(.*?)(?: - .*)?$|^not ok \d+ - (.*)$", re.M)
PATIENCE = 60  # seconds, beyond twice what all tests take together on sound code


def read(path: pathlib.Path) -> list[dict]:
    """The listed errors, each whole and of a name of its own."""
    errors = tomllib.loads(path.read_text("utf-8"))["error"]
    names = [error.get("id") for error in errors]
    for error in errors:
        if set(error) != KEYS or not error["tests"] or names.count(error["id"]) > 1:
            sys.exit(f"{path.name}: an error has {sorted(KEYS)}, its id to itself: {error}")
    return errors


def run(tests: list[str], copy: pathlib.Path, limit: float | None) -> tuple[int, str]:
    """Exit status and output of tests; the status is negative if they were stopped after limit."""
    commands: dict[str, list[str]] = {}
    for test in dict.fromkeys(tests):
        kind = next(start for start in RUNNERS if test.startswith(start))
        commands.setdefault(kind, [*RUNNERS[kind]]).append(test.removeprefix("node:"))
    # CI: no test is skipped, random, or fails for being slow. Bytecode is told from that of another
    # text by second and size alone, which an error may share.
    own = {"PYTHONPATH": f"{copy}/src", "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    status, said = 0, ""
    for command in commands.values():
        with tempfile.TemporaryFile() as file:
            options = {"cwd": copy, "env": os.environ | own, "start_new_session": True}
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, **options)
            try:
                process.wait(limit)
            except (subprocess.TimeoutExpired, KeyboardInterrupt) as stop:
                os.killpg(process.pid, signal.SIGKILL)  # with what the tests have started
                if isinstance(stop, KeyboardInterrupt):
                    raise
            status = status or process.wait()
            file.seek(0)
            said += file.read().decode(errors="replace")
    return status, said


def plant(error: dict, copy: pathlib.Path, limit: float) -> tuple[bool, str]:
    """Whether an error is caught, and how or why not."""
    path = copy / error["file"]
    sound = path.read_text("utf-8") if path.is_file() else ""
    if (count := sound.count(error["find"])) != 1:
        return False, f"DOES NOT FIT: what it replaces stands {count} times in {error['file']}"
    path.write_text(sound.replace(error["find"], error["replace"]), "utf-8")
    status, said = run(error["tests"], copy, limit)
    path.write_text(sound, "utf-8")
    if status == -signal.SIGKILL:
        return True, "caught, as its tests do not end"
    seen = SEEN_BY.search(said)
    if status > 1 or (status and not seen):  # code that cannot be imported proves nothing
        return False, f"DOES NOT RUN: {said[-500:]}"
    return bool(status), f"caught by {seen[1] or seen[2]}" if status and seen else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--root", default=ROOT, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--list", type=pathlib.Path)
    asked = parser.parse_args()
    listed = read(asked.list or asked.root / "tests" / "planted.toml")
    errors = [error for error in listed if asked.only in f"{error['id']} {error['file']}"]
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(shutil.copytree(asked.root, f"{folder}/tree", ignore=LEFT_OUT))
        for name in (".venv", "node_modules"):
            (copy / name).symlink_to(asked.root / name)
        start = time.monotonic()
        status, said = run([test for error in errors for test in error["tests"]], copy, None)
        if status:
            sys.exit(f"{said}\nThe tests fail before any error is planted.")
        limit, caught = PATIENCE + 2 * (time.monotonic() - start), 0
        for error in errors:
            seen, how = plant(error, copy, limit)
            caught += seen
            print(f"{error['id']}: {how}", flush=True)
    print(f"{caught} of {len(errors)} caught")
    sys.exit(not errors or caught < len(errors))


if __name__ == "__main__":
    main()
