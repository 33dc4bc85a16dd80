"""Paths: this extension, the book, the package, its weights, and npm's packages."""

import sys
from pathlib import Path

EXT = Path(__file__).resolve().parents[1]
BOOK = EXT.parent
SOURCES = BOOK.parent / "src"
WEIGHTS = SOURCES / "attnbook/weights"
NPM = BOOK.parent / "node_modules"

# Where the book is built, the package is not installed: what needs no PyTorch is read from here.
sys.path.insert(0, str(SOURCES))


def pages(site: Path) -> list[Path]:
    """The built pages; templates of the theme are none, also those in a translation's site."""
    return [page for page in site.rglob("*.html") if "_static" not in page.parts]
