"""Each entry of the bibliography is whole and cited, each source of a docstring is an entry, and
what the lectures name is cited in the chapters that use it (C54).

That an entry says what is printed on the paper, no test can see: it was compared by hand."""

import re
import unicodedata
from collections import Counter, defaultdict
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


def doubts(key: str, paper: Paper) -> list[str]:
    """What an entry lacks, or what in it contradicts the rest."""
    kind, fields, names = paper
    year, url, doi = int(fields["year"]), fields.get("url", ""), fields.get("doi", "")
    pages = re.findall(r"(\d+)--(\d+)", fields.get("pages", ""))
    arxiv, anthology = ARXIV.fullmatch(url), ANTHOLOGY.match(doi)
    first = re.split(r"\d", key)[0]
    holds = {
        "title and authors": names and fields.get("title"),
        "where it appeared": VENUE[kind] in fields
        if kind in VENUE
        else "howpublished" in fields or arxiv,
        "key of first author and year": re.fullmatch(rf"[a-z]+{year}[a-z]*", key)
        and first in (plain(names[0]), last_word(names[0])),
        "pages in order": all(int(a) < int(b) for a, b in pages),
        "arXiv's year": not arxiv or -1 <= year - 2000 - int(arxiv[1]) <= 3,
        "the anthology's year": not anthology or year == 2000 + int(anthology[1] or anthology[2]),
        "url": not url or re.fullmatch(r"https://\S+", url),
        "doi": not doi or re.fullmatch(r"10\.\d{4,}/\S+", doi),
    }
    return [name for name, held in holds.items() if not held]


def test_entries_are_whole():
    found = {key: doubts(key, paper) for key, paper in ENTRIES.items()}
    assert {key: names for key, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({"title": ""}, "title and authors"),
        ({"year": "2019"}, "key of first author and year"),
        ({"pages": "40--4"}, "pages in order"),
        ({"url": "https://arxiv.org/abs/1109.0473"}, "arXiv's year"),
        ({"doi": "10.18653/v1/N16-1001"}, "the anthology's year"),
        ({"url": "http://a b"}, "url"),
        ({"doi": "doi:10"}, "doi"),
    ],
)
def test_a_doubtful_entry_is_found(changes, doubt):
    kind, fields, names = ENTRIES["press2017"]
    assert doubt in doubts("press2017", Paper(kind, fields | changes, names))


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


def test_sources_that_code_names_are_entries():
    named = {path: sources(text) for path, text in CODE.items()}
    unknown = {path: [s for s in all_ if not entries_of(*s)] for path, all_ in named.items()}
    assert {path: all_ for path, all_ in unknown.items() if all_} == {}
    assert any(named.values())


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


def test_what_the_lectures_name_is_cited_where_it_is_used():
    chapters = defaultdict(set)  # the story's and the evidence's
    for name, text in PAGES.items():
        if re.match(r"\d\d_\w+\.ipynb", name):
            chapters[str(int(name[:2]))] |= cited(text.partition("\n## Sources")[0])
    assert [row for row in named() if row[1] not in chapters[row[2]]] == []
