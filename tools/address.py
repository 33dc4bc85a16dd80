"""Point the book at a repository: `python -m tools.address https://github.com/owner/name`.

Rewrites the install line in every notebook's first code cell, which otherwise takes the package by
name, and the launch buttons' repository in _config.yml. For a fork that changes the package.
"""

import pathlib
import re
import sys

from tools import notebooks
from tools.notebooks import ROOT

INSTALL = re.compile(r"^(\s*%pip install .*?)\"?(attnbook\b(\[\w+\])?).*$", re.MULTILINE)
BUTTONS = re.compile(r"(?m)^(repository:\n(?:[ \t]+.*\n)*?[ \t]+url:).*$")


def rewrite(root: pathlib.Path, address: str) -> list[pathlib.Path]:
    """Write the address where it belongs, or nowhere; returns the files that changed."""
    changed, paths = [], notebooks.every(root / "book")
    if late := [path.name for path in paths if notebooks.behind(path, root)]:
        sys.exit(f"the text of {', '.join(late)} is newer than the notebook: run `make text` first")
    for path in paths:
        nb = notebooks.read(path)
        if point(nb, address):
            notebooks.write(path, nb)
            changed.append(path)
    config = root / "_config.yml"
    before = config.read_text("utf-8")
    after = BUTTONS.sub(lambda match: f"{match[1]} {address}", before)
    if after != before:
        config.write_text(after, "utf-8")
        changed.append(config)
    return changed


def point(nb: notebooks.NotebookNode, address: str) -> bool:
    """Change a notebook's install line. It is not run where the package is there: no new run."""
    cells = notebooks.code_cells(nb)
    if not cells:
        return False
    line = rf'\1"\2 @ git+{address}"'
    source = INSTALL.sub(line, cells[0].source)
    if source == cells[0].source:
        return False
    current = nb.metadata.get("attnbook", {}).get("code_hash") == notebooks.code_hash(nb)
    cells[0].source = source
    notebooks.settle_cells(nb)
    if current:
        nb.metadata["attnbook"]["code_hash"] = notebooks.code_hash(nb)
    return True


def main() -> None:
    site = notebooks.load(ROOT / "book" / "_ext" / "attnbook_site" / "repository.py")
    address = site.address(sys.argv[1]) if len(sys.argv) == 2 else None
    if not address:
        sys.exit("say which repository: make address REPO=https://github.com/owner/name")
    for path in rewrite(ROOT, address):
        print(f"{path.relative_to(ROOT)} points at {address}")


if __name__ == "__main__":
    main()
