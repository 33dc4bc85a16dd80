"""The runtime that draws stored widgets without a kernel, on widgets made for the purpose."""

import json
from collections.abc import Callable
from pathlib import Path

import anywidget
import pytest
import traitlets
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Faults
from tests.browser.widget_pages import settle, until

HOSTILE = "</script><img src=x onerror=document.title='hacked'><!--"


class Counter(anywidget.AnyWidget):
    _esm = """
    function render({ model, el }) {
      const button = document.createElement("button"), label = document.createElement("b");
      const draw = () => (label.textContent =
        `${model.get("label")} ${model.get("count")} ${model.get("data").getUint16(0, true)}`);
      button.onclick = () => { model.set("count", model.get("count") + 1); model.save_changes(); };
      button.textContent = "more";
      model.on("change:count", draw);
      draw();
      el.append(button, label);
    }
    export default { render };
    """
    _css = ".counter { color: inherit; }"
    count = traitlets.Int(3).tag(sync=True)
    label = traitlets.Unicode(HOSTILE).tag(sync=True)
    data = traitlets.Bytes(b"\x07\x01").tag(sync=True)
    name = traitlets.Unicode("counter").tag(sync=True)

    def _repr_mimebundle_(self, **kwargs):  # type: ignore[override]
        data = super()._repr_mimebundle_(**kwargs)
        assert data
        bundle = data[0]
        return {**bundle, "text/plain": "a counter", "image/png": PIXEL}


class Heavy(Counter):
    """Away from the first screen, its bytes are fetched when the reader begins."""

    name = traitlets.Unicode("heavy").tag(sync=True)


class Far(Heavy):
    # Of the place, not of what is drawn there: nothing is near before the first is drawn.
    _css = ".widget-view[data-late] { margin-top: 3000px }"


class Broken(Counter):
    _esm = "export default { render() { throw new Error('no luck today'); } };"


class Misspelt(Counter):
    _esm = "export default { render( { };"


STYLED = "UpdateLayoutTree"  # Chromium's name for it

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    counter = Counter()
    return widget_page([counter, Broken(), counter, Misspelt(), Counter(count=8)])


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_state_and_events(path: Path, page_factory: Callable[..., Page], scheme: str) -> None:
    """Stored values, bytes and hostile text arrive; two views of one model move together."""
    page = page_factory(path, scheme=scheme)
    labels = page.locator(".attnbook-widget b")
    assert labels.all_inner_texts() == [f"{HOSTILE} {n} 263" for n in (3, 3, 8)]
    page.get_by_role("button", name="more").first.click()
    assert labels.all_inner_texts() == [f"{HOSTILE} {n} 263" for n in (4, 4, 8)]
    assert page.title() != "hacked"
    styles = (
        "[...document.querySelectorAll('style')].filter(e => e.textContent.includes('.counter'))"
    )
    assert page.evaluate(f"{styles}.length") == 3  # one a class, not one a view
    assert page.locator(".attnbook-widget[data-attnbook-page]").count() == 3


def test_what_a_widget_draws_changes_no_style_elsewhere(
    path: Path, page_factory: Callable[..., Page]
) -> None:
    """A rule of the page's sheet with `:has()` may make a browser look through all paragraphs."""
    page = page_factory(path)
    browser = page.context.browser
    assert browser
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    page.evaluate("""() => {
      const settled = () => document.body.offsetHeight;
      settled();
      console.timeStamp("before");
      document.querySelector(".attnbook-widget").append(document.createElement("i"));
      settled();
      console.timeStamp("after");
    }""")
    events = json.loads(browser.stop_tracing())["traceEvents"]
    marks = {
        each["args"]["data"]["message"]: each for each in events if each["name"] == "TimeStamp"
    }
    before, after = marks["before"], marks["after"]
    styled = [
        each["args"].get("elementCount")
        for each in events
        if each["name"] == STYLED
        and each["tid"] == before["tid"]
        and before["ts"] <= each["ts"] <= after["ts"]
    ]
    assert [count for count in styled if count] == [1]


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_failing_widgets_say_so(path: Path, page_factory: Callable[..., Page], scheme: str) -> None:
    page = page_factory(path, scheme=scheme)
    notes = page.locator(".widget-view p[role=status]")
    assert notes.count() == 2
    assert "could not start" in notes.first.inner_text()
    assert "no luck today" in notes.first.inner_text()
    pictures = page.locator(".widget-view > figure img")
    assert [picture.get_attribute("alt") for picture in pictures.all()] == ["a counter"] * 2
    loaded = "async (img) => { await img.decode(); return img.naturalWidth; }"
    assert pictures.first.evaluate(loaded) == 1  # set by the runtime: it may still be coming


