"""Point the book at a repository: `python -m tools.address https://github.com/owner/name`.

Writes it into _config.yml, for the launch buttons and the link that reports a problem. No notebook
names an address: those that leave the site get one when it is built.
"""

import pathlib
import re
import sys

from tools import notebooks
from tools.notebooks import ROOT

CONFIGURED = re.compile(r"(?m)^(repository:\n(?:[ \t]+.*\n)*?[ \t]+url:).*$")


def write(config: pathlib.Path, address: str) -> None:
    text = config.read_text("utf-8")
    config.write_text(CONFIGURED.sub(lambda found: f"{found[1]} {address}", text), "utf-8")


def main() -> None:
    site = notebooks.load(ROOT / "book" / "_ext" / "attnbook_site" / "repository.py")
    address = site.address(sys.argv[1]) if len(sys.argv) == 2 else None
    if not address:
        sys.exit("say which repository: make address REPO=https://github.com/owner/name")
    write(ROOT / "_config.yml", address)
    print(f"_config.yml names {address}")


if __name__ == "__main__":
    main()
