"""Build the site strictly into _build/html; `--all` reads every page anew."""

import shutil
import subprocess
import sys

from tools.notebooks import ROOT

BUILD = ["jupyter-book", "build", "-W", "-n", "--keep-going", "-q"]


def main() -> None:
    if subprocess.run([*BUILD, *sys.argv[1:], "."], cwd=ROOT).returncode:
        # Sphinx does not read unchanged pages again, so a next build would lose their warnings.
        shutil.rmtree(ROOT / "_build" / ".doctrees", ignore_errors=True)
        sys.exit("The site has problems: see the warnings above.")


if __name__ == "__main__":
    main()
