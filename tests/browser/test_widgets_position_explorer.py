"""PositionExplorer in Chromium, on a built page: by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import PositionExplorer, format_number
from tests.browser.widget_pages import (
    box_of,
    copied,
    drag_along,
    everywhere,
    explorer_says,
    follow,
    readouts,
    settle,
    slider,
    stop_clocks,
    tick,
    touch,
    vectors,
    violations,
    widget,
    work,
)


def widgets() -> list[Any]:
    return [
        PositionExplorer(position=40, pair=8, title="One neighbourhood for all", name="explorer"),
        PositionExplorer(6, 9, base=100, name="small"),
        PositionExplorer(512, 512, name="largest"),
    ]


EXPLORER, SMALL, LARGEST = range(3)
PACE = 450  # milliseconds


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


def says(position: int, pair: int, base: float = 1e4, n: int = 128, d_model: int = 64) -> list[str]:
    return explorer_says(position, pair, base, n, d_model)


@everywhere
def test_explorer_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    assert readouts(explorer) == says(40, 8)
    assert "62.8 positions" in readouts(explorer)[1]
    slider(explorer, "position i").focus()
    page.keyboard.press("ArrowRight")
    assert readouts(explorer) == says(41, 8)
    page.keyboard.press("End")
    assert readouts(explorer) == says(127, 8)
    slider(explorer, "hand m").focus()
    page.keyboard.press("End")
    assert readouts(explorer) == says(127, 31)
    assert "47,117 positions" in readouts(explorer)[1]
    spoken = slider(explorer, "hand m").get_attribute("aria-valuetext")
    assert spoken == "31, wavelength 47,117 positions"
    page.keyboard.press("Home")
    slider(explorer, "base").focus()
    page.keyboard.press("End")
    assert readouts(explorer) == says(127, 0, 1e6)
    page.keyboard.press("Home")
    assert readouts(explorer) == says(127, 0, 10)
    explorer.get_by_role("button", name="Reset").click()
    assert readouts(explorer) == says(40, 8)
    assert readouts(widget(page, SMALL)) == says(0, 0, 100, 9, 6)
    slider(widget(page, LARGEST), "hand m").focus()
    page.keyboard.press("End")
    assert readouts(widget(page, LARGEST)) == says(0, 255, n=512, d_model=512)


@everywhere
def test_explorer_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    box = box_of(explorer.locator("canvas"))

    def cell(i: int, pair: int) -> tuple[float, float]:
        x, y = (i + 0.5) / 128, (pair + 0.5) / 32
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    page.mouse.click(*cell(100, 20))
    assert readouts(explorer) == says(100, 20)
    drag_along(page, cell(100, 20), cell(60, 10), cell(5, 3))
    assert readouts(explorer) == says(5, 3)
    beyond = (box["x"] - 30, box["y"] + 3)  # there the last one stays
    drag_along(page, cell(5, 3), beyond)
    settle(page)
    assert int(explorer.locator(".attn-value").first.text_content() or -1) <= 5
    box = box_of(explorer.locator(".attn-graph").nth(1))
    page.mouse.click(box["x"] + 77.5 / 128 * box["width"], box["y"] + 20)
    assert readouts(explorer)[0] == says(77, 0)[0]


def points(widget: Locator, look: str) -> np.ndarray:
    """[point, (x, y)] of a curve, 0..1 from the lower left corner."""
    settle(widget.page)
    text = widget.locator(f"polyline.attn-{look}").first.get_attribute("points") or ""
    x, y = np.array([point.split(",") for point in text.split()], dtype=float).T / 100
    return np.stack([x, 1 - y], axis=-1)


def test_explorer_slides_along_one_curve(open_page: Callable[..., Page]) -> None:
    page = open_page()
    explorer = widget(page, EXPLORER)
    p = vectors(128, 64, 1e4)
    whole = explorer.locator(".attn-graph").first.locator(".attn-faint")
    assert whole.count() == 1
    every = points(explorer, "faint")
    assert len(every) == 255
    for i in (0, 40, 127):
        follow(page, f"#w.explorer=position:{i}")
        mine = points(explorer, "mine")
        assert np.allclose(mine[:, 1], p @ p[i] / 32, atol=1e-4)  # from 0 to d/2
        assert np.allclose(mine, every[127 - i : 255 - i], atol=1e-3)
    follow(page, "#w.explorer=position:0;base:10")
    p = vectors(128, 64, 10)
    products = p @ p[0]
    low = products.min()
    assert low < 0  # the curve falls below zero here, and the plot with it
    want = (products - low) / (32 - low)
    assert np.allclose(points(explorer, "mine")[:, 1], want, atol=1e-4)


def test_explorer_draws_the_chosen_waves(open_page: Callable[..., Page]) -> None:
    page = open_page("#w.explorer=pair:5")
    explorer = widget(page, EXPLORER)
    for look, f in (("sine", np.sin), ("cosine", np.cos)):
        x, y = points(explorer, look).T
        angle = (x * 128 - 0.5) / 10_000 ** (10 / 64)
        assert np.allclose(y, 0.5 + f(angle) / 2, atol=0.01)
        dot = explorer.locator(f".attn-point.attn-{look}")
        left, top = dot.evaluate("(e) => [e.style.left, e.style.top].map(parseFloat)")
        assert left == pytest.approx(100 * 40.5 / 128, abs=0.01)
        value = f(40 / 10_000 ** (10 / 64))
        assert top == pytest.approx(50 - 50 * value, abs=0.01)


HANDS = [0, 4, 9, 13, 18, 22, 27, 31]  # eight of 32 pairs


def hands(explorer: Locator) -> list[str]:
    settle(explorer.page)
    return explorer.locator(".attn-positions-clock").all_text_contents()


def hands_say(position: int, pairs: list[int] = HANDS, d_model: int = 64) -> list[str]:
    p = vectors(position + 1, d_model, 1e4)[position].reshape(-1, 2)
    both = [[format_number(x, 2).replace("-", "−") for x in p[m]] for m in pairs]
    return [f"hand {m}{sine}\n{cosine}" for m, (sine, cosine) in zip(pairs, both, strict=True)]


@everywhere
def test_explorer_turns_its_hands(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    assert hands(explorer) == hands_say(40)
    bits = explorer.get_by_text("in binary")
    assert bits.text_content() == "Position 40 in binary: 0101000"
    slider(explorer, "position i").focus()
    page.keyboard.press("ArrowRight")
    assert hands(explorer) == hands_say(41)
    assert bits.text_content() == "Position 41 in binary: 0101001"
    assert bits.locator("b").text_content() == "1"  # flipped since 40
    turned = explorer.locator(".attn-positions-clock path").evaluate_all(
        "(all) => all.map((node) => Number(node.getAttribute('transform').match(/-?[0-9.]+/)[0]))"
    )
    assert np.allclose(-np.radians(turned), 41 / 1e4 ** (np.array(HANDS) / 32), atol=1e-3)
    explorer.locator(".attn-positions-clock").nth(5).click()
    assert readouts(explorer) == says(41, 22)
    chosen = explorer.locator(".attn-positions-mine")
    assert (chosen.text_content() or "").startswith("hand 22")
    small = widget(page, SMALL)
    assert len(hands(small)) == 3
    assert small.get_by_text("in binary").text_content() == "Position 0 in binary: 0000"


def test_explorer_plays_to_the_end_and_from_the_start(open_page: Callable[..., Page]) -> None:
    page = open_page("#w.explorer=position:125")
    explorer = widget(page, EXPLORER)
    play = explorer.get_by_role("button", name="Play")
    shown = explorer.locator(".attn-value").first
    play.focus()
    page.keyboard.press("Enter")
    expect(shown).to_have_text("127")
    expect(play).to_be_visible()  # it stops by itself
    stop_clocks(page)
    play.click()
    assert [tick(page, PACE), tick(page, PACE)] == [1, 1]
    expect(shown).to_have_text("2")
    assert explorer.get_by_role("button", name="Pause").is_visible()
    slider(explorer, "position i").focus()
    page.keyboard.press("End")  # who moves it, stops it
    assert play.is_visible() and tick(page, PACE) == 0
    assert hands(explorer) == hands_say(127)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_explorer_colours_the_vectors(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page(theme=theme)
    pixels = (
        widget(page, SMALL)
        .locator("canvas")
        .evaluate(
            """(canvas) => [canvas.width, canvas.height,
          ...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data]"""
        )
    )
    assert pixels[:2] == [9, 6]
    rgba = np.array(pixels[2:]).reshape(6, 9, 4)
    p = vectors(9, 6, 100).T
    assert np.allclose(rgba[..., 3], 255 * np.abs(p), atol=0.51)
    strong = np.abs(p) > 0.1
    assert np.array_equal((rgba[..., 2] > rgba[..., 0])[strong], (p > 0)[strong])  # blue: positive


def test_a_finger_moves_the_place_and_scrolls(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    explorer = widget(page, EXPLORER)
    box = box_of(explorer.locator("canvas"))
    x, y = box["x"] + 30, box["y"] + 20
    touch(page, [(x + 10 * step, y) for step in range(9)])
    i = int((110 / box["width"]) * 128)
    assert readouts(explorer)[0].startswith(f"p{i} · p{i}")
    top = page.evaluate("scrollY")
    touch(page, [(x, y + 60 - 12 * step) for step in range(9)])
    page.wait_for_function("(top) => scrollY > top + 20", arg=top)


def test_a_link_and_reset_end_the_play(open_page: Callable[..., Page]) -> None:
    page = open_page()
    played = widget(page, EXPLORER)
    stop_clocks(page)
    play, pause = (played.get_by_role("button", name=name) for name in ("Play", "Pause"))
    play.click()
    expect(pause).to_be_visible()
    follow(page, "#w.explorer=position:70")
    assert play.is_visible() and tick(page, PACE) == 0
    assert readouts(played) == says(70, 8)
    play.click()
    expect(pause).to_be_visible()
    played.get_by_role("button", name="Reset").click()
    assert play.is_visible() and tick(page, PACE) == 0
    assert readouts(played) == says(40, 8)


@everywhere
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    slider(explorer, "hand m").focus()
    page.keyboard.press("End")
    slider(explorer, "base").focus()
    page.keyboard.press("Home")
    link = copied(explorer)
    assert link == "#w.explorer=pair:31;base:10"
    fresh = widget(open_page(link, **where), EXPLORER)
    assert readouts(fresh) == says(40, 31, 10)
    follow(fresh.page, "#w.explorer=position:1e9;pair:-3;base:0")
    assert readouts(fresh) == says(127, 0, 1)  # what it can mean


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
    for name in ("position i", "hand m", "base"):
        control = slider(widget(page, EXPLORER), name)
        once, thrice = work(control, step), work(control, step, moves=3)
        assert 0 < max(once) < 50, name  # and not each of the map's thousands of cells
        assert max(thrice) < 1.2 * max(once), name
