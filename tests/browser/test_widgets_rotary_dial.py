"""RotaryDial in Chromium, on a built page: by pointer, touch and keyboard."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import RotaryDial
from attnbook.web.rotary_dial.widget import positioned
from tests.browser.widget_pages import (
    box_of,
    copied,
    dial_says,
    drag_along,
    everywhere,
    follow,
    readouts,
    settle,
    slider,
    stop_clocks,
    tick,
    touch,
    violations,
    widget,
    work,
)


def widgets() -> list[Any]:
    return [
        RotaryDial((1.5, 0.4), (-0.3, 1.1), i=12, j=7, title="Distance alone", name="dial"),
        RotaryDial((0, 0), (1.2345, 1), theta=1.5, mode="add", words=["<b>", "we"], name="odd"),
    ]


DIAL, ODD = range(2)
PACE = 450  # milliseconds


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


START: dict[str, Any] = {"q": (1.5, 0.4), "k": (-0.3, 1.1), "i": 12, "j": 7, "theta": 0.2}


def tells(mode: str = "rotate", **changes: Any) -> list[str]:
    return dial_says(**{**START, **changes}, mode=mode)


def handle(dial: Locator, name: str) -> Locator:
    return dial.locator(f".attn-handle.attn-{name}")


@everywhere
def test_dial_moves_both_together(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    dial = widget(page, DIAL)
    assert readouts(dial) == tells()
    score = dial.locator(".attn-readout b").first
    before = score.text_content()
    mode = dial.get_by_role("combobox", name="a position")
    forth = dial.get_by_role("button", name="Move both by one")
    back = dial.get_by_role("button", name="… and back")
    for step in (1, 2, 3):
        forth.click()
        assert readouts(dial) == tells(i=12 + step, j=7 + step)
        assert score.text_content() == before
    mode.select_option("is added to its vector")
    assert readouts(dial) == tells("add", i=15, j=10)
    added = score.text_content()
    back.click()
    assert readouts(dial) == tells("add", i=14, j=9)
    assert score.text_content() != added
    assert dial.locator("[aria-live=polite]").text_content() == readouts(dial)[0]
    slider(dial, "i, of q").focus()
    page.keyboard.press("End")
    assert readouts(dial) == tells("add", i=64, j=9)
    play = dial.get_by_role("button", name="Play")
    assert forth.is_disabled() and back.is_enabled() and play.is_enabled()
    slider(dial, "j, of k").focus()
    page.keyboard.press("Home")
    assert readouts(dial) == tells("add", i=64, j=0)
    assert back.is_disabled() and play.is_disabled()  # they cannot move at this distance
    dial.get_by_role("button", name="Reset").click()
    assert readouts(dial) == tells() and play.is_enabled()


@everywhere
def test_dial_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    dial = widget(page, DIAL)
    handle(dial, "q").focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    assert readouts(dial) == tells(q=(1.3, 0.5))
    assert handle(dial, "q").get_attribute("aria-label") == "q at 1.30, 0.50; arrow keys move it"
    handle(dial, "k").focus()
    for _ in range(12):  # stops at length 2
        page.keyboard.press("ArrowUp")
    told = handle(dial, "k").get_attribute("aria-label") or ""
    x, y = map(float, re.findall(r"-?[0-9.]+", told))
    assert 1.97 < np.hypot(x, y) <= 2
    assert readouts(dial) == tells(q=(1.3, 0.5), k=(x, y))
    slider(dial, "angle θ").focus()
    page.keyboard.press("ArrowRight")
    assert readouts(dial) == tells(q=(1.3, 0.5), k=(x, y), theta=0.21)
    page.keyboard.press("Home")
    assert readouts(dial) == tells(q=(1.3, 0.5), k=(x, y), theta=0)


@everywhere
def test_dial_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    dial = widget(page, DIAL)
    box = box_of(dial.locator(".attn-plane svg"))

    def spot(x: float, y: float) -> tuple[float, float]:
        unit = box["width"] / 6.1
        return box["x"] + box["width"] / 2 + x * unit, box["y"] + box["height"] / 2 - y * unit

    drag_along(page, spot(1.5, 0.4), spot(1, -1), spot(0.5, -1.5))
    spoken = handle(dial, "q").get_attribute("aria-label") or ""
    x, y = (float(part) for part in spoken[5:].split(";")[0].split(","))
    assert (x, y) == (pytest.approx(0.5, abs=0.03), pytest.approx(-1.5, abs=0.03))
    assert readouts(dial) == tells(q=(x, y))
    drag_along(page, spot(-0.3, 1.1), spot(-2.5, 2.5))  # beyond the longest: its direction stays
    spoken = handle(dial, "k").get_attribute("aria-label") or ""
    k = [float(part) for part in spoken[5:].split(";")[0].split(",")]
    assert k == pytest.approx([-np.sqrt(2), np.sqrt(2)], abs=0.03)
    assert readouts(dial) == tells(q=(x, y), k=tuple(k))


def test_a_finger_drags_an_arrow(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    dial = widget(page, DIAL)
    box = box_of(handle(dial, "q"))
    x, y = box["x"] + 17, box["y"] + 17
    before, top = readouts(dial), page.evaluate("scrollY")
    touch(page, [(x, y + 6 * step) for step in range(9)])
    assert readouts(dial) != before and page.evaluate("scrollY") == top


def arrow(dial: Locator, selector: str) -> list[float]:
    """Where an arrow's tip is in the plane, y upwards."""
    path = dial.locator(selector).get_attribute("d") or ""
    x, y = path.split("M0 0L")[1].split("M")[0].split()
    return [float(x), -float(y)]


