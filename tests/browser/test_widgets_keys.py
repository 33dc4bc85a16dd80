"""The keyboard stays with a widget: what is pressed keeps the focus though it can do no more, a key
of the browser's is left to it, and a link is written where nothing can be copied."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from attnbook.model.transformer import TransformerDecoder
from attnbook.web import (
    AttentionHeatmap,
    AttentionPlane,
    AttentionSheet,
    DecodingBench,
    Laboratory,
    LossSurface,
    Playground,
    RotaryDial,
)
from attnbook.weights.int8 import load_int8
from tests.browser.widget_pages import render, settle, stop_clocks, tick
from tests.helpers.tiny_gpt import tiny_gpt
from tests.helpers.widgets import bowls, vectors, walk

HELD = "el.contains(document.activeElement)"
EYE = [[1, 0], [0, 1]]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert not errors


def press(page: Page, name: str) -> None:
    """By the keyboard, and the focus is there still."""
    button = page.get_by_role("button", name=name, exact=True)
    button.focus()
    page.keyboard.press("Enter")
    settle(page, 3)
    assert page.evaluate(HELD), name


def focused(page: Page) -> str:
    return page.evaluate("document.activeElement.textContent")


def bench(**options: Any) -> DecodingBench:
    return DecodingBench(*load_int8(tiny_gpt(), TransformerDecoder), "We must", **options)


def playground(page: Page) -> None:
    render(page, Playground("We must", weights=tiny_gpt(), name="kept"))
    page.wait_for_function("sent.length")
    bytes_ = base64.b64encode(tiny_gpt().read_bytes()).decode()
    page.evaluate("(all) => model.message({ weights: 'tiny_gpt' }, [bytes(all)])", bytes_)
    page.locator("textarea:not([disabled])").wait_for()


def test_the_dial_keeps_the_focus_at_an_end(page: Page) -> None:
    render(page, RotaryDial(i=1, j=3))
    for _ in range(3):  # the last one can do nothing
        press(page, "… and back")
        assert focused(page) == "… and back"
    assert page.evaluate("[model.get('i'), model.get('j')]") == [0, 2]
    for _ in range(2):
        press(page, "Move both by one")
    assert page.evaluate("[model.get('i'), model.get('j')]") == [2, 4]


def test_the_laboratory_keeps_the_focus(page: Page) -> None:
    render(page, Laboratory(d_model=16, n_heads=2, n_layers=1, batch=8, steps=2000))
    press(page, "5 seeds")
    assert focused(page) == "5 seeds"
    page.locator(".attn-progress", has_text="step 1").wait_for()
    press(page, "5 seeds")  # it can do nothing now
    page.locator(".attn-progress", has_text="Run 1").wait_for()
    press(page, "Stop")
    assert focused(page) == "Run"
    page.locator(".attn-progress", has_text="Over.").wait_for()


def test_the_bench_keeps_the_focus(page: Page) -> None:
    render(page, bench(steps=2))
    for back in ("Back", "Start anew"):
        page.locator(".attn-take").first.click()
        for _ in range(2):  # the second can do nothing
            press(page, back)
            assert focused(page) == back
        assert page.evaluate("model.get('written')") == []
    page.locator(".attn-take").first.click()
    page.locator(".attn-text button").last.focus()
    page.keyboard.press("Enter")  # the text ends before this token: its button goes
    settle(page, 3)
    assert page.evaluate(HELD)


def test_the_bench_keeps_the_focus_where_its_tree_ends(page: Page) -> None:
    widget = bench(steps=1)
    render(page, widget)
    end = widget.get_state()["sizes"]["end"]
    page.evaluate("(end) => model.fromKernel('written', [end])", end)
    settle(page, 3)
    page.evaluate("model.fromKernel('written', [])")
    settle(page, 3)
    page.get_by_role("button", name="Draw again").focus()
    page.evaluate("(end) => model.fromKernel('written', [end])", end)  # what is left has gone
    settle(page, 3)
    assert focused(page) == "Back"


def test_the_playground_keeps_the_focus(page: Page) -> None:
    playground(page)
    press(page, "Step")
    page.wait_for_function("model.get('written').length === 1")
    press(page, "Back")
    page.wait_for_function("model.get('written').length === 0")
    settle(page, 3)
    assert focused(page) == "Back"
    press(page, "Back")
    page.get_by_role("combobox", name="pace").select_option("as fast as it can")
    full = page.get_by_text("tokens is the longest")
    while not full.is_visible():  # a number may bring the end of a text earlier
        press(page, "Write")
        page.get_by_role("button", name="Write", exact=True).wait_for(timeout=180_000)
        settle(page, 3)
        assert focused(page) == "Write"
    written = "model.get('written').length"
    many = page.evaluate(written)
    press(page, "Write")
    press(page, "Step")
    assert page.evaluate(written) == many


def test_a_branch_that_is_taken_gives_the_focus_on(page: Page) -> None:
    playground(page)
    press(page, "Step")
    page.wait_for_function("model.get('written').length === 1")
    page.locator(".attn-text button").nth(1).click()
    page.locator(".attn-take").last.click()
    page.locator(".attn-branches button").focus()
    page.keyboard.press("Enter")
    settle(page, 3)
    assert page.evaluate(HELD)


KEYS = [
    (lambda: AttentionHeatmap(EYE, ["q", "r"], ["a", "b"]), ".attn-maps"),
    (lambda: AttentionPlane(**vectors()), ".attn-qkv-grip"),
    (lambda: AttentionSheet(EYE, EYE, EYE, EYE, ["a", "b"]), ".attn-num"),
    (lambda: LossSurface(bowls(), ["with", "without"]), "[role=application]"),
    (RotaryDial, ".attn-handle"),
    (lambda: bench(steps=1), ".attn-text button"),
    (walk, ".attn-stage"),
]


@pytest.mark.parametrize(("make", "part"), KEYS)
def test_keys_of_the_browser_are_left_to_it(page: Page, make: Any, part: str) -> None:
    script = """(node, held) => {
        const key = { key: "ArrowRight", bubbles: true, cancelable: true };
        const event = new KeyboardEvent("keydown", held ? { ...key, [held]: true } : key);
        node.focus();
        node.dispatchEvent(event);
        return event.defaultPrevented;
    }"""
    render(page, make())
    node = page.locator(part).first
    settle(page, 3)
    taken = [node.evaluate(script, held) for held in ("altKey", "metaKey", "ctrlKey", "")]
    assert taken == [False, False, False, True]


@pytest.mark.parametrize("missing", ["clipboard", "permission"])
def test_a_link_is_in_the_address_where_nothing_can_be_copied(page: Page, missing: str) -> None:
    page.route("http://plain.test/", lambda route: route.fulfill(body="", content_type="text/html"))
    page.goto("http://plain.test/")  # a page by plain http has no clipboard
    if missing == "permission":
        refuses = "{ value: { writeText: () => Promise.reject(new Error('refused')) } }"
        page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {refuses}), 0")
    assert page.evaluate("navigator.clipboard === undefined") == (missing == "clipboard")
    render(page, RotaryDial(i=1, j=3, name="kept"))
    press(page, "Move both by one")
    press(page, "Copy link to this state")
    assert page.locator(".attn-status").text_content() == "The link is in the address bar"
    assert page.evaluate("location.hash") == "#w.kept=i:2;j:4"


def test_a_walk_that_is_replaced_plays_no_more(page: Page) -> None:
    stop_clocks(page)
    first = walk()
    render(page, first)
    page.get_by_role("button", name="Play").click()
    other = [{"caption": f"Step {n}.", "parts": [], "ask": ""} for n in range(3)]
    page.evaluate("(steps) => model.fromKernel('steps', steps)", other)
    settle(page, 2)
    assert tick(page, 300) == 0  # of the walk that was there before
    assert page.evaluate("model.get('step')") == 1
    page.get_by_role("button", name="Play").click()
    assert tick(page, 300) == 1
    assert page.evaluate("model.get('step')") == 2
