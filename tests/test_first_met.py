"""A word that chapters 1 to 5 say first, and each table of their symbols, lead to that section."""

import re
from pathlib import Path

import pytest

from tools import notebooks
from tools.notebooks import BOOK

STORIES = sorted(path for path in notebooks.every() if notebooks.is_story(path))[:5]
LINK = re.compile(r"\]\((\w+)\.ipynb#([\w-]+)\)")
GLOSSARY = (BOOK / "glossary.md").read_text("utf-8")
NOTATION = (BOOK / "notation.md").read_text("utf-8")
ENTRIES = GLOSSARY.split("```{glossary}\n")[1].split("```")[0].strip().split("\n\n")


def prose(story: Path) -> str:
    cells = notebooks.read(story).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def slugs(story: Path) -> set[str]:
    """The anchors that MyST makes of headings."""
    found = re.findall(r"(?m)^#{1,3} (.+)$", prose(story))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_links_from_glossary_and_notation_meet_a_heading(story):
    linked = {slug for stem, slug in LINK.findall(GLOSSARY + NOTATION) if stem == story.stem}
    assert linked and linked <= slugs(story)


def test_a_word_that_is_said_first_in_chapters_1_to_5_leads_there():
    said = "\n".join(re.findall(r"\*+([^*\n]+)\*+", "\n".join(map(prose, STORIES)))).lower()
    without = []
    for entry in ENTRIES:
        terms = [line for line in entry.splitlines() if not line.startswith(" ")]
        here = any(re.search(rf"(?m)^{re.escape(term.lower())}s?$", said) for term in terms)
        if here and not LINK.search(entry):
            without.append(terms[0])
    assert not without


@pytest.mark.parametrize(
    "section", ["Sequence to sequence", "Attention", "Self-attention", "Positions", "Many heads"]
)
def test_symbols_lead_to_where_they_are_met(section):
    assert LINK.search(NOTATION.split(f"## {section}\n")[1].split("\n## ")[0])
