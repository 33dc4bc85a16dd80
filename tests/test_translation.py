"""Catalogues of other languages: whole, none dead, none fuzzy; and how words are looked up."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sphinx_togglebutton
from babel.messages.pofile import read_po

from tests.helpers.translated import ENTRIES, Words, page_of
from tools import translation
from tools.notebooks import ROOT

PAGES = [(code, name) for code in translation.NAMES for name in translation.pages(code)]
WEB = ROOT / "src/attnbook/web"
SCRIPTS = [file for file in WEB.rglob("*.js") if "bundles" not in file.parts]
SCRIPTS.append(Path(sphinx_togglebutton.__file__).parent / "_static/togglebutton.js")


class Heard(Words):
    """Words that remember which entries were found."""

    def __init__(self, entries: dict[str, str]) -> None:
        super().__init__(entries)
        self.used: set[str] = set()

    def entry(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        if found := super().entry(text):
            self.used.add(found[0])
        return found


def phrases(entry: str) -> Iterator[str]:
    """The parts of an entry that a widget's source writes in one piece."""
    for part in re.split(r"\{\w+\}|[.:,;·()“”…]", entry):
        if re.search(r"[a-z]{2}", part):
            yield part.strip()


def literals() -> str:
    """The sources of all widgets, with texts that go over several lines in one piece."""
    text = "\n".join(file.read_text("utf-8") for file in SCRIPTS)
    return re.sub(r"[\"'`]\s*\n?\s*\+\s*[\"'`]", "", text)


@pytest.fixture(scope="module")
def said(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the translated pages say now."""
    names = sorted({name for _, name in PAGES})
    return translation.messages(names, site, tmp_path_factory.mktemp("messages"))


@pytest.mark.parametrize(("language", "name"), PAGES)
def test_a_catalogue_says_what_its_page_says(said: Path, language: str, name: str) -> None:
    file = translation.LOCALE / language / "LC_MESSAGES" / f"{name}.po"
    catalogue = read_po(file.open("rb"))
    template = read_po((said / f"{name}.pot").open("rb"))
    ids = ({str(m.id) for m in messages if m.id} for messages in (template, catalogue))
    assert next(ids) == next(ids)
    assert not catalogue.obsolete
    unfinished = [m.id for m in catalogue if m.id and (m.fuzzy or not m.string)]
    assert unfinished == []
    # The same mathematics, citations and links to other sections, in whatever order.
    for message in catalogue:
        for kind in (r"\{cite(?::t)?\}`\w+`", r"\]\([^)]+\)", r"(?<!`)`[^`]+`(?!`)"):
            theirs, ours = (sorted(re.findall(kind, str(t))) for t in (message.id, message.string))
            assert theirs == ours or set(theirs) < set(ours), message.id


@pytest.mark.parametrize("language", translation.NAMES)
def test_each_word_of_a_page_still_stands_in_it(site: Path, language: str) -> None:
    words = Heard(ENTRIES[language]["page"])
    for name in translation.pages(language):
        words.page((site / f"{name}.html").read_text("utf-8"))
    assert set(words.exact) - words.used == set()


@pytest.mark.parametrize("language", translation.NAMES)
def test_each_word_of_a_widget_still_stands_in_its_source(language: str) -> None:
    sources = literals()
    gone = [p for entry in ENTRIES[language]["running"] for p in phrases(entry) if p not in sources]
    assert gone == []


@pytest.mark.parametrize("language", translation.NAMES)
def test_an_entry_names_its_places_again(language: str) -> None:
    for entries in ENTRIES[language].values():
        for entry, words in entries.items():
            places = [set(re.findall(r"\{\w+\}", text)) for text in (entry, words)]
            assert places[1] <= places[0] and words, entry
            # A caption's marks light the same parts.
            parts = [sorted(re.findall(r"\]\(([^)]+)\)", text)) for text in (entry, words)]
            assert parts[0] == parts[1] and not any("{" in part for part in parts[0]), entry


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("  state\n", "  Zustand\n"),
        ("step 3 of 14", "Schritt 3 von 14"),
        ("Right. What else? state", "Richtig. What else? Zustand"),
        ("the state of each word", "den Zustand jedes Wortes"),
        ("statement", "statement"),
    ],
)
def test_a_text_is_looked_up(text: str, found: str) -> None:
    entries = {
        "state": "Zustand",
        "step {n} of {all}": "Schritt {n} von {all}",
        "Right.": "Richtig.",
    }
    words = Words({**entries, "the {key} of each word": "den {key} jedes Wortes"})
    assert words(text) == found


def test_markup_keeps_code_and_escapes_words() -> None:
    words = Words({"state": "Zustand <1>", "a map": 'eine "Karte"'})
    rest = "<pre>state</pre><bdi>state</bdi>&amp;"
    found = '<p title="eine &quot;Karte&quot;">Zustand &lt;1&gt;</p>'
    assert words.markup(f'<p title="a map">state</p>{rest}') == found + rest


def test_what_code_reads_is_no_word() -> None:
    words = Words({"dot": "Punkt"})
    assert words.state({"weights": ["dot"], "title": "dot"}) == {
        "weights": ["dot"],
        "title": "Punkt",
    }


def test_links_lead_both_ways_and_only_once(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>T<a>#</a></h1>\n<p>text</p>")
    for _ in range(2):
        translation.link(page, "../de/page.html", "de", "Auf Deutsch")
    line = '<a href="../de/page.html" hreflang="de" lang="de">Auf Deutsch</a>'
    assert page.read_text() == f'<h1>T<a>#</a></h1>\n<p class="in-language">{line}</p>\n<p>text</p>'


def test_a_built_page_links_to_pages_that_exist(site: Path) -> None:
    for language, name in PAGES:
        page = page_of(site, language, name)
        links = re.findall(r'href="(\.\./\.\./[^"#]+)(?:#([^"]+))?"', page.read_text("utf-8"))
        assert links
        for target, label in links:
            # Two folders up from its site is the English one.
            file = site / os.path.normpath(Path(name).parent / target.removeprefix("../"))
            assert file.is_file(), target
            assert not label or f'id="{label}"' in file.read_text("utf-8"), label
        assert json.loads(re.findall(r"attnbookWords = (.*);", script_of(page))[0])


def script_of(page: Path) -> str:
    return next(page.parents[1].glob("_static/translated.js")).read_text("utf-8")
