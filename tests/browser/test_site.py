"""Every built page: nothing off the site, no error, readable by everyone, scripts or none."""

from collections import defaultdict
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page

from tests.minibook import ROOT

AXE = ROOT / "node_modules/axe-core/axe.min.js"
MATH_LEFT = "[...document.querySelectorAll('.math')].filter(e => !e.querySelector('.katex')).length"
NO_ALT = r"""[...document.querySelectorAll("img")]
    .filter((img) => !img.alt.trim() || /^\S+\.(png|svg|jpe?g|webp)$/i.test(img.alt.trim()))
    .map((img) => img.outerHTML)"""
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
    .filter((found) => ["serious", "critical"].includes(found.impact))
    .map((found) => found.id + ": " + found.nodes.map((node) => node.html).join(" | "))"""
UNSAID = """(text) => {
    const said = (sheet) => [...sheet.cssRules].map((rule) => rule.selectorText ?? rule.name);
    const all = new Set(said(document.querySelector("link[rel=stylesheet]").sheet));
    const old = new CSSStyleSheet();
    old.replaceSync(text.replace(/@import[^;]*;/g, ""));
    return said(old).filter((rule) => rule && !all.has(rule));
}"""
UNFOLD = """document.querySelectorAll("details").forEach((e) => (e.open = true));
    document.querySelectorAll(".toggle-hidden")
        .forEach((e) => e.classList.remove("toggle-hidden"))"""


def pages(site: Path) -> list[Path]:
    """All pages but the redirect at the root."""
    found = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]
    found.remove(site / "index.html")
    assert len(found) > 5
    return found


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_every_page(
    site: Path, page_factory: Callable[..., Page], scheme: str, theme: str, width: int
) -> None:
    """`page_factory` itself checks requests, console and missing files."""
    found: dict[str, Any] = defaultdict(list)
    for path in pages(site):
        page = page_factory(path, scheme=scheme, theme=theme, width=width)
        name = path.relative_to(site).as_posix()
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate("typeof MathJax") == "undefined"
        found[f"{name}: formulas not set"] += [True] * page.evaluate(MATH_LEFT)
        found[f"{name}: pictures without alternative text"] += page.evaluate(NO_ALT)
        beyond = page.evaluate("document.documentElement.scrollWidth") - width
        found[f"{name}: pixels too wide"] += [beyond] if beyond > 0 else []
        if scheme == "http":  # the content is the same as a file
            page.evaluate(UNFOLD)
            page.wait_for_timeout(500)  # the theme waits before it looks at new widths
            page.add_script_tag(path=AXE)
            found[f"{name}: accessibility"] += page.evaluate(SERIOUS)
        page.context.close()
    assert not {what: faults for what, faults in found.items() if faults}


def test_one_sheet_says_what_all_said(site: Path, page_factory: Callable[..., Page]) -> None:
    page = page_factory(site / "book/index.html")
    assert page.locator("link[rel=stylesheet]").count() == 1
    for sheet in (site / "_static").rglob("*.css"):
        assert not page.evaluate(UNSAID, sheet.read_text("utf8")), sheet.name
    fonts = page.evaluate("[...document.fonts].filter((face) => face.status == 'loaded').length")
    assert fonts >= 2  # its addresses lead to files


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_root_leads_to_the_first_page(
    site: Path, page_factory: Callable[..., Page], scheme: str
) -> None:
    page = page_factory(site / "book/index.html", scheme=scheme)
    root = page.url.replace("book/index.html", "index.html")
    page.goto(root, wait_until="commit")
    page.wait_for_url("**/book/index.html")
    assert page.locator("article h1").inner_text().startswith("Worth Some Attention")


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_a_word(site: Path, page_factory: Callable[..., Page], scheme: str) -> None:
    page = page_factory(site / "book/index.html", scheme=scheme)
    page.locator(".search-button-field").click()
    page.locator("#pst-search-dialog input").fill("perplexity")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=perplexity")
    hit = page.locator("#search-results li a", has_text="Glossary")
    hit.first.wait_for()
    hit.first.click()
    page.wait_for_url("**/book/glossary.html*")
    assert page.locator("dt", has_text="perplexity").is_visible()


def test_colours_can_be_chosen(site: Path, page_factory: Callable[..., Page]) -> None:
    page = page_factory(site / "book/index.html", theme="light")
    seen = set()
    for _ in range(3):  # light, dark, the system's
        page.locator(".theme-switch-button").first.click()
        seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_without_javascript(site: Path, page_factory: Callable[..., Page], theme: str) -> None:
    """Text, formulas and a picture of each widget; colours that can be read."""
    views = 0
    for path in pages(site):
        if path.name in ("search.html", "genindex.html"):
            continue
        page = page_factory(path, javascript=False, theme=theme)
        assert len(page.locator("article").inner_text()) > 100
        assert page.locator("html").get_attribute("data-theme") == "light"
        for view in page.locator(".widget-view").all():
            picture = view.locator("noscript img")
            picture.scroll_into_view_if_needed()
            box = picture.bounding_box()
            assert box and box["width"] > 100 and box["height"] > 50
            assert len(picture.get_attribute("alt") or "") > 20
            views += 1
        page.context.close()
    assert views > 0


class Anchors(HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values.get("id", ""), values.get("name", "")}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


def test_no_dead_links(site: Path) -> None:
    read = {page: Anchors(page.read_text(encoding="utf-8")) for page in pages(site)}
    dead = []
    for page, anchors in read.items():
        for link in anchors.links:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (page.parent / unquote(url.path)).resolve() if url.path else page
            if target in read:
                alive = unquote(url.fragment) in {"", *read[target].ids}
            else:
                alive = target.is_file()
            if not alive:
                dead.append(f"{page.name}: {link}")
    assert not dead
