"""Every built page: nothing off the site, no error, readable by everyone, scripts or none."""

import re
from collections.abc import Callable
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page

from benchmarks.pages import BUDGET, first_load
from tests.browser.conftest import Faults
from tests.browser.widget_pages import serious
from tests.helpers.repeats import repeats

LOOKS = [(theme, width) for theme in ("light", "dark") for width in (1280, 390)]
MATH_LEFT = "[...document.querySelectorAll('.math')].filter(e => !e.querySelector('.katex')).length"
NO_ALT = r"""[...document.querySelectorAll("img")]
    .filter((img) => !img.alt.trim() || /^\S+\.(png|svg|jpe?g|webp)$/i.test(img.alt.trim()))
    .map((img) => img.outerHTML)"""
CUT_OFF = """[...document.querySelectorAll(".prev-next-area a")]
    .filter((link) => link.scrollWidth > link.clientWidth).map((link) => link.textContent.trim())"""
# Charts that a phone shows with words under 11 pixels, that have a light ground of their own in the
# dark, or that are a picture of pixels, which has one form for both.
CHARTS = r"""() => [...document.querySelectorAll(".draw-chart")].flatMap((chart) => {
    const name = chart.getAttribute("aria-label").slice(0, 40), found = [];
    const scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
    for (const text of scale ? chart.querySelectorAll("text") : [])
        if (scale * parseFloat(getComputedStyle(text).fontSize) < 10.99)
            found.push(`${name}: small: ${text.textContent}`);
    const light = (colour) => {
        const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return Math.min(...pen.getImageData(0, 0, 1, 1).data) > 180;
    };
    if (document.documentElement.dataset.theme == "dark") {
        const { width, height } = chart.viewBox.baseVal;
        const plates = [...chart.querySelectorAll("path")].filter((path) => {
            const box = path.getBBox(), plain = path.getAttribute("d").length < 80;
            const large = box.width * box.height > width * height / 4;
            return plain && large && light(getComputedStyle(path).fill);
        });
        if (light(getComputedStyle(chart).backgroundColor) || plates.length)
            found.push(`${name}: a light ground`);
    }
    return found;
}).concat([...document.querySelectorAll("div.cell_output img")].map((e) => `pixels: ${e.alt}`))"""
CODE_CUT = """[...document.querySelectorAll("pre:has(> .line)")]
    .filter((pre) => pre.clientWidth && pre.scrollWidth > pre.clientWidth)
    .map((pre) => pre.textContent.slice(0, 60))"""
# Selectors of a sheet that the page's one sheet left out, though the page has what they select.
MISSED = r"""(text) => {
    const each = (rules) => [...rules].flatMap((rule) => [
        ...(rule.selectorText?.split(/,(?![^(]*\))/) ?? [rule.name]),
        ...(rule.selectorText ? [] : each(rule.cssRules ?? [])),
    ]).filter(Boolean).map((selector) => selector.trim());
    const all = new Set(each(document.querySelector("link[rel=stylesheet]").sheet.cssRules));
    const old = new CSSStyleSheet();
    old.replaceSync(text.replace(/@import[^;]*;/g, ""));
    const part = /::[\w-]+(\([^)]*\))?|:(before|after)\b/g;
    const passing = /:(hover|focus(-visible|-within)?|active)\b/g;
    const always = (selector) => selector.replace(part, "").replace(passing, ":not(none)") || "*";
    const here = (selector) => document.querySelector(always(selector));
    return each(old.cssRules).filter((selector) => !all.has(selector) && here(selector));
}"""
# What unfolds fades in, and the theme looks a little later which boxes scroll.
SETTLED = """() => {
    const boxes = document.querySelectorAll("pre, .output, .pst-scrollable-table-container");
    const reached = (e) => e.scrollWidth <= e.clientWidth || e.tabIndex >= 0;
    const still = document.getAnimations().every((each) => each.playState != "running");
    return still && [...boxes].every(reached);
}"""
UNFOLD = """document.querySelectorAll("details").forEach((e) => (e.open = true));
    document.querySelectorAll(".toggle-hidden")
        .forEach((e) => e.classList.remove("toggle-hidden"))"""


def pages(site: Path) -> list[Path]:
    """All pages but the redirect at the root and `404.html`, which stands alone."""
    found = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]
    found.remove(site / "index.html")
    found.remove(site / "404.html")
    assert len(found) > 5
    return found


def looks(site: Path) -> list[Path]:
    """The pages to look at: of the package's sources, which are alike, the longest."""
    sources = [page for page in pages(site) if "_modules" in page.parts]
    longest = max(sources, key=lambda page: page.stat().st_size)
    return [page for page in pages(site) if page not in sources or page == longest]


def sheets_of(site: Path) -> list[str]:
    """All style sheets of a site; its pages load one, of what they use."""
    return [sheet.read_text("utf8") for sheet in (site / "_static").rglob("*.css")]


