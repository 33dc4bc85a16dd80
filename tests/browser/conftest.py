"""A browser on built pages, with everything off this machine blocked: Chromium, or what
ATTNBOOK_BROWSER names, `firefox` or `webkit`.

`page_factory` opens a page by http or as a file, light or dark, wide or narrow, and checks when
the test ends that the page asked for nothing off the site, logged no error and missed no file.
"""

import functools
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse

import nbformat
import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    Response,
    Route,
    expect,
    sync_playwright,
)

from tests.browser.widget_pages import settle
from tests.helpers import firefox
from tests.helpers.minibook import build_book, notebook_of, write_mini_book
from tools import chromium as chromium_tool
from tools import firefox as firefox_tool

NAME = os.environ.get("ATTNBOOK_BROWSER", "chromium")
# What a page may do that a reader would be asked about.
ALLOWED = {"chromium": ["clipboard-read", "clipboard-write"], "webkit": ["clipboard-read"]}
PATIENCE = 60_000  # ms: no test asserts a time, and others may be running
expect.set_options(timeout=PATIENCE)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# As in Firefox before 119: what a reader hears of an element stands in its attributes alone.
NO_REFLECTION = """for (const name of Object.keys(Element.prototype))
  if (name.startsWith("aria") || name === "role") delete Element.prototype[name];"""

# As on a machine that draws seldom: a test that reads before it is drawn fails here each time.
SLOW = int(os.environ.get("ATTNBOOK_SLOW", "0"))  # ms from the wish to draw to the drawing
# As on a machine whose tests come late: one that must see what passes by fails here each time.
LATE = int(os.environ.get("ATTNBOOK_LATE", "0"))  # ms before each thing that a test asks of a page
# As on a machine with much to do: a test that does not wait for a widget's model fails here.
BUSY = int(os.environ.get("ATTNBOOK_BUSY", "0"))  # ms before a worker's answer, and a fetched file
SELDOM = """{
  const draw = requestAnimationFrame, forget = cancelAnimationFrame, later = setTimeout;
  const waiting = new Map();
  let last = 0;
  requestAnimationFrame = (f) => {
    const n = ++last, now = (time) => waiting.delete(n) && f(time);
    waiting.set(n, 0);
    later(() => waiting.has(n) && waiting.set(n, draw(now)), %d);
    return n;
  };
  cancelAnimationFrame = (n) => (forget(waiting.get(n)), waiting.delete(n));
}"""
ANSWERED_LATE = """(() => {
  const wait = () => new Promise((done) => setTimeout(done, %d));
  globalThis.Worker = class extends Worker {
    set onmessage(hear) { super.onmessage = (said) => wait().then(() => hear(said)); }
  };
  const get = fetch;
  globalThis.fetch = (...wanted) => wait().then(() => get(...wanted));
})()"""


DOWNLOAD = "Playwright hears of no download of an ordinary Firefox"
# What Chromium alone can be asked. Every other test that takes a browser runs in each.
CHROMIUMS = {
    "test_the_page_stays_free_while_it_trains": "the work of a page's thread is counted by "
    "Chromium's own protocol",
    "test_a_widget_looks_the_same_beside_all_others": "Chromium alone lists of a computed style "
    "what the test compares",
    "test_what_a_widget_draws_changes_no_style_elsewhere": "Chromium alone counts elements",
    "test_each_chapter_is_light": "the budget is what Chromium fetches",
    "test_the_ledger_keeps_what_changed_and_the_bet": DOWNLOAD,
    "test_runs_go_into_a_link_and_a_file": DOWNLOAD,
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In another browser than Chromium: what takes a browser, and is not Chromium's alone."""
    if NAME == "chromium":
        return
    for item in items:
        if why := CHROMIUMS.get(getattr(item, "originalname", item.name)):
            item.add_marker(pytest.mark.skip(reason=why))
    others = [item for item in items if "browser" not in getattr(item, "fixturenames", ())]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        if NAME == "firefox" and (path := firefox_tool.ensure()):
            with firefox.launch(playwright, path, tmp_path_factory.mktemp("firefox")) as ordinary:
                yield ordinary
            return
        if NAME == "chromium":
            path = chromium_tool.ensure()
            started = playwright.chromium.launch(executable_path=path, args=FLAGS, slow_mo=LATE)
        elif NAME == "firefox":
            started = playwright.firefox.launch(firefox_user_prefs=firefox.PREFERENCES)
        else:
            started = playwright.webkit.launch()
        if BUSY:
            answer_late(started)
        yield started
        started.close()


def answer_late(browser: Browser) -> None:
    """Every page that the browser opens hears late of its workers and of what it fetches."""

    def late(opened: Callable[..., Any]) -> Callable[..., Any]:
        def with_delay(**given: Any) -> Any:
            there = opened(**given)
            there.add_init_script(ANSWERED_LATE % BUSY)
            if isinstance(there, Page):  # which shows an empty page already
                there.evaluate(ANSWERED_LATE % BUSY)
            return there

        return with_delay

    browser.new_page = late(browser.new_page)
    browser.new_context = late(browser.new_context)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[Path], str]]:
    """Serve a folder on localhost; gives its address."""
    servers: dict[Path, http.server.ThreadingHTTPServer] = {}

    def start(folder: Path) -> str:
        if folder not in servers:
            handler = functools.partial(QuietHandler, directory=str(folder))
            servers[folder] = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
            threading.Thread(target=servers[folder].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[folder].server_port}"

    yield start
    for server in servers.values():
        server.shutdown()
        server.server_close()


