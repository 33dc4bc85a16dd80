"""The table of contents marks what was read and answered, out of what the browser keeps."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import Question, Quiz
from tests.browser.conftest import Faults
from tests.browser.widget_pages import HOSTILE, serious, until, widget
from tests.helpers.minibook import build_book, notebook_of, write_mini_book

ASKED = [
    Question(f"Is {word} the first?", ["yes", word], right, "Count \u2028 «again».")
    for right, word in enumerate((HOSTILE[0], "zwölf"))
]
LONG = "A paragraph of a page that is longer than a screen.\n\n" * 60
BLOCKED = """Object.defineProperty(window, "localStorage", {
    get() { throw new DOMException("blocked", "SecurityError"); } });"""
FULL = """Storage.prototype.setItem = () => {
    throw new DOMException("full", "QuotaExceededError"); };"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chapter with a quiz of two questions above, its evidence, and a page of no chapter."""
    folder = tmp_path_factory.mktemp("mini")
    chapter = notebook_of([Quiz(ASKED, name="check-01")])
    chapter.cells.append(nbformat.v4.new_markdown_cell(LONG))
    pages = {
        "index.md": "# Mini book\n",
        "01_first.ipynb": nbformat.writes(chapter),
        "01_first_evidence.md": f"# Evidence\n\n{LONG}",
        "notation.md": f"# Notation\n\n{LONG}",
    }
    write_mini_book(folder, pages, attnbook_cut_fonts=False)
    done = build_book(folder, folder)
    assert done.returncode == 0, done.stdout[-5000:]
    return folder / "_build/html"


def marks(page: Page) -> dict[str, str]:
    """What is said of each marked page: what one hears of its link, and the mark's title."""
    links = page.locator(".bd-links a:has(.read-mark)").all()
    titles = [link.locator(".read-mark").get_attribute("title") for link in links]
    return {str(link.text_content()): str(title) for link, title in zip(links, titles, strict=True)}


def line(page: Page) -> Locator:
    return page.locator(".read-kept")


def read(page: Page) -> None:
    """Scroll as a reader does, to the end, and again where the page grew meanwhile."""
    page.mouse.wheel(0, 400)
    page.wait_for_function("scrollY > 0")

    def at_end() -> bool:
        page.keyboard.press("End")
        return page.evaluate("scrollY + innerHeight >= document.documentElement.scrollHeight - 1")

    until(page, at_end)


def answer(page: Page, n: int) -> None:
    widget(page, 0).locator(".attn-choice").nth(n).click()


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_page_read_to_its_end_is_marked(
    page_factory: Callable[..., Page], book: Path, scheme: str
) -> None:
    page = page_factory(book / "01_first_evidence.html", scheme=scheme)
    page.mouse.wheel(0, 400)
    page.wait_for_function("scrollY > 0")
    expect(page.locator(".read-mark")).to_have_count(0)
    expect(line(page)).to_have_count(0)
    read(page)
    marked = {"Evidence✓ (read to the end)": "read to the end"}
    expect(line(page)).to_contain_text("1 of 2 pages read, 0 of 2 questions answered.")
    assert marks(page) == marked
    page.goto(page.url.replace("01_first_evidence", "notation"))
    read(page)  # of no chapter: not counted
    assert marks(page) == marked
    expect(line(page)).to_contain_text("1 of 2 pages read")


def test_questions_answered_are_counted_at_once(
    page_factory: Callable[..., Page], book: Path
) -> None:
    page = page_factory(book / "01_first.html", width=390)
    answer(page, 1)
    expect(page.locator(".read-mark")).to_have_attribute("title", "1 of 2 questions answered")
    widget(page, 0).get_by_role("button", name="Next question").click()
    answer(page, 1)
    expect(page.locator(".read-mark")).to_have_attribute("title", "2 of 2 questions answered")
    read(page)
    both = "read to the end, 2 of 2 questions answered"
    expect(page.locator(".read-mark")).to_have_attribute("title", both)
    page.goto(page.url.replace("01_first", "index"))
    assert page.locator(".read-mark").get_attribute("title") == both
    page.locator(".primary-toggle").first.click()
    expect(line(page)).to_be_visible()
    assert not serious(page)
    page.goto(page.url.replace("index", "01_first"))
    widget(page, 0).get_by_role("button", name="Reset").click()
    expect(page.locator(".read-mark")).to_have_attribute("title", "read to the end")


