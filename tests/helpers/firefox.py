"""An ordinary Firefox, driven by Playwright over WebDriver BiDi, and what Playwright cannot yet say
in that protocol: colours, motion, print, no scripts, a finger."""

import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import websocket
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    Playwright,
)

PREFERENCES: dict[str, str | float | bool] = {
    "dom.events.testing.asyncClipboard": True,  # a test may read what was copied
    "apz.fling_min_velocity_threshold": "1000",  # what a finger has moved stands when it is lifted
}
ACTS = "click dblclick fill focus hover press press_sequentially select_option set_checked".split()
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
# Playwright's `fill` cannot select what stands in a number's field there.
RETYPED = """(node, text) => {
  node.focus();
  node.select();
  document.execCommand(text ? "insertText" : "delete", false, text);
}"""
# In Firefox's own process, where its developer tools do the same.
PAGE = """
  const at = "chrome://remote/content/shared/NavigableManager.sys.mjs";
  const { NavigableManager } = ChromeUtils.importESModule(at);
  const page = NavigableManager.getBrowsingContextById(ID).top;
"""
OVERRIDE = "(() => {" + PAGE + "Object.assign(page, VALUES); })()"
# A finger meets the window alone, not what of a page is outside.
LARGE = "(() => {" + PAGE + "page.topChromeWindow.resizeTo(1900, 2100); })()"
# As the screen reports it, so that the page may scroll under the finger.
FINGER = (
    "(async () => {"
    + PAGE
    + """
  const window = page.topChromeWindow, utils = window.windowUtils;
  const place = page.embedderElement.getBoundingClientRect();
  const touch = (kind, [x, y]) => new Promise((done) => {
    const spot = [window.mozInnerScreenX + place.x + x, window.mozInnerScreenY + place.y + y];
    const pixels = spot.map((length) => Math.round(length * window.devicePixelRatio));
    utils.sendNativeTouchPoint(0, kind, ...pixels, 1, 90, done);
  });
  const frame = () => new Promise((done) =>
    window.requestAnimationFrame(() => window.setTimeout(done)));
  for (let n = 0; n < 3; n++) await frame(); // until the screen is where the page has scrolled to
  for (const point of POINTS) {
    await touch(utils.TOUCH_CONTACT, point);
    await frame();
  }
  await touch(utils.TOUCH_REMOVE, POINTS.at(-1));
  await frame();
})()"""
)


class Session:
    """What tests say to Firefox beside Playwright, and which of its pages is which."""

    def __init__(self, port: int) -> None:
        self.socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}/tests", suppress_origin=True, timeout=60
        )
        self.numbers = itertools.count(1)
        self.options: WeakKeyDictionary[BrowserContext, dict[str, Any]] = WeakKeyDictionary()
        self.ids: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        self.front: Page | None = None

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        answer = json.loads(self.socket.recv())
        assert answer["type"] == "success" and answer["id"] == number, answer
        return answer["result"]

    def contexts(self, scope: str = "content") -> list[str]:
        tree = self.ask("browsingContext.getTree", maxDepth=0, **{"moz:scope": scope})
        return [each["context"] for each in tree["contexts"]]

    def run(self, script: str, page: Page, **values: Any) -> None:
        """Runs a script in Firefox's own process, with these values in place of their names."""
        for name, value in {"ID": self.ids[page], **values}.items():
            script = script.replace(name, json.dumps(value))
        where = {"context": self.contexts("chrome")[0]}
        done = self.ask("script.evaluate", expression=script, target=where, awaitPromise=True)
        assert done["type"] == "success", done

    def override(self, page: Page, **values: Any) -> None:
        """Sets properties of a page's `BrowsingContext`."""
        self.run(OVERRIDE, page, VALUES=values)

    def media(
        self,
        page: Page,
        media: str | None = None,
        color_scheme: str | None = None,
        reduced_motion: str | None = None,
    ) -> None:
        given = {
            "mediumOverride": media,
            "prefersColorSchemeOverride": color_scheme,
            "prefersReducedMotionOverride": reduced_motion,
        }
        self.override(page, **{name: value for name, value in given.items() if value is not None})

    def bring_to_front(self, page: Page) -> None:
        """In Firefox one window alone hears keys and has a focus."""
        if self.front is not page:
            page.bring_to_front()
            self.front = page

    def acted(self, page: Page, act: Callable[[], Any]) -> Any:
        """Acts on a page, and waits until it has drawn what came of it, as Chromium does."""
        self.bring_to_front(page)
        given = act()
        with contextlib.suppress(Error):  # the page may be another one now
            page.evaluate(DRAWN)
        return given

    def touch(self, page: Page, points: list[tuple[float, float]]) -> None:
        """A finger that goes down, moves from point to point, and goes up."""
        self.acted(page, lambda: self.run(FINGER, page, POINTS=points))


