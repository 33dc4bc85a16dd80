"""Paths: this extension, the book, the package's widgets and weights, and npm's packages."""

from pathlib import Path

EXT = Path(__file__).resolve().parents[1]
BOOK = EXT.parent
WIDGETS = BOOK.parent / "src/attnbook/web"
WEIGHTS = BOOK.parent / "src/attnbook/weights"
NPM = BOOK.parent / "node_modules"