@pytest.mark.parametrize("mode", ["rotate", "add"])
def test_dial_draws_what_it_says(open_page: Callable[..., Page], mode: str) -> None:
    page = open_page(f"#w.dial=mode:{int(mode == 'add')};theta:0.7")
    dial = widget(page, DIAL)
    settle(page)
    q, k = (np.array(START[name]) for name in "qk")
    for name, v, position in (("q", q, 12), ("k", k, 7)):
        assert np.allclose(arrow(dial, f".attn-start.attn-{name}"), v)
        now = positioned(v, position, 0.7, mode)
        assert np.allclose(arrow(dial, f".attn-arrow.attn-{name}:not(.attn-start)"), now)
    n = np.arange(65)
    scores = positioned(q, n, 0.7, mode) @ positioned(k, n, 0.7, mode).T
    edges = [np.diagonal(scores, -distance) for distance in range(-64, 65)]
    high, low = ([f(edge) for edge in edges] for f in (np.max, np.min))
    most = np.prod([np.hypot(*v) + (mode == "add") for v in (q, k)])
    text = dial.locator("polygon").get_attribute("points") or ""
    x, y = np.array([point.split(",") for point in text.split()], dtype=float).T / 100
    assert np.allclose(x, [*np.linspace(0, 1, 129), *np.linspace(1, 0, 129)], atol=1e-4)
    assert np.allclose((1 - y - 0.5) * 2 * most, [*high, *low[::-1]], atol=2e-3)
    left, top = dial.locator(".attn-point").evaluate(
        "(e) => [e.style.left, e.style.top].map(parseFloat)"
    )
    assert left == pytest.approx(50 + 100 * 5 / 128, abs=0.01)
    assert (0.5 - top / 100) * 2 * most == pytest.approx(scores[12, 7], abs=2e-3)


def test_dial_plays_at_one_distance(open_page: Callable[..., Page]) -> None:
    page = open_page("#w.dial=i:62;j:57")
    dial = widget(page, DIAL)
    score = dial.locator(".attn-readout b").first.text_content()
    stop_clocks(page)
    dial.get_by_role("button", name="Play").click()
    for i in (63, 64, 5, 6):
        assert readouts(dial) == tells(i=i, j=i - 5)
        if i == 64:  # on from the start
            dial.get_by_role("button", name="Play").click()
        else:
            assert tick(page, PACE) == 1
    dial.get_by_role("button", name="Pause").click()
    assert tick(page, PACE) == 0
    assert readouts(dial) == tells(i=7, j=2)
    assert dial.locator(".attn-readout b").first.text_content() == score