@dataclass
class Hands:
    """A page's keyboard or mouse."""

    session: Session
    page: Page
    tool: Any

    def move(self, x: float, y: float, **options: Any) -> None:
        """Firefox knows no place of a mouse outside the window: it stays at its edge."""
        size = self.page.viewport_size
        assert size
        x, y = (min(max(at, 0), size[side] - 1) for at, side in ((x, "width"), (y, "height")))
        self.session.acted(self.page, lambda: self.tool.move(x, y, **options))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        act = getattr(self.tool, name)
        return lambda *given, **options: self.session.acted(
            self.page, lambda: act(*given, **options)
        )


@dataclass
class Screen:
    """A page's touchscreen."""

    session: Session
    page: Page

    def tap(self, x: float, y: float) -> None:
        self.session.touch(self.page, [(x, y)])


SESSIONS: list[Session] = []  # the one of this process


def touch(page: Page, points: list[tuple[float, float]]) -> None:
    if not SESSIONS:
        pytest.skip("this browser takes no finger but a tap from Playwright")
    SESSIONS[0].touch(page, points)


@contextlib.contextmanager
def launch(playwright: Playwright, path: str, folder: Path) -> Iterator[Browser]:
    """Starts the Firefox at `path` behind the relay, whose files lie in `folder`."""
    port, script = folder / "port", folder / "firefox"
    relay = f'"{sys.executable}" -m tests.helpers.firefox_relay'
    script.write_text(f'#!/bin/sh\nexec {relay} "{port}" "{path}" "$@"\n')
    script.chmod(0o755)
    browser = playwright.firefox.launch(
        channel="moz-firefox",
        executable_path=script,
        args=["--remote-allow-system-access"],
        firefox_user_prefs=PREFERENCES,
        env={**os.environ, "MOZ_HEADLESS_WIDTH": "1920", "MOZ_HEADLESS_HEIGHT": "2160"},
    )
    SESSIONS.append(Session(int(port.read_text())))
    with pytest.MonkeyPatch.context() as patch:
        extend(patch, SESSIONS[0])
        yield browser
    SESSIONS.clear()
    browser.close()


def extend(patch: pytest.MonkeyPatch, session: Session) -> None:
    """Gives Playwright's methods their meaning where BiDi leaves them without."""
    context_of, page_of, page_in = Browser.new_context, Browser.new_page, BrowserContext.new_page

    def new_context(browser: Browser, **options: Any) -> BrowserContext:
        context = context_of(browser, **options)
        session.options[context] = options
        return context

    def opened(make: Callable[..., Page], *arguments: Any, **options: Any) -> Page:
        before = session.contexts()
        page = make(*arguments, **options)
        (session.ids[page],) = set(session.contexts()) - set(before)
        session.front = page
        options = session.options.get(page.context, options)
        if options.get("has_touch"):
            session.override(page, touchEventsOverride="enabled")
            session.run(LARGE, page)
        if options.get("java_script_enabled") is False:
            session.override(page, allowJavascript=False)
        session.media(page, None, options.get("color_scheme"), options.get("reduced_motion"))
        return page

    def drawn(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(target: Locator, *given: Any, **options: Any) -> Any:
            return session.acted(target.page, lambda: method(target, *given, **options))

        return wrapped

    def hands(of: Any) -> property:
        return property(lambda page: Hands(session, page, of.fget(page)))

    def fill(target: Locator, value: str, **options: Any) -> None:
        if target.get_attribute("type") != "number":
            return filled(target, value, **options)
        target.click(trial=True)
        session.acted(target.page, lambda: target.evaluate(RETYPED, value))

    def tap(target: Locator, **options: Any) -> None:
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box
        session.touch(target.page, [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)])

    patch.setattr(Browser, "new_context", new_context)
    patch.setattr(Browser, "new_page", lambda browser, **given: opened(page_of, browser, **given))
    patch.setattr(BrowserContext, "new_page", lambda context: opened(page_in, context))
    patch.setattr(Page, "emulate_media", lambda page, **given: session.media(page, **given))
    patch.setattr(Page, "touchscreen", property(lambda page: Screen(session, page)))
    for name in ("keyboard", "mouse"):
        patch.setattr(Page, name, hands(getattr(Page, name)))
    for name in ACTS:
        patch.setattr(Locator, name, drawn(getattr(Locator, name)))
    filled = Locator.fill
    patch.setattr(Locator, "fill", fill)
    patch.setattr(Locator, "tap", tap)
