"""Find Chromium on this machine or get it: Debian's package as root on Debian, else Playwright's.

Its headless shell is preferred, the same engine without a browser's windows and menus: a page takes
about half the processor time there. ATTNBOOK_SHELL=0 excludes it, and code that measures pages as
readers see them asks for the whole browser.

`python -m tools.chromium` prints the path of one, after fetching it if needed.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

SHELL = "chromium-headless-shell"  # not in older versions of Debian
WHOLE = os.environ.get("ATTNBOOK_SHELL") == "0"
NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
MISSING = (
    "Chromium is needed for the browser tests and could not be fetched: install it (Debian: "
    "apt-get install chromium), or name one with CHROMIUM=/path/to/chromium."
)


def find(whole: bool = WHOLE) -> str | None:
    """The path of a Chromium that starts: $CHROMIUM, one on PATH, or Playwright's; None if none.

    `whole`: no headless shell.
    """
    if named := os.environ.get("CHROMIUM"):
        return named if works(named) else sys.exit(f"CHROMIUM={named} does not start")
    names = NAMES if whole else [SHELL, *NAMES]
    if found := next(filter(works, map(shutil.which, names)), None):
        return found
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return next(filter(works, [path] if whole else [*shells(path), path]), None)


def shells(path: str) -> list[str]:
    """The headless shells that Playwright has installed beside its Chromium."""
    folders = [folder for folder in Path(path).parents if folder.name.startswith("chromium-")]
    names = [folder.name.replace("chromium", "chromium_headless_shell", 1) for folder in folders]
    beside = (folder.parent / name for folder, name in zip(folders, names, strict=True))
    return [str(file) for each in beside for file in each.glob("*/*headless*shell")]


def works(path: str | None) -> bool:
    """Whether a browser starts: some systems have a stub that only says what to install."""
    if not path:
        return False
    try:
        return not subprocess.run([path, "--version"], capture_output=True).returncode
    except OSError:
        return False


def install(*packages: str, playwrights: str = "chromium") -> None:
    """Install a browser: the first of Debian's packages that exists, elsewhere Playwright's."""
    if debian() and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for package in packages:
            # Without a font, a page has no text to measure or to click.
            command = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends"]
            command += [package, "fonts-liberation"]
            done = subprocess.run(command, check=False, stdout=sys.stderr, env=environment)
            if not done.returncode:
                return
    else:
        command = [sys.executable, "-m", "playwright", "install", playwrights]
        subprocess.run(command, check=False, stdout=sys.stderr)


def debian() -> bool:
    """Whether this is Debian itself: Ubuntu's Chromium package only installs a snap."""
    try:
        return platform.freedesktop_os_release().get("ID") == "debian"
    except OSError:
        return False


def ensure(whole: bool = WHOLE) -> str:
    """The path of a Chromium, installed if needed; `whole`: no headless shell."""
    if not find(whole):
        install(*([] if whole else [SHELL]), "chromium")
    return find(whole) or sys.exit(MISSING)


if __name__ == "__main__":
    print(ensure())
