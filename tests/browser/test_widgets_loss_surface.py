"""LossSurface in Chromium, on a built page: by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.web import LossSurface, format_number
from tests.browser.widget_pages import (
    HOSTILE,
    copied,
    everywhere,
    follow,
    settle,
    surface_says,
    touch,
    violations,
    widget,
    work,
)
from tests.helpers.widgets import bowls

WALL = np.full((1, 9, 9), 0.1)
WALL[:, :, :2] = 9  # along the side that is in front before anything is turned


def widgets() -> list[Any]:
    return [
        LossSurface(bowls(), ["with", "without"], extent=3, title="Smoother", name="bowls"),
        LossSurface(WALL, [HOSTILE[0]], extent=0.5, log=False, name="wall"),
        LossSurface(bowls(41, 3) ** 5, ["a", "b", "c"], name="large"),
    ]


BOWLS, WALLED, LARGE = range(3)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


# ---- LossSurface


def angles(surface: Locator) -> tuple[int, int]:
    """What the sliders show and say: turned and tilted by so many degrees."""
    settle(surface.page)
    sliders = surface.get_by_role("slider").all()
    spoken = [slider.get_attribute("aria-valuetext") for slider in sliders]
    assert surface.locator(".attn-value").all_text_contents() == spoken
    turn, tilt = (int((text or "").rstrip("°")) for text in spoken)
    return turn, tilt


@everywhere
def test_surface_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    surface = widget(page, BOWLS)
    assert angles(surface) == (35, 30)
    assert surface.locator(".attn-readout").all_text_contents() == surface_says(widgets()[BOWLS])
    surface.get_by_role("application").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    assert angles(surface) == (40, 35)
    assert surface.locator("[aria-live=polite]").text_content() == "turned 40°, tilted 35°"
    for _ in range(30):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
    assert angles(surface) == (-170, 0)  # all the way round, and no deeper than the floor
    surface.get_by_role("slider", name="tilt").press("End")
    surface.get_by_role("slider", name="turn").press("ArrowLeft")
    assert angles(surface) == (-171, 90)
    surface.get_by_role("button", name="Reset").click()
    assert angles(surface) == (35, 30)
    assert angles(widget(page, WALLED)) == (35, 30)  # another widget stays as it was
    assert page.title() != "hacked"


def look(page: Page, name: str, **state: int) -> None:
    text = ";".join(f"{trait}:{value}" for trait, value in state.items())
    follow(page, f"#w.{name}={text}")


def seen(x: float, y: float, z: Any, azimuth: float, elevation: float) -> np.ndarray:
    """Where a point is on the canvas, as fractions of its width and height.

    By turning with matrices: around the vertical axis, then the whole towards the viewer.
    """
    a, e = np.radians([azimuth, elevation])
    turn = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    tilt = np.array([[1, 0, 0], [0, np.sin(e), np.cos(e)]])
    right, up = tilt @ turn @ np.array([x, y, 1.2 * (z - 0.5)])
    return 0.5 + np.array([right, -up]) / (2 * 1.56)


def colour(canvas: Locator, place: np.ndarray) -> np.ndarray:
    """Red, green, blue and opacity at a place of the canvas."""
    pixel = canvas.evaluate(
        """(canvas, [x, y]) => [...canvas.getContext("2d").getImageData(
          Math.round(x * canvas.width), Math.round(y * canvas.height), 1, 1).data]""",
        place.tolist(),
    )
    return np.array(pixel)


MARK = {"light": (184, 71, 11), "dark": (255, 166, 87)}
VIEWS = ((0, 0), (0, 90), (35, 30), (-100, 60), (180, 15))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_surface_marks_the_trained_weights(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page(theme=theme)
    losses = widgets()[BOWLS].surfaces
    canvases = widget(page, BOWLS).locator("canvas")
    places = []
    for log in (0, 1):
        f = np.log if log else np.array
        heights = (f(losses[:, 2, 2]) - f(losses.min())) / (f(losses.max()) - f(losses.min()))
        for azimuth, elevation in VIEWS:
            look(page, "bowls", azimuth=azimuth, elevation=elevation, log=log)
            places = [seen(0, 0, height, azimuth, elevation) for height in heights]
            for n, place in enumerate(places):
                pixel = tuple(colour(canvases.nth(n), place))
                assert pixel == (*MARK[theme], 255), (n, log, azimuth, elevation)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    settle(page)
    assert tuple(colour(canvases.first, places[0])) == (*MARK["dark"], 255)  # painted anew


def shades(page: Page, n: int, losses: np.ndarray, **state: int) -> np.ndarray:
    """The brightness of each quad [i, j] of a surface that is looked at from above."""
    look(page, "bowls", elevation=90, **state)
    side = len(losses) - 1
    centres = (np.arange(side) + 0.3) / side * 2 - 1  # off the dot
    canvas = widget(page, BOWLS).locator("canvas").nth(n)
    azimuth = state["azimuth"]
    return np.array(
        [[colour(canvas, seen(x, y, 0, azimuth, 90))[:3].sum() for y in centres] for x in centres]
    )


@pytest.mark.parametrize(("azimuth", "log"), [(0, 0), (60, 0), (-120, 1)])
def test_surface_colours_by_loss(open_page: Callable[..., Page], azimuth: int, log: int) -> None:
    page = open_page()
    losses = widgets()[BOWLS].surfaces
    heights = np.log(losses) if log else losses
    heights = (heights - heights.min()) / np.ptp(heights)
    for n, own in enumerate(heights):
        mean = (own[1:, 1:] + own[1:, :-1] + own[:-1, 1:] + own[:-1, :-1]) / 4
        dark = -shades(page, n, own, azimuth=azimuth, log=log)
        order = np.argsort(mean, axis=None)
        assert (np.diff(dark.ravel()[order]) >= -6).all()  # the higher the loss, the deeper
        assert np.corrcoef(dark.ravel(), mean.ravel())[0, 1] > 0.95
    first, second = (shades(page, n, heights[n], azimuth=azimuth, log=log) for n in range(2))
    assert first[0, 2] > second[0, 2] + 10  # one scale: where the second is higher, it is deeper


def test_what_is_nearer_hides_what_is_behind(open_page: Callable[..., Page]) -> None:
    page = open_page()
    canvas = widget(page, WALLED).locator("canvas")
    for turned, visible in ((0, False), (180, True), (90, True), (-90, True), (20, False)):
        look(page, "wall", azimuth=turned, elevation=15)
        floor = colour(canvas, seen(0.13, 0.3, 0, turned, 15))[:3].sum()
        assert (floor > 500) == visible, turned  # low losses are light, the wall's are deep
    look(page, "wall", azimuth=0, elevation=90)
    assert colour(canvas, seen(0.13, 0.3, 0, 0, 90))[:3].sum() > 500


def place_on(canvas: Locator, place: np.ndarray) -> tuple[float, float]:
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box
    return box["x"] + place[0] * box["width"], box["y"] + place[1] * box["height"]


def test_surfaces_turn_together_by_dragging(open_page: Callable[..., Page]) -> None:
    page = open_page()
    surface = widget(page, BOWLS)
    pictures = "(all) => all.map((canvas) => canvas.toDataURL())"
    before = surface.locator("canvas").evaluate_all(pictures)
    x, y = place_on(surface.locator("canvas").nth(1), np.array([0.5, 0.5]))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 20, steps=4)
    assert angles(surface) == (65, 40)  # half a degree a pixel
    page.mouse.move(x - 10, y + 300, steps=4)
    page.mouse.up()
    assert angles(surface) == (30, 90)
    page.mouse.move(x, y)  # with no button nothing turns
    assert angles(surface) == (30, 90)
    after = surface.locator("canvas").evaluate_all(pictures)
    assert all(new != old for new, old in zip(after, before, strict=True))


@everywhere
def test_surface_reads_the_point(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    look(page, "bowls", azimuth=20, elevation=70)
    surface, kept = widget(page, BOWLS), widgets()[BOWLS].surfaces
    legend = surface.locator(".attn-legend")
    assert (legend.text_content() or "").startswith(
        "Dot: the trained parameters; from there up to 3"
    )
    for n, (i, j) in ((0, (1, 3)), (1, (4, 0)), (1, (2, 2))):
        height = (kept[n, i, j] - kept.min()) / (kept.max() - kept.min())
        place = seen(i / 2 - 1, j / 2 - 1, height, 20, 70)
        canvas = surface.locator("canvas").nth(n)
        if where["width"] < 600:
            page.touchscreen.tap(*place_on(canvas, place))
        else:
            page.mouse.move(*place_on(canvas, place))
        settle(page)
        at = ", ".join(format_number(3 * (c / 2 - 1), 2).replace("-", "−") for c in (i, j))
        first, second = (format_number(float(x)) for x in kept[:, i, j])
        assert legend.text_content() == f"At {at}: with {first} · without {second}"
    assert angles(surface) == (20, 70)
    if where["width"] > 600:
        page.mouse.move(2, 2)
        settle(page)
        assert (legend.text_content() or "").startswith("Dot:")


def test_a_finger_turns_sideways_and_scrolls_upwards(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    surface = widget(page, BOWLS)
    x, y = place_on(surface.locator("canvas").first, np.array([0.3, 0.5]))
    top = page.evaluate("scrollY")
    touch(page, [(x + 12 * step, y) for step in range(9)])
    turned, tilted = angles(surface)
    assert turned > 60 and tilted == 30 and page.evaluate("scrollY") == top
    touch(page, [(x, y - 12 * step) for step in range(9)])
    page.wait_for_function("(top) => scrollY > top + 20", arg=top)
    assert angles(surface)[1] == 30


@pytest.mark.parametrize(("width", "stacked"), [(1280, False), (390, True)])
def test_surfaces_stand_side_by_side(
    open_page: Callable[..., Page], width: int, stacked: bool
) -> None:
    page = open_page(width=width)
    boxes = [canvas.bounding_box() for canvas in widget(page, BOWLS).locator("canvas").all()]
    assert boxes[0] and boxes[1]
    assert (boxes[1]["y"] > boxes[0]["y"] + 200) == stacked
    assert (boxes[1]["x"] > boxes[0]["x"] + 200) == (not stacked)
    assert boxes[0]["width"] == pytest.approx(boxes[0]["height"], abs=1) and boxes[0]["width"] > 250
    three = [canvas.bounding_box() for canvas in widget(page, LARGE).locator("canvas").all()]
    assert len({round(box["y"]) for box in three if box}) == (3 if stacked else 1)
    readouts = widget(page, LARGE).locator(".attn-readout").all_text_contents()
    assert readouts == surface_says(widgets()[LARGE])
    assert widget(page, LARGE).get_by_role("checkbox").is_checked()  # the range is great
    assert not widget(page, BOWLS).get_by_role("checkbox").is_checked()


# ---- all


@everywhere
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    surface = widget(page, BOWLS)
    surface.get_by_role("slider", name="turn").press("Home")
    surface.get_by_role("checkbox").click()
    assert copied(surface) == "#w.bowls=azimuth:-180;log:1"
    fresh = widget(open_page("#w.bowls=azimuth:-180;log:1", **where), BOWLS)
    assert angles(fresh) == (-180, 30) and fresh.get_by_role("checkbox").is_checked()
    look(fresh.page, "bowls", azimuth=999, elevation=-9)  # what it can mean
    assert angles(fresh) == (180, 0)


def test_narrow_page_is_comfortable(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390, theme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for control in page.locator(".attn button, .attn select, .attn input").all():
        box = control.bounding_box()
        small = 20 if control.get_attribute("type") == "checkbox" else 32  # its label is as tall
        assert box and box["height"] >= small and box["width"] >= small
    actions = page.locator(".attn input[type=range], .attn canvas").evaluate_all(
        "(all) => all.map((node) => getComputedStyle(node).touchAction)"
    )
    assert set(actions) == {"pan-y"}  # dragging sideways leaves scrolling alone


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page(theme=theme)
    assert violations(page) == []


def test_a_turn_draws_each_point_once(open_page: Callable[..., Page]) -> None:
    """A few strokes a point, of few points and of many, once a frame however often the pointer
    moved."""
    page = open_page()
    turn = """(n) => {
      node.setPointerCapture = () => {};
      const at = { bubbles: true, buttons: 1, clientX: 100 + 2 * n, clientY: 100 + n };
      if (n === 1) node.dispatchEvent(new PointerEvent("pointerdown", at));
      node.dispatchEvent(new PointerEvent("pointermove", at));
    }"""
    for n in (BOWLS, LARGE):
        canvas = widget(page, n).locator("canvas").first
        once, thrice = work(canvas, turn), work(canvas, turn, moves=3)
        assert angles(widget(page, n)) != (35, 30)
        points = widgets()[n].surfaces.size
        assert points < max(once) < 10 * points
        assert max(thrice) < 1.1 * max(once)