def faults_of(
    page: Page, theme: str, width: int, *, readable: bool, sheets: list[str] | None = None
) -> dict[str, list[Any]]:
    """What is wrong with an open page; `readable`: ask axe, too; `sheets`: what the page's one
    sheet must not have left out.

    `page_factory` itself checks requests, console and missing files."""
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate("typeof MathJax") == "undefined"
    beyond = page.evaluate("document.documentElement.scrollWidth") - width
    found = {
        "formulas not set": [True] * page.evaluate(MATH_LEFT),
        "pictures without alternative text": page.evaluate(NO_ALT),
        "names of pages cut off": page.evaluate(CUT_OFF),
        "charts": page.evaluate(CHARTS),
        "code cut off": page.evaluate(CODE_CUT),
        "pixels too wide": [beyond] if beyond > 0 else [],
    }
    if readable:
        page.evaluate(UNFOLD)
        with suppress(Error):  # axe says what can not
            page.wait_for_function(SETTLED, timeout=10_000)
        found["accessibility"] = serious(page)
    if sheets:
        assert page.locator("link[rel=stylesheet]").count() == 1
        found["left out of the sheet"] = [
            left for one in sheets for left in page.evaluate(MISSED, one)
        ]
    where = f"{page.url} {theme} {width}"
    page.context.close()
    return {f"{where}: {what}": faults for what, faults in found.items() if faults}


@pytest.mark.parametrize("turn", repeats(*range(4)))
def test_every_page(site: Path, page_factory: Callable[..., Page], turn: int) -> None:
    """Each page in one look by http and in the opposite look as a file, where the content is the
    same; in four turns in every look."""
    found, sheets = {}, sheets_of(site)
    for n, path in enumerate(looks(site), turn):
        for scheme, look in (("http", LOOKS[n % 4]), ("file", LOOKS[3 - n % 4])):
            page = page_factory(path, scheme=scheme, theme=look[0], width=look[1])
            by_http = scheme == "http"
            asked = sheets if by_http else None
            found |= faults_of(page, *look, readable=by_http, sheets=asked)
    assert not found


def test_the_index_and_the_page_of_most_widgets_in_every_look(
    site: Path, page_factory: Callable[..., Page]
) -> None:
    found = {}
    richest = max(pages(site), key=lambda path: path.read_text("utf8").count("widget-view"))
    for path in (site / "book/index.html", richest):
        for theme, width in LOOKS:
            page = page_factory(path, theme=theme, width=width)
            found |= faults_of(page, theme, width, readable=True)
    assert not found


def test_the_one_sheet_is_small_and_finds_its_fonts(
    site: Path, page_factory: Callable[..., Page]
) -> None:
    page = page_factory(site / "book/index.html")
    (one,) = (site / "_static").glob("styles-*.css")
    assert one.stat().st_size < 0.5 * sum(map(len, sheets_of(site)))
    fonts = page.evaluate(
        """async () => [...await document.fonts.ready]
        .filter((face) => face.status == 'loaded').length"""
    )
    assert fonts >= 2  # its addresses lead to files


def test_each_chapter_is_light(
    site: Path, browser: Browser, serve: Callable[[Path], str], faults: Faults
) -> None:
    """What comes before the reader does anything is at most `BUDGET` kB, on each of its pages."""
    kb = {}
    for path in sorted(site.glob("book/[0-9]*.html")):
        context = browser.new_context(viewport={"width": 1280, "height": 1000})
        page = context.new_page()
        faults.watch(page)
        kb[path.stem] = first_load(page, serve(site), f"book/{path.name}").total() / 1000
        context.close()
    assert kb["05_heads"] > 100 and {page: n for page, n in kb.items() if n > BUDGET} == {}


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


@pytest.mark.parametrize("turn", repeats(*range(2)))
def test_without_javascript(site: Path, page_factory: Callable[..., Page], turn: int) -> None:
    """Text, formulas and a picture of each widget; colours that can be read."""
    views = 0
    for n, path in enumerate(looks(site), turn):
        if path.name in ("search.html", "genindex.html"):
            continue
        page = page_factory(path, javascript=False, theme=("light", "dark")[n % 2])
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


def test_charts_can_be_read_on_a_phone_and_in_the_dark(
    site: Path, page_factory: Callable[..., Page]
) -> None:
    """What `CHARTS` finds is nothing on a page of charts, and each of its faults when planted."""
    found = max(pages(site), key=lambda path: path.read_text("utf8").count("draw-chart' "))
    page = page_factory(found, theme="dark", width=390)
    assert page.locator(".draw-chart").count() > 3 and page.evaluate(CHARTS) == []
    plant = "document.querySelector('.draw-chart text').style.fontSize = '8px'"
    page.evaluate(f"{plant}; document.querySelector('.draw-chart').style.background = '#fff'")
    small, light = page.evaluate(CHARTS)
    assert "small: " in small and "a light ground" in light
    assert page.evaluate(CODE_CUT) == [] and page.locator("#pst-back-to-top").count() == 0


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
                state = re.match(r"w\.([\w-]+)=", url.fragment)  # of a widget on that page
                shown = state and f'"name":"{state[1]}"' in target.read_text(encoding="utf-8")
                alive = shown or unquote(url.fragment) in {"", *read[target].ids}
            else:
                alive = target.is_file()
            if not alive:
                dead.append(f"{page.name}: {link}")
    assert not dead
