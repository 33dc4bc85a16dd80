"""Reading: arrow keys turn pages, the search finds hyphened words, paper shows all code."""

import io
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from tests.helpers.minibook import whole_book


@pytest.fixture(scope="module")
def html() -> Path:
    return whole_book()


def test_arrow_keys_turn_pages(page_factory: Callable[..., Page], html: Path) -> None:
    page = page_factory(html / "book/notation.html")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/glossary.html")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/notation.html")
    page.keyboard.press("Shift+ArrowRight")
    page.locator(".prev-next-area a").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)  # time itself: in it, a page that turned would have come
    assert page.url.endswith("/notation.html")


def test_a_hyphened_word_is_found_as_one(page_factory: Callable[..., Page], html: Path) -> None:
    def found(query: str) -> set[str]:
        page = page_factory(f"{html / 'search.html'}?q={query}")
        expect(page.locator(".search-summary")).to_contain_text("found")
        links = page.locator("#search-results li > a").all()
        return {str(link.get_attribute("href")).split("#")[0].split("?")[0] for link in links}

    pages = found("min-p")
    assert "book/10_sampling.html" in pages
    spelt = {
        path.stem for path in (html / "book").rglob("*.html") if "min-p" in path.read_text("utf8")
    }
    assert {Path(page).stem for page in pages if page.startswith("book/")} <= spelt
    assert "book/11_prompting.html" in found("chain of thought")
    assert found("beam-search") and found("beam-search") == found("beam search")


def test_on_paper_no_code_is_clipped(page_factory: Callable[..., Page], html: Path) -> None:
    page = page_factory(html / "book/02_attention.html")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 900})  # A4 less its margins
    clipped = page.evaluate(
        "[...document.querySelectorAll('.bd-article .highlight pre')]"
        ".filter((pre) => pre.scrollWidth > pre.clientWidth + 1).map((pre) => pre.textContent)"
    )
    assert page.locator(".bd-article .highlight pre").count() > 10 and clipped == []


def text_of(pdf: bytes) -> tuple[str, float]:
    """The words of a PDF, packed, and which share of its pieces of text has a light colour."""
    words, light, now = [], [], [0.0]

    def look(operator: bytes, operands: Any, *_: Any) -> None:
        if operator in (b"rg", b"g"):
            now[0] = max(map(float, operands))
        elif operator in (b"Tj", b"TJ"):
            light.append(now[0] > 0.8)

    for sheet in PdfReader(io.BytesIO(pdf)).pages:
        words.append(sheet.extract_text(visitor_operand_before=look))
    return packed("".join(words)), sum(light) / len(light)


def packed(text: str) -> str:
    """A text without spaces, its ligatures as letters."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def shades(pdf: bytes) -> list[int]:
    """The mean lightness of each picture of pixels, 0 to 255."""
    pictures = [each for sheet in PdfReader(io.BytesIO(pdf)).pages for each in sheet.images]
    white = [Image.new("RGBA", each.image.size, "white") for each in pictures if each.image]
    for under, each in zip(white, pictures, strict=True):
        assert each.image
        under.alpha_composite(each.image.convert("RGBA"))
    return [int(str(each.convert("L").resize((1, 1)).getpixel((0, 0)))) for each in white]


def test_a_dark_page_prints_light_and_whole(page_factory: Callable[..., Page], html: Path) -> None:
    page = page_factory(html / "book/02_attention.html", theme="dark")
    lines = page.locator(".bd-article .cell > .cell_input pre > .line").all_inner_texts()
    page.evaluate("""addEventListener("beforeprint", () => {
        globalThis.onPaper = document.documentElement.dataset.theme; })""")
    pdf = page.pdf(format="A4")
    text, light = text_of(pdf)
    assert page.evaluate("onPaper") == "light"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    lost = [line for line in lines if packed(line) not in text]
    assert len(lines) > 50 and lost == []
    assert "Showthe" not in text and "Clickto" not in text  # what one presses is not on paper
    assert light < 0.01  # the darkest cell of a map has light letters
    for widget in page.locator(".attn-title").all_inner_texts():
        assert packed(widget) in text, widget
    maps = shades(pdf)
    assert len(maps) > 1 and min(maps) > 128, maps  # by night they are dark
