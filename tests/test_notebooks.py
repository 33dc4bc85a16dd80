"""Every stored notebook keeps the book's promises, and every reference is one that exists."""

import re

import pytest

from tests.helpers.pages import NOTEBOOKS, cited, prose
from tools import checks, notebooks
from tools.notebooks import BOOK


def test_there_are_chapters():
    assert any(map(notebooks.is_chapter, NOTEBOOKS))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_no_problem(path):
    assert checks.problems(path) == []


def test_claims_are_numbered_without_gaps():
    assert list(checks.claim_titles()) == [f"C{n:02d}" for n in range(1, 55)]


def test_every_cited_key_is_in_the_bibliography():
    keys = re.findall(r"^@\w+\{([^,\s]+),", (BOOK / "references.bib").read_text("utf-8"), re.M)
    assert len(keys) == len(set(keys))
    unknown = {name: cited(text) - set(keys) for name, text in prose().items()}
    assert {name: missing for name, missing in unknown.items() if missing} == {}
    assert any(cited(text) for text in prose().values())


def test_images_on_pages_have_alt_text():
    unnamed = {name: checks.unnamed_images(text) for name, text in prose().items()}
    assert {name: images for name, images in unnamed.items() if images} == {}
