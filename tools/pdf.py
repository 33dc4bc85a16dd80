"""`make pdf`: the whole book as one file, _build/book.pdf, printed from the built site by Chromium.

Each page is printed by itself, in the order of the table of contents: widgets as they are, walks
with all their steps, without folded code, and with sheet numbers that continue those of the page
before. Then all are joined, with an outline, and links between pages become links in the file.
"""

import argparse
import io
import pathlib
import sys
from collections.abc import Iterator
from urllib.parse import unquote

import yaml
from playwright.sync_api import Page, sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NullObject

from tools import chromium
from tools.notebooks import ROOT

HTML = ROOT / "_build" / "html"
STYLE = """
@page { size: A4; margin: 18mm 15mm 20mm; @bottom-center { content: counter(page); } }
html { counter-reset: page %d; }
.bd-header-article, .prev-next-footer, .bd-sidebar-secondary, .attn-bar, #jb-print-toc
{ display: none !important; }
"""
DRAWN = """() => [...document.querySelectorAll("[data-widget]")]
  .every((host) => "ready" in host.dataset || host.querySelector(".widget-failed"))"""


def contents(toc: dict) -> list[str]:
    """The pages of a table of contents, in order."""

    def below(entry: dict) -> Iterator[str]:
        yield from (entry[key] for key in ("root", "file") if key in entry)
        for key in ("parts", "chapters", "sections"):
            for each in entry.get(key, ()):
                yield from below(each)

    return list(below(toc))


def printed(page: Page, address: str, before: int) -> bytes:
    """A page as PDF, whose first sheet has the number `before` + 1."""
    page.goto(address, wait_until="load")
    page.evaluate("dispatchEvent(new Event('scroll'))")  # heavy views wait until a reader scrolls
    page.wait_for_function(DRAWN, timeout=120_000)
    page.evaluate("document.querySelectorAll('img').forEach((img) => { img.loading = 'eager'; })")
    page.add_style_tag(content=STYLE % before)
    return page.pdf(prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


def joined(parts: dict[str, bytes], title: str) -> PdfWriter:
    """Join parts into one document, in order; the keys of `parts` are the pages' addresses."""
    writer, first, names = PdfWriter(), dict[str, int](), dict[str, dict[str, int]]()
    for address, part in parts.items():
        reader = PdfReader(io.BytesIO(part))
        first[address] = len(writer.pages)
        names[address] = places(reader, len(writer.pages))
        writer.append(reader, import_outline=True)
    for sheet in writer.pages:
        for note in sheet.get("/Annots", None) or ():
            lead(note.get_object(), writer, first, names)
    writer.add_metadata({"/Title": title})
    writer.compress_identical_objects()
    return writer


def places(reader: PdfReader, before: int) -> dict[str, int]:
    """The sheet of each named destination in a part, counted from the start of the book."""
    found = dict[str, int]()
    for name, place in reader.named_destinations.items():
        number = reader.get_destination_page_number(place)
        if number is not None and number >= 0:
            found[name.lstrip("/")] = before + number
    return found


def lead(
    note: DictionaryObject,
    writer: PdfWriter,
    first: dict[str, int],
    names: dict[str, dict[str, int]],
) -> None:
    """Make a link to a page of the book lead to the sheet of its destination, or its first one."""
    action = note.get("/A")
    uri = str(action.get_object().get("/URI", "")) if action else ""
    address, _, place = unquote(uri).partition("#")
    if address not in first:
        return
    sheet = writer.pages[names[address].get(place, first[address])]
    to = [sheet.indirect_reference, NameObject("/FitH"), FloatObject(float(sheet.mediabox.top))]
    note[NameObject("/A")] = DictionaryObject(
        {NameObject("/S"): NameObject("/GoTo"), NameObject("/D"): ArrayObject(to)}
    )
    assert not any(isinstance(part, NullObject) for part in to)


def make(html: pathlib.Path, pages: list[str], out: pathlib.Path, title: str) -> int:
    """Print pages of a built site into one file; returns how many sheets it has."""
    parts, sheets = dict[str, bytes](), 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.ensure(), args=["--no-sandbox", "--disable-gpu"]
        )
        for name in pages:
            context = browser.new_context(
                color_scheme="light", viewport={"width": 900, "height": 1200}
            )
            address = unquote((html / f"{name}.html").resolve().as_uri())
            parts[address] = printed(context.new_page(), address, sheets)
            more = len(PdfReader(io.BytesIO(parts[address])).pages)
            sheets += more
            print(f"{name}: {more} sheets", flush=True)
            context.close()
        browser.close()
    out.parent.mkdir(parents=True, exist_ok=True)
    joined(parts, title).write(out)
    return sheets


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.pdf", description=__doc__)
    parser.add_argument("chapter", nargs="?", help="as 05: only its pages")
    asked = parser.parse_args()
    toc, config = (
        yaml.safe_load((ROOT / name).read_text("utf-8")) for name in ("_toc.yml", "_config.yml")
    )
    pages = contents(toc)
    if asked.chapter:
        pages = [page for page in pages if page.startswith(f"book/{asked.chapter}_")]
    missing = [page for page in pages if not (HTML / f"{page}.html").is_file()]
    if missing or not pages:
        sys.exit(f"no page {', '.join(missing) or asked.chapter} in {HTML}: make book")
    out = ROOT / "_build" / ("book.pdf" if not asked.chapter else f"book-{asked.chapter}.pdf")
    sheets = make(HTML, pages, out, config["title"])
    print(f"{out}: {sheets} sheets, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
