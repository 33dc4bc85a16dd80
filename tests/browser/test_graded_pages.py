"""The grader's pages in a browser: nothing runs, nothing is asked for, a phone can show them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from attnbook.teach.exhibit import Exhibit
from attnbook.teach.overview import overview
from attnbook.teach.report import Graded, Mark, feedback
from attnbook.teach.submission import Cell, reference
from tests.browser.conftest import Faults
from tests.helpers.assignments import needed

KNOWN = reference(needed() / "a1.ipynb")
HIT = "document.title = 'hit'; fetch('https://example.org')"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="900"'
    f' onload="{HIT}"><script>{HIT}</script><image href="https://example.org/x.png"/>'
    '<rect width="2000" height="900" fill="red"/></svg>'
)
EVIL = f'<script>{HIT}</script><img src=x onerror="{HIT}"></pre></table></details><h1>'
WIDE = "x" * 3000


def outputs() -> list[dict]:
    """What a notebook stores below a cell, as hostile and as wide as it can be."""
    html = f"{EVIL}<table onclick='{HIT}'><tr><td style='width: 3000px'>{WIDE}</table>"
    return [
        {"data": {"image/svg+xml": SVG}},
        {"data": {"text/html": html}},
        {"data": {"text/plain": EVIL + WIDE}},
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a class, and of one of its students."""
    folder = tmp_path_factory.mktemp("graded")
    cells = [Cell(n, "", n == 1, EVIL + WIDE, outputs()) for n in range(3)]
    marks = [Mark(task.name, None, task.points, EVIL) for task in KNOWN.tasks]
    marks[1].points = 0.0
    shown = {task.name: Exhibit(EVIL).show(cells) for task in KNOWN.tasks}
    graded = Graded("ada", marks, "", [], 0.0, note=EVIL + WIDE, shown=shown)
    others = [Graded(f"{WIDE[:90]}{n} {EVIL}", marks, "", [], 0.0) for n in range(3)]
    (folder / "a1").mkdir()
    (folder / "a1" / "ada.html").write_text(feedback(KNOWN, graded), "utf-8")
    page = overview([graded, *others], KNOWN, ("files",), [EVIL])
    (folder / "a1.html").write_text(page, "utf-8")
    return folder


@pytest.fixture(params=[("light", 390), ("dark", 390), ("light", 1280)], ids=str)
def tab(browser: Browser, faults: Faults, request: pytest.FixtureRequest) -> Iterator[Page]:
    theme, width = request.param
    context = browser.new_context(color_scheme=theme, viewport={"width": width, "height": 844})
    context.route("**/*", faults.route)
    page = context.new_page()
    faults.watch(page)
    yield page
    context.close()


def test_a_page_runs_nothing_and_fits(tab: Page, folder: Path):
    for path in ("a1.html", "a1/ada.html"):
        tab.goto((folder / path).as_uri())
        title = tab.title()
        for details in tab.locator("details:not([open]) > summary").all():
            details.click()
        for cell in tab.locator("td").all()[:50]:
            cell.click()
        assert tab.title() == title != "hit"
        wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
        assert not tab.locator("script, iframe, h1 ~ h1, [onclick], [onerror], [style]").count()
        assert tab.locator("style").count() == 1


def test_pictures_are_seen(tab: Page, folder: Path):
    tab.goto((folder / "a1/ada.html").as_uri())
    pictures = tab.locator("img")
    assert pictures.count() == 3 * len(KNOWN.tasks)
    assert all(tab.evaluate("[...document.images].map(i => i.naturalWidth === 2000)"))


def test_a_page_follows_the_readers_theme(tab: Page, folder: Path):
    tab.goto((folder / "a1.html").as_uri())
    asked = "matchMedia('(prefers-color-scheme: dark)').matches"
    quiet = tab.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--quiet')")
    assert quiet == ("#aaa" if tab.evaluate(asked) else "#666")


def test_the_class_leads_to_its_students(tab: Page, folder: Path):
    tab.goto((folder / "a1.html").as_uri())
    tab.get_by_role("link", name="ada").first.click()
    assert tab.url == (folder / "a1/ada.html").as_uri()
    assert tab.locator("h1").inner_text() == "a1: ada"