def test_dial_names_what_its_vectors_belong_to(open_page: Callable[..., Page]) -> None:
    page = open_page()
    odd = widget(page, ODD)
    assert odd.locator("svg text").all_text_contents() == ["q₀ <b>", "k₀ we"]
    assert "q (<b>) and k (we)" in (odd.locator(".attn-legend").first.text_content() or "")


def test_dial_at_its_ends(open_page: Callable[..., Page]) -> None:
    page = open_page()
    odd = widget(page, ODD)
    given = {"q": (0, 0), "k": (1.2345, 1), "i": 0, "j": 0, "theta": 1.5}
    assert readouts(odd) == tells("add", **given)
    odd.get_by_role("combobox", name="a position").select_option("rotates its vector")
    assert readouts(odd)[1] == "All 65 pairs with i − j = 0: the same score, 0.000"
    assert "NaN" not in odd.evaluate("(root) => root.innerHTML")
    follow(page, "#w.odd=i:99;j:-4;theta:9;mode:7;q:5,0;k:1")
    q = (2, 0)  # what it can mean
    assert readouts(odd) == tells(q=q, k=(1, 0), i=64, j=0, theta=np.pi)
    odd.get_by_role("button", name="Reset").click()
    assert readouts(odd) == tells("add", **given)  # as given, not rounded


def test_a_link_and_reset_end_the_play(open_page: Callable[..., Page]) -> None:
    page = open_page()
    played = widget(page, DIAL)
    stop_clocks(page)
    play, pause = (played.get_by_role("button", name=name) for name in ("Play", "Pause"))
    play.click()
    expect(pause).to_be_visible()
    follow(page, "#w.dial=i:30;j:20")
    assert play.is_visible() and tick(page, PACE) == 0
    assert readouts(played) == tells(i=30, j=20)
    play.click()
    expect(pause).to_be_visible()
    played.get_by_role("button", name="Reset").click()
    assert play.is_visible() and tick(page, PACE) == 0
    assert readouts(played) == tells()


@everywhere
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    odd, dial = widget(page, ODD), widget(page, DIAL)
    odd.get_by_role("combobox", name="a position").select_option("rotates its vector")
    assert copied(odd) == "#w.odd=mode:0"
    handle(dial, "q").focus()
    page.keyboard.press("ArrowDown")
    dial.get_by_role("button", name="Move both by one").click()
    dial.get_by_role("combobox", name="a position").select_option("is added to its vector")
    link = "#w.dial=q:1.5,0.3;i:13;j:8;mode:1"
    assert copied(dial) == f"{link}&w.odd=mode:0"
    fresh = widget(open_page(link, **where), DIAL)
    assert readouts(fresh) == tells("add", q=(1.5, 0.3), i=13, j=8)


def test_narrow_page_is_comfortable(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390, theme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for control in page.locator(".attn button, .attn select, .attn input").all():
        box = control.bounding_box()
        assert box and box["height"] >= 32 and box["width"] >= 32
    actions = page.locator(".attn input[type=range], .attn-follow").evaluate_all(
        "(all) => all.map((node) => getComputedStyle(node).touchAction)"
    )
    assert set(actions) == {"pan-y"}  # dragging sideways leaves scrolling alone


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page(theme=theme)
    assert violations(page) == []


def test_a_frame_draws_once(open_page: Callable[..., Page]) -> None:
    """However often a slider moved since the last."""
    page = open_page()
    step = """(n) => {
      node.value = Number(node.max) * n / 42;
      node.dispatchEvent(new Event("input"));
    }"""
    for name in ("i, of q", "angle θ"):
        control = slider(widget(page, DIAL), name)
        once, thrice = work(control, step), work(control, step, moves=3)
        assert 0 < max(once) < 50, name
        assert max(thrice) < 1.2 * max(once), name