def test_drawn_before_the_page_has_come(path: Path, page_factory: Callable[..., Page]) -> None:
    """The first widget waits for nothing below it: here, for a script that is held back."""
    page = page_factory(path)
    text = path.read_text("utf8")
    end = text.index("</div>", text.index('class="widget-view"')) + len("</div>")
    text = f'{text[:end]}<script src="late.js"></script>{text[end:]}'
    held: list[Route] = []
    page.route("**/late.js", lambda route: held.append(route))
    page.route("**/widgets.html", lambda route: route.fulfill(body=text, content_type="text/html"))
    page.goto(page.url, wait_until="commit")
    page.locator(".attnbook-widget b").wait_for()
    assert page.locator(".widget-view").count() == 1
    assert page.evaluate("document.readyState") == "loading"
    until(page, lambda: len(held) > 0)  # the page asks before we hear of it
    for route in held:
        route.fulfill(body="", content_type="text/javascript")
    page.wait_for_load_state()
    page.wait_for_function("document.querySelectorAll('.widget-view[data-ready]').length == 5")


def press(page: Page) -> None:
    for _ in range(3):
        page.get_by_role("button", name="Try again").first.press("Enter")
        assert page.evaluate("document.activeElement.className") == "widget-view"
        expect(page.locator(".widget-view:focus b")).to_be_visible()


def come_near(page: Page) -> None:
    page.evaluate("document.querySelector('article').style.paddingTop = '5000px'")
    settle(page, 3)  # all are seen to be away
    for n in (0, 2, 4):
        page.locator(".widget-view").nth(n).scroll_into_view_if_needed()


def come_online(page: Page) -> None:
    page.evaluate("dispatchEvent(new Event('online'))")


LOST: list[Callable[[Route], None]] = [
    lambda route: route.abort(),  # and a gate to the network, which answers for everybody
    lambda route: route.fulfill(body="<p>Log in</p>", content_type="text/javascript"),
]


@pytest.mark.parametrize("lose", LOST, ids=["lost", "gate"])
@pytest.mark.parametrize("again", [press, come_near, come_online])
def test_a_lost_script_is_asked_for_again(
    path: Path,
    page_factory: Callable[..., Page],
    faults: Faults,
    again: Callable[[Page], None],
    lose: Callable[[Route], None],
) -> None:
    page = page_factory(path)
    page.route("**/widgets/Counter.js*", lose)
    page.reload()
    page.wait_for_function("!document.querySelector('.widget-view:not([data-ready])')")
    notes = page.get_by_text("widgets/Counter.js, did not arrive")
    assert notes.count() == 3
    assert page.locator(".widget-view > figure img[alt='a counter']").count() == 5
    page.get_by_role("button", name="Try again").first.click()
    enabled = page.locator("button:enabled", has_text="Try again")
    expect(enabled).to_have_count(3)  # in vain: the one that was pressed has come again
    page.unroute_all()
    again(page)
    labels = page.locator(".attnbook-widget b")
    expect(labels).to_have_text([f"{HOSTILE} {n} 263" for n in (3, 3, 8)])
    expect(notes).to_have_count(0)
    assert page.locator(".widget-view > figure").count() == 2  # of those that are broken
    faults.clear()


