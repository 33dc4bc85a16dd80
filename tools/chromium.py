"""Find Chromium on this machine or get it: Debian's package as root on Debian, else Playwright's.

`python -m tools.chromium` prints the path of one, after fetching it if needed.
"""

import os
import platform
import shutil
import subprocess
import sys

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
MISSING = (
    "Chromium is needed for the browser tests and could not be fetched: install it (Debian: "
    "apt-get install chromium), or name one with CHROMIUM=/path/to/chromium."
)


def find() -> str | None:
    """The path of a Chromium that starts: $CHROMIUM, one on PATH, or Playwright's; None if none."""
    if named := os.environ.get("CHROMIUM"):
        return named if works(named) else sys.exit(f"CHROMIUM={named} does not start")
    if found := next(filter(works, map(shutil.which, NAMES)), None):
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if works(path) else None


def works(path: str | None) -> bool:
    """Whether a Chromium starts: some systems have a stub that only tells what to install."""
    if not path:
        return False
    try:
        return not subprocess.run([path, "--version"], capture_output=True).returncode
    except OSError:
        return False


def install(package: str = "chromium", playwrights: str = "chromium") -> None:
    """Fetch a browser: Debian's package, elsewhere Playwright's; if that fails, there is none."""
    if debian() and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        # A font is needed: without one a page has no text to measure or to click.
        packages = [package, "fonts-liberation"]
        command = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *packages]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, check=False, stdout=sys.stderr, env=environment)
    else:
        command = [sys.executable, "-m", "playwright", "install", playwrights]
        subprocess.run(command, check=False, stdout=sys.stderr)


def debian() -> bool:
    """Whether this is Debian itself: Ubuntu's package of that name only installs a snap."""
    try:
        return platform.freedesktop_os_release().get("ID") == "debian"
    except OSError:
        return False


def ensure() -> str:
    """The path of a Chromium, fetched if needed."""
    if not find():
        install()
    return find() or sys.exit(MISSING)


if __name__ == "__main__":
    print(ensure())
