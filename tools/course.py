"""Turn a copy of this repository into a course: `python -m tools.course REPO [--keep]`.

Writes the repository's address into _config.yml, makes the students' notebooks from the solutions
again, moves the solutions and the tests' answers to a private folder, and prints the steps left to
do. No notebook contains an address: those that leave the site get one when it is built.
"""

import argparse
import os
import pathlib
import re
import shutil
import sys

from tools import notebooks
from tools.notebooks import ROOT

CONFIGURED = re.compile(r"(?m)^(repository:\n(?:[ \t]+.*\n)*?[ \t]+url:).*$")
PRIVATE = ("book/solutions", "tests/answers")  # what students must not see
README = """# Solutions

`book/solutions` and `tests/answers` of {address}, which does without them. Keep this folder in a
private repository, and name it where it is needed:

    make grade SUBMISSIONS=handed-in ASSIGNMENT=a1 BOOK_PRIVATE={folder}
    make marks SUBMISSIONS=handed-in ASSIGNMENT=a1 ROSTER=roster.csv BOOK_PRIVATE={folder}
    make assignments BOOK_PRIVATE={folder}
    make test BOOK_PRIVATE={folder}
"""
STEPS = """
What is left to do, in this order:
1. git add --all && git commit -m "A course of our own" && git push
2. {address}/actions: press "I understand my workflows, go ahead and enable them".
3. {address}/settings/pages: choose "GitHub Actions" as the source.
4. {address}/actions/workflows/publish.yml: press "Run workflow". From then on each push to main
   builds the site: {site}"""
ELSEWHERE = """
What is left to do:
1. git add --all && git commit -m "A course of our own" && git push
2. There is no workflow for this host: build the site by BOOK_SITE_URL=https://... make book, and
   put _build/html there."""
HIDDEN = """
The solutions are in {folder}. Put them into a private repository, which must be no
fork, as a fork of a public one is public:
   cd {folder} && git init && git add --all && git commit -m Solutions
Tests that need them are skipped, and say so, unless BOOK_PRIVATE names the folder:
   make grade SUBMISSIONS=... ASSIGNMENT=a1 BOOK_PRIVATE={folder}
The history of this repository, and the book's own, still show them: change the seeds and sizes of
hidden tests for each year."""


def write(config: pathlib.Path, address: str) -> None:
    """Write the address of the repository into _config.yml."""
    text = config.read_text("utf-8")
    config.write_text(CONFIGURED.sub(lambda found: f"{found[1]} {address}", text), "utf-8")


def hide(root: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Move private files out of a tree; returns the moved paths, none if it was done before.

    Raises:
        ValueError: if the folder is inside the tree, or holds other files under these names.
    """
    folder, root = folder.resolve(), root.resolve()
    if folder.is_relative_to(root):
        raise ValueError(f"BOOK_PRIVATE must be a folder outside of {root}, got {folder}")
    files = [path for name in PRIVATE for path in (root / name).rglob("*") if path.is_file()]
    goals = {path: folder / path.relative_to(root) for path in files}
    for path, goal in goals.items():
        if goal.exists() and goal.read_bytes() != path.read_bytes():
            raise ValueError(f"{goal} is there already, and is another: move it away first")
    for path, goal in goals.items():
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, goal)
    moved = [name for name in PRIVATE if (root / name).is_dir()]
    for name in moved:
        shutil.rmtree(root / name)
    return moved if files else []


def steps(address: str, folder: pathlib.Path | None) -> str:
    """The steps that a person still has to do, with their pages."""
    host, owner, name = address.removeprefix("https://").split("/")
    own = f"{owner}.github.io".lower()
    site = f"https://{own}/" if name.lower() == own else f"https://{own}/{name}/"
    said = (STEPS if host == "github.com" else ELSEWHERE).format(address=address, site=site)
    return said + (HIDDEN.format(folder=folder) if folder else "")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tools.course", description=__doc__)
    parser.add_argument("repo", nargs="?", default="")
    parser.add_argument("--keep", action="store_true", help="leave the solutions where they are")
    asked = parser.parse_args(argv)
    site = notebooks.load(ROOT / "book" / "_ext" / "attnbook_site" / "repository.py")
    address = site.address(asked.repo)
    if not address:
        sys.exit("say which repository: make course REPO=https://github.com/owner/name")
    folder = pathlib.Path(os.environ.get("BOOK_PRIVATE") or ROOT.parent / f"{ROOT.name}-private")
    if (ROOT / PRIVATE[0]).is_dir():
        from tools import assignments  # needs nbgrader, which the site does not

        assignments.main(ROOT / PRIVATE[0])
    try:
        moved = [] if asked.keep else hide(ROOT, folder)
    except ValueError as error:
        sys.exit(str(error))
    write(ROOT / "_config.yml", address)
    print(f"_config.yml names {address}")
    if moved:
        print(f"moved to {folder.resolve()}: {', '.join(moved)}")
        readme = README.format(address=address, folder=folder)
        (folder / "README.md").write_text(readme, "utf-8")
    print(steps(address, None if asked.keep else folder.resolve()))


if __name__ == "__main__":
    main()
