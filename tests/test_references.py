"""Each entry of the bibliography is whole and cited, each source of a docstring is an entry, and
what the lectures name is cited in the chapters that use it (C54).

That an entry says what is printed on the paper, no test can see: it was compared by hand."""

import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pybtex.database import parse_file

from tests.helpers.pages import cited, prose
from tools.notebooks import BOOK, ROOT


class Paper(NamedTuple):
    kind: str
    fields: dict[str, str]
    authors: list[str]  # surnames


def papers(bibliography: Path) -> dict[str, Paper]:
    entries: dict[str, Any] = parse_file(str(bibliography)).entries
    return {
        key: Paper(
            entry.type,
            dict(entry.fields),
            [" ".join(map(str, p.rich_last_names)) for p in entry.persons["author"]],
        )
        for key, entry in entries.items()
    }


ENTRIES = papers(BOOK / "references.bib")
PAGES = prose()
TABLE = PAGES.pop("bibliography.md").partition("## What the lectures name")[2]
CODE = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for folder in (ROOT / "src", BOOK / "experiments", ROOT / "tools", ROOT / "benchmarks")
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.js")])
}

VENUE = {"article": "journal", "inproceedings": "booktitle"}
OTHERS = {"author", "title", "year", "pages", "doi", "url", "howpublished", "volume", "number"}
ARXIV = re.compile(r"https://arxiv\.org/abs/(\d\d)\d\d\.\d{4,5}")
ANTHOLOGY = re.compile(r"10\.18653/v1/(?:[A-Z](\d\d)-|20(\d\d)\.)")
NAME = r"[^\W\d_][\w’-]+"
SOURCE = re.compile(rf"({NAME})(?: (et al\.)| and ({NAME})),? \(?((?:19|20)\d\d)\b")
ALONE = re.compile(rf"({NAME}) ((?:19|20)\d\d)\b")
ROW = re.compile(r"^\| ([^|]+) \| (\{cite\}`[^`]+`) \| ([^|]+) \|$", re.M)


def plain(name: str) -> str:
    """Without accents, spaces and capitals: "Spärck Jones" is sparckjones."""
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(c for c in letters if c.isascii() and c.isalpha())


def last_word(name: str) -> str:
    return plain(name.split()[-1])


@pytest.mark.parametrize("key", ENTRIES)
def test_an_entry_is_whole(key):
    kind, fields, names = ENTRIES[key]
    year = int(fields["year"])
    assert names and fields["title"]
    assert set(fields) <= OTHERS | {VENUE.get(kind, "")}
    if kind == "misc":
        assert "howpublished" in fields or ARXIV.fullmatch(fields["url"])
    else:
        assert not re.fullmatch(r"[A-Z]+", fields[VENUE[kind]]), "the venue's name, not its letters"
        assert kind != "article" or "volume" in fields
    if "others" in names:
        assert names.index("others") == len(names) - 1 == 10, "all authors, or the first ten"
    assert re.fullmatch(rf"[a-z]+{year}[a-z]*", key)
    assert re.split(r"\d", key)[0] in (plain(names[0]), last_word(names[0]))
    for first, last in re.findall(r"(\d+)--(\d+)", fields.get("pages", "")):
        assert int(first) < int(last)
    if match := ARXIV.fullmatch(fields.get("url", "")):
        assert -1 <= year - 2000 - int(match[1]) <= 3, "printed years before or after arXiv"
    if match := ANTHOLOGY.match(fields.get("doi", "")):
        assert year == 2000 + int(match[1] or match[2])
    for link in ("url", "doi"):
        assert re.fullmatch(r"https://\S+|10\.\d{4,}/\S+", fields.get(link, "https://none"))


def test_no_entry_stands_twice_and_all_in_order():
    assert list(ENTRIES) == sorted(ENTRIES)
    for field in ("title", "doi", "url"):
        values = [
            paper.fields[field].casefold() for paper in ENTRIES.values() if field in paper.fields
        ]
        assert [value for value, n in Counter(values).items() if n > 1] == []


def sources(text: str) -> list[tuple[str, str, int | None, str]]:
    """Of each paper that is named: last word of the first surname, the second surname, how many
    authors (None: three or more), year. One author alone counts after "Source:" only."""
    text = re.sub(r"\s*\n[\s#/*]*", " ", text)
    found = [(a, b, None if et_al else 2, year) for a, et_al, b, year in SOURCE.findall(text)]
    for paragraph in re.findall(r"Source: .*?(?=\"\"\"|In other libraries|Args:|$)", text):
        paragraph = SOURCE.sub("", paragraph)
        found += [(name, "", 1, year) for name, year in ALONE.findall(paragraph)]
    return found


def entries_of(first: str, second: str, n: int | None, year: str) -> list[str]:
    keys = []
    for key, (_, fields, names) in ENTRIES.items():
        fits = n == len(names) if n else len(names) > 2
        fits &= n != 2 or last_word(names[-1]) == plain(second)
        if fits and fields["year"] == year and last_word(names[0]) == plain(first):
            keys.append(key)
    return keys


def test_sources_are_read_from_docstrings():
    assert sources('Source: Spärck Jones 1972; Ba et\n    al. 2016, equation 4. """') == [
        ("Ba", "", None, "2016"),
        ("Jones", "", 1, "1972"),
    ]
    assert sources("as Press and Wolf 2017 do, in May 2018") == [("Press", "Wolf", 2, "2017")]
    assert entries_of("Press", "Wolf", 2, "2017") == ["press2017"]
    assert entries_of("Press", "", None, "2017") == []
    assert entries_of("Su", "", None, "2021") == ["su2021"] != entries_of("Hsu", "", None, "2021")


@pytest.mark.parametrize("path", [path for path, text in CODE.items() if sources(text)])
def test_a_source_that_code_names_is_an_entry(path):
    assert [s for s in sources(CODE[path]) if not entries_of(*s)] == []


def test_pages_cite_by_key():
    bare = {name: [match[0] for match in SOURCE.finditer(text)] for name, text in PAGES.items()}
    assert {name: found for name, found in bare.items() if found} == {}


def test_no_entry_is_uncited():
    used = set().union(*map(cited, PAGES.values()))
    used |= {key for text in CODE.values() for s in sources(text) for key in entries_of(*s)}
    assert [key for key in ENTRIES if key not in used] == []


def named() -> list[tuple[str, str, str]]:
    """Of each row of the table: the idea, a key, the number of a chapter."""
    return [
        (idea, key, number)
        for idea, cites, chapters in ROW.findall(TABLE)
        for key in sorted(cited(cites))
        for number in re.findall(r"\[(\d+)\]", chapters)
    ]


def test_the_table_is_read_whole():
    lines = [line for line in TABLE.splitlines() if line.startswith("|")][2:]
    assert len(ROW.findall(TABLE)) == len(lines) > 35
    assert {n for _, _, n in named()} == {str(n) for n in range(1, 12)}


@pytest.mark.parametrize(("idea", "key", "number"), named())
def test_what_the_lectures_name_is_cited_where_it_is_used(idea, key, number):
    chapters = [
        name for name in PAGES if re.match(rf"{int(number):02d}_\w+\.ipynb", Path(name).name)
    ]
    assert len(chapters) == 1
    text = PAGES[chapters[0]].partition("\n## Sources")[0]
    assert key in cited(text), f"{key} ({idea}) is not cited in the text of chapter {number}"
