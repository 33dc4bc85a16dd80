"""PositionExplorer and RotaryDial in Chromium, on a built page: by pointer, touch and keyboard."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from attnbook.web import PositionExplorer, RotaryDial, format_number
from attnbook.web.rotary_dial.widget import positioned
from tests.browser.widget_pages import (
    copied,
    dial_says,
    everywhere,
    explorer_says,
    follow,
    settle,
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
        RotaryDial((1.5, 0.4), (-0.3, 1.1), i=12, j=7, title="Distance alone", name="dial"),
        RotaryDial((0, 0), (1.2345, 1), theta=1.5, mode="add", words=["<b>", "we"], name="odd"),
    ]


EXPLORER, SMALL, LARGEST, DIAL, ODD = range(5)
PACE = 450  # milliseconds


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


def texts(widget: Locator) -> list[str]:
    settle(widget.page)
    return widget.locator(".attn-readout").all_text_contents()


def slider(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name, exact=True)


def box_of(place: Locator) -> FloatRect:
    """Where an element is in the window, scrolled into view."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box
    return box


def drag(page: Page, *points: tuple[float, float]) -> None:
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=3)
    page.mouse.up()
    settle(page)


# ---- PositionExplorer


def says(position: int, pair: int, base: float = 1e4, n: int = 128, d_model: int = 64) -> list[str]:
    return explorer_says(position, pair, base, n, d_model)


@everywhere
def test_explorer_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    assert texts(explorer) == says(40, 8)
    assert "62.8 positions" in texts(explorer)[0]
    slider(explorer, "position i").focus()
    page.keyboard.press("ArrowRight")
    assert texts(explorer) == says(41, 8)
    page.keyboard.press("End")
    assert texts(explorer) == says(127, 8)
    slider(explorer, "pair m").focus()
    page.keyboard.press("End")
    assert texts(explorer) == says(127, 31)
    assert "47,117 positions" in texts(explorer)[0]
    spoken = slider(explorer, "pair m").get_attribute("aria-valuetext")
    assert spoken == "31, wavelength 47,117 positions"
    page.keyboard.press("Home")
    slider(explorer, "base").focus()
    page.keyboard.press("End")
    assert texts(explorer) == says(127, 0, 1e6)
    page.keyboard.press("Home")
    assert texts(explorer) == says(127, 0, 10)
    explorer.get_by_role("button", name="Reset").click()
    assert texts(explorer) == says(40, 8)
    assert texts(widget(page, SMALL)) == says(0, 0, 100, 9, 6)
    slider(widget(page, LARGEST), "pair m").focus()
    page.keyboard.press("End")
    assert texts(widget(page, LARGEST)) == says(0, 255, n=512, d_model=512)


@everywhere
def test_explorer_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    box = box_of(explorer.locator("canvas"))

    def cell(i: int, pair: int) -> tuple[float, float]:
        x, y = (i + 0.5) / 128, (pair + 0.5) / 32
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    page.mouse.click(*cell(100, 20))
    assert texts(explorer) == says(100, 20)
    drag(page, cell(100, 20), cell(60, 10), cell(5, 3))
    assert texts(explorer) == says(5, 3)
    drag(page, cell(5, 3), (box["x"] - 30, box["y"] + 3))  # beyond the edge the last one stays
    settle(page)
    assert int(explorer.locator(".attn-value").first.text_content() or -1) <= 5
    box = box_of(explorer.locator(".attn-graph").first)
    page.mouse.click(box["x"] + 77.5 / 128 * box["width"], box["y"] + 20)
    assert texts(explorer)[1] == says(77, 0)[1]


def points(widget: Locator, look: str) -> np.ndarray:
    """[point, (x, y)] of a curve, 0..1 from the lower left corner."""
    settle(widget.page)
    text = widget.locator(f"polyline.attn-{look}").last.get_attribute("points") or ""
    x, y = np.array([point.split(",") for point in text.split()], dtype=float).T / 100
    return np.stack([x, 1 - y], axis=-1)


def test_explorer_slides_along_one_curve(open_page: Callable[..., Page]) -> None:
    page = open_page()
    explorer = widget(page, EXPLORER)
    p = vectors(128, 64, 1e4)
    whole = explorer.locator(".attn-graph").nth(1).locator(".attn-faint")
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
    return [f"pair {m}{sine}\n{cosine}" for m, (sine, cosine) in zip(pairs, both, strict=True)]


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
    assert texts(explorer) == says(41, 22)
    chosen = explorer.locator(".attn-positions-mine")
    assert (chosen.text_content() or "").startswith("pair 22")
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