def test_another_tab_says_what_changed(page_factory: Callable[..., Page], book: Path) -> None:
    page = page_factory(book / "01_first.html")
    other = page.context.new_page()
    other.goto(page.url)
    answer(page, 0)
    expect(other.locator(".read-mark")).to_have_attribute("title", "1 of 2 questions answered")


def test_all_of_it_can_be_forgotten(page_factory: Callable[..., Page], book: Path) -> None:
    page = page_factory(book / "01_first.html")
    page.evaluate("localStorage.setItem('attnbook.laboratory', 'runs')")
    answer(page, 1)
    read(page)
    expect(line(page)).to_contain_text("1 of 2 pages read, 1 of 2 questions answered.")
    said = []

    def refuse(dialog: Any) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", refuse)
    page.get_by_role("button", name="Forget").click()
    assert said and line(page).count() == 1
    page.once("dialog", lambda dialog: dialog.accept())
    with page.expect_navigation():
        page.get_by_role("button", name="Forget").click()
    expect(widget(page, 0).locator(".attn-score")).to_contain_text("0 of 0 answered")
    expect(page.locator(".read-mark, .read-kept")).to_have_count(0)
    kept = page.evaluate("Object.keys(localStorage)")
    assert "attnbook.laboratory" in kept
    assert not [key for key in kept if key.startswith(("attnbook.read", "attnbook.quiz"))]


@pytest.mark.parametrize("kept", ["{", "null", "7", '{"a": 1}', "[1, null]", '["nowhere"]'])
def test_what_is_no_memory_is_nothing(
    page_factory: Callable[..., Page], book: Path, kept: str
) -> None:
    page = page_factory(book / "index.html")
    page.evaluate(
        """(kept) => { localStorage.setItem('attnbook.read', kept);
        localStorage.setItem('attnbook.quiz.check-01', kept); }""",
        kept,
    )
    page.goto(page.url.replace("index", "01_first"))
    expect(page.locator(".read-mark, .read-kept")).to_have_count(0)
    read(page)
    expect(page.locator(".read-mark")).to_have_attribute("title", "read to the end")


def test_answers_to_other_questions_do_not_count(
    page_factory: Callable[..., Page], book: Path
) -> None:
    page = page_factory(book / "01_first.html")
    answer(page, 0)
    key = "attnbook.quiz.check-01"
    memory = json.loads(page.evaluate("(key) => localStorage.getItem(key)", key))
    memory["content"] += 1
    page.evaluate("(pair) => localStorage.setItem(...pair)", [key, json.dumps(memory)])
    page.reload()
    expect(page.locator(".read-mark, .read-kept")).to_have_count(0)


@pytest.mark.parametrize("fault", [BLOCKED, FULL], ids=["blocked", "full"])
def test_a_browser_that_keeps_nothing_shows_the_page(
    page_factory: Callable[..., Page], book: Path, faults: Faults, fault: str
) -> None:
    page = page_factory(book / "index.html")
    page.add_init_script(fault)
    page.goto(page.url.replace("index", "01_first"))
    expect(widget(page, 0).locator(".attn-score")).to_be_visible()
    answer(page, 1)
    expect(widget(page, 0).locator(".attn-score")).to_contain_text("1 answered")
    read(page)
    page.locator(".theme-switch-button").first.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.locator(".search-button-field").click()
    expect(page.locator("#pst-search-dialog input")).to_be_visible()
    expect(page.locator(".read-mark, .read-kept")).to_have_count(0)
    assert not faults.errors
