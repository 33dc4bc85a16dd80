"""The book as one file: pages in order, numbered through, with an outline and links inside."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from pypdf.generic import DictionaryObject

from tools import pdf
from tools.notebooks import BOOK

SHEET = (BOOK / "_static/book.css").as_uri()  # which says how a page prints

FIRST = """<h1>One</h1><p><a href="two.html#there">there</a> <a href="two.html">two</a>
<a href="https://example.org/">out</a> <a href="#end">end</a>
<p style="break-before: page">second sheet<h2 id="end">End</h2>"""
SECOND = """<link rel="stylesheet" href="{sheet}"><article class="bd-article"><h1>Two</h1>
<pre>{long}</pre><p style="break-before: page">x<h2 id="there">Place</h2>
<a href="#there">here</a>"""


def target(note: DictionaryObject, reader: PdfReader) -> int | str:
    """The sheet that a link leads to, counted from 0, or the address outside."""
    action: Any = note.get("/A")
    if action and "/URI" in action.get_object():
        return str(action.get_object()["/URI"])
    place: Any = action.get_object()["/D"] if action else note["/Dest"]
    if isinstance(place, str):
        place = reader.named_destinations[place].dest_array
    sheets = [page.indirect_reference for page in reader.pages]
    return sheets.index(place[0])


def test_pages_become_one_file(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(FIRST)
    (tmp_path / "two.html").write_text(SECOND.format(long="word " * 400, sheet=SHEET))
    given = tmp_path, ["one", "two"], tmp_path / "out" / "book.pdf", "A book"
    with ThreadPoolExecutor(1) as apart:  # the tests' own browser has this thread's loop
        sheets = apart.submit(pdf.make, *given).result()
    reader = PdfReader(tmp_path / "out" / "book.pdf")
    assert sheets == len(reader.pages) == 4 and reader.metadata
    assert reader.metadata.title == "A book"
    text = [page.extract_text() for page in reader.pages]
    assert [str(n) in text[n - 1].split() for n in range(1, 5)] == [True] * 4
    assert text[2].count("word") == 400  # a long line is wrapped, not cut
    titles = [each.title for each in flat(reader.outline)]
    assert titles == ["One", "End", "Two", "Place"]
    first: Any = reader.pages[0]["/Annots"].get_object()
    last: Any = reader.pages[3]["/Annots"].get_object()
    notes = [note.get_object() for note in first]
    assert [target(note, reader) for note in notes] == [3, 2, "https://example.org/", 1]
    assert [target(note.get_object(), reader) for note in last] == [3]


def flat(outline: list) -> list:
    return [
        each for entry in outline for each in (flat(entry) if isinstance(entry, list) else [entry])
    ]


def test_the_book_is_printed_in_the_order_of_its_contents() -> None:
    toc = {
        "root": "a",
        "parts": [
            {"chapters": [{"file": "b", "sections": [{"file": "c"}]}, {"file": "d"}]},
            {"chapters": [{"file": "e"}]},
        ],
    }
    assert pdf.contents(toc) == ["a", "b", "c", "d", "e"]
