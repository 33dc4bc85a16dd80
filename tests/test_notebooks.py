"""Every stored notebook keeps the book's promises, and every reference is one that exists."""

import re

import pytest

from tools import checks, notebooks
from tools.notebooks import BOOK

NOTEBOOKS = notebooks.every()
CITED = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")


def test_there_are_chapters():
    assert any(map(notebooks.is_chapter, NOTEBOOKS))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_no_problem(path):
    assert checks.problems(path) == []


def test_claims_are_numbered_without_gaps():
    assert list(checks.claim_titles()) == [f"C{n:02d}" for n in range(1, 55)]


def prose() -> dict[str, str]:
    """The Markdown of every page, by its name."""
    pages = {p.name: p.read_text("utf-8") for p in sorted(BOOK.rglob("*.md"))}
    for path in NOTEBOOKS:
        cells = notebooks.read(path).cells
        pages[path.name] = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    return pages


def cited(text: str) -> set[str]:
    return {key.strip() for keys in CITED.findall(text) for key in keys.split(",")}


def test_every_cited_key_is_in_the_bibliography():
    keys = re.findall(r"^@\w+\{([^,\s]+),", (BOOK / "references.bib").read_text("utf-8"), re.M)
    assert len(keys) == len(set(keys))
    unknown = {name: cited(text) - set(keys) for name, text in prose().items()}
    assert {name: missing for name, missing in unknown.items() if missing} == {}
    assert any(cited(text) for text in prose().values())


def test_images_on_pages_have_alt_text():
    unnamed = {name: checks.unnamed_images(text) for name, text in prose().items()}
    assert {name: images for name, images in unnamed.items() if images} == {}
