"""Chromium and a server on localhost, for the benchmarks that look at pages."""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tools.chromium import ensure


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def serve(folder: Path, handler: Callable[..., Any] = QuietHandler) -> Iterator[str]:
    """Serve a folder on localhost; yields its address."""
    handler = functools.partial(handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@contextmanager
def chromium() -> Iterator[Browser]:
    path = ensure(whole=True)  # as readers have it
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


def first_answer(browser: Browser, address: str, script: str, told: str = "answered") -> Any:
    """Milliseconds from navigation to what a script notes as `answered`, with an empty cache.

    Args:
        browser, address: where the page is opened.
        script: runs before the page's own.
        told: what is returned instead, an expression of what the script notes.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(script)
    page.goto(address)
    page.wait_for_function("window.answered")
    noted = page.evaluate(told)
    context.close()
    return noted
