"""Find an ordinary Firefox on this machine, or get one.

As root on Debian it gets Debian's package, elsewhere Playwright's own Firefox.

`python -m tools.firefox` prints the path of one, after fetching it if needed.
"""

import os
import re
import shutil
import subprocess
import sys

from tools.chromium import install, works

NAMES = ["firefox-esr", "firefox"]
OLDEST = 153  # older ones do not know the WebDriver BiDi commands that Playwright sends
MISSING = (
    "Firefox is needed for these tests and could not be fetched: install it (Debian: apt-get "
    f"install firefox-esr, {OLDEST} or newer), or name one with FIREFOX=/path/to/firefox."
)


def find() -> str | None:
    """The path of a Firefox that is new enough: $FIREFOX, or one on PATH; None if none."""
    if named := os.environ.get("FIREFOX"):
        return named if drives(named) else sys.exit(f"FIREFOX={named} does not start, or is old")
    return next(filter(drives, map(shutil.which, NAMES)), None)


def drives(path: str | None) -> bool:
    """Whether a Firefox starts and is new enough; Ubuntu's package of that name is a stub."""
    if not path or not works(path):
        return False
    told = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Firefox (\d+)", told)
    return bool(found and int(found[1]) >= OLDEST)


def playwrights() -> bool:
    """Whether Playwright's own Firefox is installed and starts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        return works(playwright.firefox.executable_path)


def ensure() -> str | None:
    """The path of a Firefox, installed if needed; None means Playwright's own."""
    if not (path := find()) and not playwrights():
        install("firefox-esr", playwrights="firefox")
        path = find()
        if not path and not playwrights():
            sys.exit(MISSING)
    return path


if __name__ == "__main__":
    print(ensure() or "Playwright's own")