def test_a_script_that_is_lost_once_is_not_missed(
    path: Path, page_factory: Callable[..., Page], faults: Faults
) -> None:
    page, lost = page_factory(path), []

    def lose(route: Route) -> None:  # no `times=1`: as it ends, two routes may handle one request
        if lost:
            return route.fallback()
        lost.append(route.request.url)
        route.abort()

    page.route("**/widgets/Counter.js*", lose)
    page.reload()
    expect(page.locator(".attnbook-widget b")).to_have_count(3)
    assert len(lost) == 1
    faults.clear()


def test_section_links_still_work(path: Path, page_factory: Callable[..., Page]) -> None:
    page = page_factory(f"{path}#widgets")
    assert page.evaluate("document.querySelector(':target').id") == "widgets"


@pytest.fixture(scope="module")
def heavy(widget_page: Callable[..., Path]) -> Path:
    """Two heavy views of one widget, far below a light one."""
    view = Far(data=b"\x07\x01" * 6000)
    return widget_page([Far(count=8), view, view])


def drawn(page: Page) -> list[str]:
    page.wait_for_function("document.querySelector('.widget-view').matches('[data-ready]')")
    settle(page, 3)  # a view that is near has been seen
    return page.locator(".attnbook-widget b").all_inner_texts()


WAKE: dict[str, Callable[[Page], object]] = {
    "scrolls": lambda page: page.mouse.wheel(0, 10),
    "turns a wheel where nothing scrolls": lambda page: page.evaluate(
        "document.body.dispatchEvent(new Event('wheel', { bubbles: true }))"
    ),
    "presses a key": lambda page: page.keyboard.press("Tab"),
    "touches": lambda page: page.mouse.click(5, 5),
    "prints": lambda page: page.evaluate("dispatchEvent(new Event('beforeprint'))"),
}


@pytest.mark.parametrize("scheme", ["http", "file"])
@pytest.mark.parametrize("wake", WAKE.values(), ids=WAKE)
def test_heavy_views_come_when_the_reader_begins(
    heavy: Path, page_factory: Callable[..., Page], scheme: str, wake: Callable[[Page], object]
) -> None:
    page = page_factory(heavy, scheme=scheme, begun=False)
    assert drawn(page) == [f"{HOSTILE} 8 263"]
    assert page.evaluate("globalThis.attnbookWeights") is None
    wake(page)
    expect(page.locator(".attnbook-widget b")).to_have_text(
        [f"{HOSTILE} {n} 263" for n in (8, 3, 3)]
    )
    page.get_by_role("button", name="more").last.click()
    assert drawn(page) == [f"{HOSTILE} {n} 263" for n in (8, 4, 4)]  # one model


def test_a_heavy_view_comes_when_it_is_near(
    widget_page: Callable[..., Path], page_factory: Callable[..., Page]
) -> None:
    """On the first screen nobody has to begin."""
    first = page_factory(widget_page([Heavy(data=b"\x07\x01" * 6000)]), begun=False)
    expect(first.locator(".attnbook-widget b")).to_have_count(1)


def test_a_link_to_a_state_wakes_heavy_views(
    heavy: Path, page_factory: Callable[..., Page]
) -> None:
    page = page_factory(f"{heavy}#w.heavy=count:1", begun=False)
    expect(page.locator(".attnbook-widget b")).to_have_count(3)


@pytest.mark.parametrize("lose", LOST, ids=["lost", "gate"])
def test_lost_parts_of_a_heavy_view_are_asked_for_again(
    heavy: Path, page_factory: Callable[..., Page], faults: Faults, lose: Callable[[Route], None]
) -> None:
    page = page_factory(heavy, begun=False)
    page.route("**/weights/part-*.js", lose)
    WAKE["presses a key"](page)
    expect(page.get_by_text("did not arrive")).to_have_count(2)
    page.unroute_all()
    come_online(page)
    expect(page.locator(".attnbook-widget b")).to_have_count(3)
    expect(page.get_by_text("did not arrive")).to_have_count(0)
    faults.clear()
