"""The text of the book's pages."""

import re

from tools import notebooks
from tools.notebooks import BOOK

NOTEBOOKS = notebooks.every()
CITED = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")


def prose() -> dict[str, str]:
    """The Markdown of every page, by its name."""
    pages = {p.name: p.read_text("utf-8") for p in sorted(BOOK.rglob("*.md"))}
    for path in NOTEBOOKS:
        cells = notebooks.read(path).cells
        pages[path.name] = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    return pages


def cited(text: str) -> set[str]:
    return {key.strip() for keys in CITED.findall(text) for key in keys.split(",")}
