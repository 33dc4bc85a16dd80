"""AttentionPlane in Chromium, on a built page: by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.web import AttentionPlane, format_number
from tests.browser.widget_pages import (
    HOSTILE,
    copied,
    everywhere,
    settle,
    touch,
    violations,
    widget,
    work,
)

WORDS = ["dogs", "chase", "cat", "it"]
RNG = np.random.default_rng(5)
VECTORS = {name: RNG.normal(size=(4, 2)) for name in ("queries", "keys", "values")}


def plane(**changes: Any) -> AttentionPlane:
    options = {"query": 3, "title": "Whom does it mean?", "name": "plane", **VECTORS}
    return AttentionPlane(**{**options, "words": WORDS, **changes})


def bars(**changes: Any) -> AttentionPlane:
    values = np.random.default_rng(6).normal(size=(4, 3))
    options = {"values": values, "outputs": ["cat", "dog", "cow"], "name": "bars"}
    return plane(**{**options, **changes})


def odd() -> AttentionPlane:
    """As many words as there may be, odd ones, at one place."""
    one = np.ones((8, 2))
    words = ["a", *HOSTILE, "z"]
    return AttentionPlane(one, one, one, words, askers=words[::-1], outputs=HOSTILE[:2], name="odd")


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page([plane(), bars(), odd()])


def written(x: float, digits: int = 2) -> str:
    return format_number(float(x), digits).replace("-", "−")


def shows(node: Locator, of: AttentionPlane) -> bool:
    """Whether the page has the numbers of Python, which are held to torch's."""
    settle(node.page)
    script = """(all) => all.map((line) =>
      [...line.querySelectorAll(".attn-qkv-number")].map((e) => e.textContent))"""
    scores = node.locator(".attn-qkv-scores li").evaluate_all(script)
    out = node.locator(".attn-qkv-out li").evaluate_all(script)
    steps = of.compute()
    want = [
        [written(p), written(s), written(w, 3)]
        for p, s, w in zip(steps["products"], steps["scores"], steps["weights"], strict=True)
    ]
    return scores == want and out == [[written(x)] for x in steps["out"]]


def grip(node: Locator, what: str) -> Locator:
    return node.get_by_role("button", name=f"{what} at")


def drag(page: Page, grip: Locator, across: float, down: float, by_touch: bool) -> None:
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if by_touch:
        touch(page, [(x, y), (x + across / 2, y + down / 2), (x + across, y + down)])
    else:
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + across, y + down, steps=3)
        page.mouse.up()
    settle(page)


@everywhere
def test_what_is_dragged_moves_all_that_follows(open_page: Callable[..., Page], where: Any) -> None:
    page = open_page(**where)
    for n, mine in ((0, plane()), (1, bars())):
        node = widget(page, n)
        assert shows(node, mine)
        box = node.locator(".attn-qkv-plane").first.bounding_box()
        assert box
        unit = box["width"] / 2 / (1.12 * mine.edges[0])  # pixels
        for what, trait, row in (("key of “cat”", "k", 2), ("query of “it”", "q", 3)):
            before = getattr(mine, trait)
            drag(page, grip(node, what), -20, 30, where["width"] < 600)
            label = grip(node, what).get_attribute("aria-label") or ""
            numbers = label.split(" at ")[1].split(";")[0].replace("−", "-").split(", ")
            now = [float(x) for x in numbers]
            moved = np.subtract(now, before[row]) * unit
            assert moved == pytest.approx([-20, -30], abs=2)
            setattr(mine, trait, [*before[:row], now, *before[row + 1 :]])
            assert shows(node, mine)
        node.get_by_role("button", name="Reset").click()
        assert shows(node, (plane, bars)[n]())


