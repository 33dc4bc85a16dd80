"""Push the notebooks that the built site offers to a branch, which launch buttons open.

The branch holds one commit: the notebooks at their paths, and a requirements file for Binder, which
installs the package from the same source as the notebooks' first cells.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from tools.notebooks import ROOT

FROM = re.compile(r'%pip install .*attnbook.* @ ([^"\\]+)')
README = "The notebooks of the site, as it was built from commit {commit}. Made anew each time.\n"


def lay_out(html: pathlib.Path, root: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the branch's files to an empty folder."""
    sources, named = html / "_sources", set[str]()
    for path in sorted(sources.rglob("*.ipynb")):
        source = FROM.search(path.read_text("utf-8"))
        if not source:
            sys.exit(
                f"the first cell of {path.relative_to(sources)} does not say where the package is: "
                "set BOOK_SITE_URL, and build the site again"
            )
        target = folder / path.relative_to(sources)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        named.add(source[1])
    binder(root, folder, *named)


def binder(root: pathlib.Path, folder: pathlib.Path, source: str) -> None:
    """Write Binder's requirements, with the package from `source`."""
    (folder / "binder").mkdir(exist_ok=True)
    for path in (root / "binder").iterdir():
        text = path.read_text("utf-8")
        text = re.sub(r"(?m)^-e \.(\[[\w,]+\])$", rf"attnbook\1 @ {source}", text)
        (folder / "binder" / path.name).write_text(text, "utf-8")
    shutil.copy(root / "requirements.txt", folder)


def push(folder: pathlib.Path, branch: str, root: pathlib.Path = ROOT) -> None:
    """Push a folder as the only commit of a branch to the origin of `root`."""

    def git(*said: str) -> str:
        done = subprocess.run(
            ["git", *said], cwd=root, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout.strip()

    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "GIT_INDEX_FILE": f"{scratch}/index"}
        for name in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{name}_NAME": "publish", f"GIT_{name}_EMAIL": "publish@localhost"}
        head = git("rev-parse", "HEAD")
        (folder / "README.md").write_text(README.format(commit=head), "utf-8")
        git(f"--work-tree={folder}", "add", "--all", "--force", str(folder))
        commit = git("commit-tree", git("write-tree"), "-m", f"Notebooks of {head}")
        git("push", "--quiet", "--force", "origin", f"{commit}:refs/heads/{branch}")


def main() -> None:
    branch = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["branch"]
    with tempfile.TemporaryDirectory() as folder:
        lay_out(ROOT / "_build" / "html", ROOT, pathlib.Path(folder))
        push(pathlib.Path(folder), branch)
    print(f"the branch {branch} holds the notebooks of this site")


if __name__ == "__main__":
    main()
