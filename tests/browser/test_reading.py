"""Reading: arrow keys turn pages, the search finds hyphened words, paper shows all code."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

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