@everywhere
def test_by_keys(open_page: Callable[..., Page], where: Any) -> None:
    page = open_page(**where)
    node, mine = widget(page, 0), plane()
    grip(node, "key of “dogs”").focus()
    settle(page)
    assert "“dogs” = " in (node.locator(".attn-readout").text_content() or "")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowLeft")
    (x, y), *rest = mine.k
    mine.k = [[x - 0.5, y + 0.1], *rest]
    assert shows(node, mine)
    heard = node.locator(".attn-heard[aria-live]").text_content() or ""
    share = format_number(mine.compute()["weights"][0])
    assert f"Weights: dogs {share}, " in heard
    node.get_by_role("combobox", name="query of").select_option("cat")
    mine.query = 2
    grip(node, "query of “cat”").press("ArrowDown")
    mine.q = [*mine.q[:2], [mine.q[2][0], mine.q[2][1] - 0.1], mine.q[3]]
    node.get_by_role("button", name="Divide by √2").click()
    mine.root = False
    grip(node, "value of “it”").press("ArrowRight")
    mine.v = [*mine.v[:3], [mine.v[3][0] + 0.1, mine.v[3][1]]]
    assert shows(node, mine)
    again = widget(open_page(copied(node)), 0)
    assert shows(again, mine)
    for _ in range(60):
        grip(again, "key of “dogs”").press("Shift+ArrowRight")
    assert f"at {mine.edges[0]:.2f}, " in (
        grip(again, "key of “dogs”").get_attribute("aria-label") or ""
    )  # no farther than the plane goes


def test_links_that_do_not_fit_are_taken_as_far_as_they_go(open_page: Callable[..., Page]) -> None:
    wrong = "q:1,2;k:99,0,0,0,0,0,0,-99;query:9;key:~x;root:0;v:~a"
    node = widget(open_page(f"#w.plane={wrong}"), 0)
    mine = plane(root=False)
    edge = mine.edges[0]
    mine.k = [[edge, 0], [0, 0], [0, 0], [0, -edge]]
    assert shows(node, mine)


def test_a_finger_beside_the_grips_scrolls(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    node = widget(page, 0)
    look = "(e) => getComputedStyle(e).touchAction"
    assert grip(node, "key of “cat”").evaluate(look) == "none"
    stage = node.locator(".attn-qkv-plane").first
    stage.scroll_into_view_if_needed()
    before, box = page.evaluate("scrollY"), stage.bounding_box()
    assert box
    x, y = box["x"] + 8, box["y"] + box["height"] - 8  # no vector goes into the corner
    touch(page, [(x, y), (x, y - 60), (x, y - 120)])
    page.wait_for_function(f"scrollY > {before} + 20")
    assert shows(node, plane())


def test_large_enough_to_read_and_touch(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    for n in range(3):
        node = widget(page, n)
        script = """(e) => [...e.querySelectorAll("*")].filter((one) => one.checkVisibility() &&
          [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
          .map((one) => parseFloat(getComputedStyle(one).fontSize))"""
        assert min(node.evaluate(script)) >= 11
        boxes = node.locator("button").evaluate_all(
            "(all) => all.map((e) => e.getBoundingClientRect()).map((b) => [b.width, b.height])"
        )
        assert np.array(boxes).min() >= 34
        assert node.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.title() != "hacked" and page.locator(".attn img").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible(open_page: Callable[..., Page], theme: Any) -> None:
    assert violations(open_page(theme=theme)) == []


def test_nothing_moves_by_itself(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.emulate_media(reduced_motion="reduce")
    look = """(all) => all.every((e) => getComputedStyle(e).transitionDuration.match(/^[0s, ]+$/)
      && getComputedStyle(e).animationName === "none")"""
    assert widget(page, 0).locator("path, i, button").evaluate_all(look)


def test_a_frame_changes_little(open_page: Callable[..., Page]) -> None:
    page = open_page()
    step = """(n) => node.dispatchEvent(
      new KeyboardEvent("keydown", { key: n % 2 ? "ArrowUp" : "ArrowDown", bubbles: true }))"""
    assert 0 < max(work(grip(widget(page, 0), "query of “it”"), step)) < 400