@dataclass
class Faults:
    """What pages did that they must not; a test that provokes one clears it.

    An error with one of the texts `pardoned` is none of ours.
    """

    pardoned: tuple[str, ...] = ()
    off_site: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def clear(self) -> None:
        for kind in (self.off_site, self.errors, self.missing):
            kind.clear()

    def watch(self, page: Page) -> None:
        def error(text: str) -> None:
            if not any(pardoned in text for pardoned in self.pardoned):
                self.errors.append(f"{page.url}: {text}")

        def console(message: ConsoleMessage) -> None:
            if message.type == "error":
                error(message.text)

        def response(answer: Response) -> None:
            if answer.status >= 400:
                self.missing.append(f"{page.url}: {answer.url}")

        def failed(request: Request) -> None:
            if request.url.startswith("file:"):
                self.missing.append(f"{page.url}: {request.url}")

        page.on("console", console)
        page.on("pageerror", lambda problem: error(str(problem)))
        page.on("response", response)
        page.on("requestfailed", failed)

    def route(self, route: Route) -> None:
        url = urlparse(route.request.url)
        if url.scheme in ("file", "data", "blob") or url.hostname in ("127.0.0.1", "localhost"):
            route.continue_()
        else:
            self.off_site.append(f"{route.request.frame.url}: {route.request.url}")
            route.abort()


@pytest.fixture
def faults() -> Iterator[Faults]:
    found = Faults()
    yield found
    assert not found.off_site, f"requests off the site: {found.off_site}"
    assert not found.errors, f"errors on the console: {found.errors}"
    assert not found.missing, f"missing files: {found.missing}"


def site_of(path: Path) -> Path:
    """The site that a built page belongs to: the folder that holds its search index."""
    for folder in path.parents:
        if (folder / "searchindex.js").is_file():
            return folder
    raise ValueError(f"{path} is no page of a built site")


@pytest.fixture
def page_factory(
    browser: Browser, serve: Callable[[Path], str], faults: Faults
) -> Iterator[Callable[..., Page]]:
    """Open a built page: `page_factory(path, scheme="file", theme="dark", width=390)`.

    The path may end in a fragment or a query: `f"{path}#w.map=..."`. `begun=False`: as it is
    before the reader does anything.
    """
    contexts = []

    def open_page(
        url_or_path: str | Path,
        *,
        scheme: Literal["http", "file"] = "http",
        theme: Literal["light", "dark"] = "light",
        width: int = 1280,
        javascript: bool = True,
        begun: bool = True,
    ) -> Page:
        context = browser.new_context(
            color_scheme=theme,
            viewport={"width": width, "height": 900 if width > 600 else 844},
            has_touch=width < 600,
            java_script_enabled=javascript,
            service_workers="block",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.grant_permissions(ALLOWED.get(NAME, []))
        context.route("**/*", faults.route)
        context.add_init_script(NO_REFLECTION)
        if SLOW:
            context.add_init_script(SELDOM % SLOW)
        page = context.new_page()
        faults.watch(page)
        page.goto(address(str(url_or_path), scheme), wait_until="load")
        if javascript and begun:
            page.evaluate("dispatchEvent(new Event('scroll'))")  # heavy views come, too
            page.wait_for_function("!document.querySelector('.widget-view:not([data-ready])')")
            settle(page, 2)  # widgets are drawn again when they hear of their size
        return page

    def address(text: str, scheme: str) -> str:
        if text.startswith("http://"):
            return text
        cut = min((text.find(mark) for mark in "?#" if mark in text), default=len(text))
        path, rest = Path(text[:cut]).resolve(), text[cut:]
        if scheme == "file":
            return path.as_uri() + rest
        folder = site_of(path)
        return f"{serve(folder)}/{path.relative_to(folder).as_posix()}{rest}"

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def open_page(page_factory: Callable[..., Page], path: Path) -> Callable[..., Page]:
    """Open the page that a module builds as `path`: `open_page("#w.map=...", width=390)`."""
    return lambda fragment="", **where: page_factory(f"{path}{fragment}", **where)


@pytest.fixture(scope="session")
def widget_page(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Store widgets in a notebook and build it, with these settings; gives the page. Call it once a
    module."""

    def build(widgets: list[Any], **settings: Any) -> Path:
        folder = tmp_path_factory.mktemp("mini")
        notebook = nbformat.writes(notebook_of(widgets))
        pages = {"index.md": "# Mini book\n", "widgets.ipynb": notebook}
        write_mini_book(folder, pages, attnbook_cut_fonts=False, **settings)
        done = build_book(folder, folder)
        assert done.returncode == 0, done.stdout[-5000:]
        return folder / "_build/html/widgets.html"

    return build
