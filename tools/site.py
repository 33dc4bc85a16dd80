"""Build the site strictly into _build/html; `--all` reads every page again.

SmolLM2 becomes part of the site if its file is in the cache; with MODEL=1 it is fetched first.
"""

import os
import shutil
import subprocess
import sys

from tools.notebooks import ROOT

BUILD = ["jupyter-book", "build", "-W", "-n", "--keep-going", "-q"]


def model() -> str:
    """The path of SmolLM2's file, or "" after a message."""
    sys.path.insert(0, str(ROOT / "src"))  # where the book is built, the package is not installed
    from attnbook import assets

    folder = assets.fetch("smollm2") if os.environ.get("MODEL") else assets.cached("smollm2")
    if folder:
        return str(next(folder.glob("*.gguf")))
    print(
        "Without SmolLM2, which chapters 10 and 11 run in the page: MODEL=1 make book fetches it."
    )
    return ""


def main() -> None:
    environment = {**os.environ, "BOOK_MODEL": model()}
    if subprocess.run([*BUILD, *sys.argv[1:], "."], cwd=ROOT, env=environment).returncode:
        # Sphinx does not read unchanged pages again, so the next build would lose their warnings.
        shutil.rmtree(ROOT / "_build" / ".doctrees", ignore_errors=True)
        sys.exit("The site has problems: see the warnings above.")


if __name__ == "__main__":
    main()
