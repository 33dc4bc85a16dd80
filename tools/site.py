"""Build the site strictly into _build/html; `--all` reads every page anew."""

import shutil
import subprocess
import sys

from tools.notebooks import ROOT

BUILD = ["jupyter-book", "build", "-W", "-n", "--keep-going", "-q"]


def main() -> None:
    if subprocess.run([*BUILD, *sys.argv[1:], "."], cwd=ROOT).returncode:
        # Pages that were read are not read again, so their warnings would be gone the next time.
        shutil.rmtree(ROOT / "_build" / ".doctrees", ignore_errors=True)
        sys.exit("The site has problems: see the warnings above.")


if __name__ == "__main__":
    main()
