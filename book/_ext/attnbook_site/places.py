"""Paths: this extension, the book, the package, its weights, and npm's packages."""

import sys
from pathlib import Path

EXT = Path(__file__).resolve().parents[1]
BOOK = EXT.parent
SOURCES = BOOK.parent / "src"
WEIGHTS = SOURCES / "attnbook/weights"
NPM = BOOK.parent / "node_modules"

# The package is not installed where the book is built; modules that need no PyTorch load from here.
sys.path.insert(0, str(SOURCES))


def pages(site: Path) -> list[Path]:
    """The built pages, without the theme's templates here and in a translation's site."""
    return [page for page in site.rglob("*.html") if "_static" not in page.parts]