# ---- RotaryDial

START: dict[str, Any] = {"q": (1.5, 0.4), "k": (-0.3, 1.1), "i": 12, "j": 7, "theta": 0.2}


def tells(mode: str = "rotate", **changes: Any) -> list[str]:
    return dial_says(**{**START, **changes}, mode=mode)


def handle(dial: Locator, name: str) -> Locator:
    return dial.locator(f".attn-handle.attn-{name}")


@everywhere
def test_dial_moves_both_together(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    dial = widget(page, DIAL)
    assert texts(dial) == tells()
    score = dial.locator(".attn-readout b").first
    before = score.text_content()
    mode = dial.get_by_role("combobox", name="a position")
    forth = dial.get_by_role("button", name="Move both by one")
    back = dial.get_by_role("button", name="… and back")
    for step in (1, 2, 3):
        forth.click()
        assert texts(dial) == tells(i=12 + step, j=7 + step)
        assert score.text_content() == before
    mode.select_option("is added to its vector")
    assert texts(dial) == tells("add", i=15, j=10)
    added = score.text_content()
    back.click()
    assert texts(dial) == tells("add", i=14, j=9)
    assert score.text_content() != added
    assert dial.locator("[aria-live=polite]").text_content() == texts(dial)[0]
    slider(dial, "i, of q").focus()
    page.keyboard.press("End")
    assert texts(dial) == tells("add", i=64, j=9)
    play = dial.get_by_role("button", name="Play")
    assert forth.is_disabled() and back.is_enabled() and play.is_enabled()
    slider(dial, "j, of k").focus()
    page.keyboard.press("Home")
    assert texts(dial) == tells("add", i=64, j=0)
    assert back.is_disabled() and play.is_disabled()  # they cannot move at this distance
    dial.get_by_role("button", name="Reset").click()
    assert texts(dial) == tells() and play.is_enabled()


@everywhere
def test_dial_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    dial = widget(page, DIAL)
    handle(dial, "q").focus()
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    assert texts(dial) == tells(q=(1.3, 0.5))
    assert handle(dial, "q").get_attribute("aria-label") == "q at 1.30, 0.50; arrow keys move it"
    handle(dial, "k").focus()
    for _ in range(12):  # stops at length 2
        page.keyboard.press("ArrowUp")
    told = handle(dial, "k").get_attribute("aria-label") or ""
    x, y = map(float, re.findall(r"-?[0-9.]+", told))
    assert 1.97 < np.hypot(x, y) <= 2
    assert texts(dial) == tells(q=(1.3, 0.5), k=(x, y))
    slider(dial, "angle θ").focus()
    page.keyboard.press("ArrowRight")
    assert texts(dial) == tells(q=(1.3, 0.5), k=(x, y), theta=0.21)
    page.keyboard.press("Home")
    assert texts(dial) == tells(q=(1.3, 0.5), k=(x, y), theta=0)


@everywhere
def test_dial_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    dial = widget(page, DIAL)
    box = box_of(dial.locator(".attn-plane svg"))

    def spot(x: float, y: float) -> tuple[float, float]:
        unit = box["width"] / 6.1
        return box["x"] + box["width"] / 2 + x * unit, box["y"] + box["height"] / 2 - y * unit

    drag(page, spot(1.5, 0.4), spot(1, -1), spot(0.5, -1.5))
    spoken = handle(dial, "q").get_attribute("aria-label") or ""
    x, y = (float(part) for part in spoken[5:].split(";")[0].split(","))
    assert (x, y) == (pytest.approx(0.5, abs=0.03), pytest.approx(-1.5, abs=0.03))
    assert texts(dial) == tells(q=(x, y))
    drag(page, spot(-0.3, 1.1), spot(-2.5, 2.5))  # beyond the longest: its direction stays
    spoken = handle(dial, "k").get_attribute("aria-label") or ""
    k = [float(part) for part in spoken[5:].split(";")[0].split(",")]
    assert k == pytest.approx([-np.sqrt(2), np.sqrt(2)], abs=0.03)
    assert texts(dial) == tells(q=(x, y), k=tuple(k))


def test_a_finger_drags_what_it_may_and_scrolls_the_rest(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    dial, explorer = widget(page, DIAL), widget(page, EXPLORER)
    box = box_of(handle(dial, "q"))
    x, y = box["x"] + 17, box["y"] + 17
    before, top = texts(dial), page.evaluate("scrollY")
    touch(page, [(x, y + 6 * step) for step in range(9)])
    assert texts(dial) != before and page.evaluate("scrollY") == top
    box = box_of(explorer.locator("canvas"))
    x, y = box["x"] + 30, box["y"] + 20
    touch(page, [(x + 10 * step, y) for step in range(9)])
    i = int((110 / box["width"]) * 128)
    assert texts(explorer)[1].startswith(f"p{i} · p{i}")
    top = page.evaluate("scrollY")
    touch(page, [(x, y + 60 - 12 * step) for step in range(9)])
    page.wait_for_function("(top) => scrollY > top + 20", arg=top)


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
        assert texts(dial) == tells(i=i, j=i - 5)
        if i == 64:  # on from the start
            dial.get_by_role("button", name="Play").click()
        else:
            assert tick(page, PACE) == 1
    dial.get_by_role("button", name="Pause").click()
    assert tick(page, PACE) == 0
    assert texts(dial) == tells(i=7, j=2)
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
    assert texts(odd) == tells("add", **given)
    odd.get_by_role("combobox", name="a position").select_option("rotates its vector")
    assert texts(odd)[1] == "All 65 pairs with i − j = 0: the same score, 0.000"
    assert "NaN" not in odd.evaluate("(root) => root.innerHTML")
    follow(page, "#w.odd=i:99;j:-4;theta:9;mode:7;q:5,0;k:1")
    q = (2, 0)  # what it can mean
    assert texts(odd) == tells(q=q, k=(1, 0), i=64, j=0, theta=np.pi)
    odd.get_by_role("button", name="Reset").click()
    assert texts(odd) == tells("add", **given)  # as given, not rounded


# ---- both


@pytest.mark.parametrize(
    ("n", "link", "there", "start"),
    [
        (EXPLORER, "#w.explorer=position:70", says(70, 8), says(40, 8)),
        (DIAL, "#w.dial=i:30;j:20", tells(i=30, j=20), tells()),
    ],
)
def test_a_link_and_reset_end_the_play(
    open_page: Callable[..., Page], n: int, link: str, there: list[str], start: list[str]
) -> None:
    page = open_page()
    played = widget(page, n)
    stop_clocks(page)
    play, pause = (played.get_by_role("button", name=name) for name in ("Play", "Pause"))
    for said in (there, start):
        play.click()
        expect(pause).to_be_visible()
        if said is there:
            follow(page, link)
        else:
            played.get_by_role("button", name="Reset").click()
        assert play.is_visible() and tick(page, PACE) == 0
        assert texts(played) == said


@everywhere
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    slider(explorer, "pair m").focus()
    page.keyboard.press("End")
    slider(explorer, "base").focus()
    page.keyboard.press("Home")
    link = copied(explorer)
    assert link == "#w.explorer=pair:31;base:10"
    fresh = widget(open_page(link, **where), EXPLORER)
    assert texts(fresh) == says(40, 31, 10)
    follow(fresh.page, "#w.explorer=position:1e9;pair:-3;base:0")
    assert texts(fresh) == says(127, 0, 1)  # what it can mean
    dial = widget(page, DIAL)
    handle(dial, "q").focus()
    page.keyboard.press("ArrowDown")
    dial.get_by_role("button", name="Move both by one").click()
    dial.get_by_role("combobox", name="a position").select_option("is added to its vector")
    link = "#w.dial=q:1.5,0.3;i:13;j:8;mode:1"
    assert copied(dial) == f"{link}&w.explorer=pair:31;base:10"
    fresh = widget(open_page(link, **where), DIAL)
    assert texts(fresh) == tells("add", q=(1.5, 0.3), i=13, j=8)


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
    steps = [(EXPLORER, name) for name in ("position i", "pair m", "base")]
    step = """(n) => {
      node.value = Number(node.max) * n / 42;
      node.dispatchEvent(new Event("input"));
    }"""
    for n, name in [*steps, (DIAL, "i, of q"), (DIAL, "angle θ")]:
        control = slider(widget(page, n), name)
        once, thrice = work(control, step), work(control, step, moves=3)
        assert 0 < max(once) < 50, name  # and not each of the map's thousands of cells
        assert max(thrice) < 1.2 * max(once), name
