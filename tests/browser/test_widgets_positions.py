"""PositionExplorer in Chromium, on a built page: numbers by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.widgets import PositionExplorer, format_number
from tests.browser.conftest import ROOT
from tests.browser.widget_pages import EVERYWHERE, settle, widget

AXE = ROOT / "node_modules/axe-core/axe.min.js"


def widgets() -> list[Any]:
    return [
        PositionExplorer(position=40, pair=8, title="One neighbourhood for all", name="explorer"),
        PositionExplorer(6, 9, base=100, name="small"),
        PositionExplorer(512, 512, name="largest"),
    ]


EXPLORER, SMALL, LARGEST = range(3)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


@pytest.fixture
def open_page(page_factory: Callable[..., Page], path: Path) -> Callable[..., Page]:
    return lambda fragment="", **where: page_factory(f"{path}{fragment}", **where)


def texts(widget: Locator) -> list[str]:
    settle(widget.page)
    return widget.locator(".attn-readout").all_text_contents()


def slider(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name, exact=True)


def drag(page: Page, *points: tuple[float, float]) -> None:
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=3)
    page.mouse.up()


# ---- PositionExplorer


def vectors(n: int, d_model: int, base: float) -> np.ndarray:
    """[position dimension], in double precision."""
    angles = np.arange(n)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d_model)


def says(position: int, pair: int, base: float = 1e4, n: int = 128, d_model: int = 64) -> list[str]:
    p = vectors(n, d_model, base)
    wavelength = 2 * np.pi * base ** (2 * pair / d_model)
    long = f"{wavelength:.1f}" if wavelength < 1000 else f"{wavelength:,.0f}"
    s, c = (format_number(value) for value in p[position, 2 * pair : 2 * pair + 2])
    products = p @ p[position]
    others = [position + step if position + step < n else position - step for step in (1, 10)]
    away = [
        f"{step} away {format_number(products[j], 2)}"
        for step, j in zip((1, 10), others, strict=True)
        if j >= 0
    ]
    same = f"p{position} · p{position} = {format_number(products[position], 2)}"
    return [
        f"Wavelength {long} positions · at position {position}: sine {s}, cosine {c}",
        " · ".join([same, *away]),
    ]


@EVERYWHERE
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


@EVERYWHERE
def test_explorer_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    picture = explorer.locator("canvas")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    assert box

    def cell(i: int, pair: int) -> tuple[float, float]:
        return box["x"] + (i + 0.5) * box["width"] / 128, box["y"] + (pair + 0.5) * box[
            "height"
        ] / 32

    page.mouse.click(*cell(100, 20))
    assert texts(explorer) == says(100, 20)
    drag(page, cell(100, 20), cell(60, 10), cell(5, 3))
    assert texts(explorer) == says(5, 3)
    drag(page, cell(5, 3), (box["x"] - 30, box["y"] + 3))  # beyond the edge the last one stays
    assert int(explorer.locator(".attn-value").first.text_content() or -1) <= 5
    waves = explorer.locator(".attn-graph").first
    waves.scroll_into_view_if_needed()
    box = waves.bounding_box()
    assert box
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
        page.evaluate(f"location.hash = '#w.explorer=position:{i}'")
        mine = points(explorer, "mine")
        assert np.allclose(mine[:, 1], p @ p[i] / 32, atol=1e-4)  # from 0 to d/2
        assert np.allclose(mine, every[127 - i : 255 - i], atol=1e-3)
    page.evaluate("location.hash = '#w.explorer=position:0;base:10'")
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


# ---- both


@EVERYWHERE
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    explorer = widget(page, EXPLORER)
    slider(explorer, "pair m").focus()
    page.keyboard.press("End")
    slider(explorer, "base").focus()
    page.keyboard.press("Home")
    explorer.get_by_role("button", name="Copy link").click()
    explorer.get_by_text("Link copied").wait_for()
    assert page.url.endswith("#w.explorer=pair:31;base:10")
    fresh = widget(open_page("#" + page.url.split("#")[1], **where), EXPLORER)
    assert texts(fresh) == says(40, 31, 10)
    fresh.page.evaluate("location.hash = '#w.explorer=position:1e9;pair:-3;base:0'")
    assert texts(fresh) == says(127, 0, 1)  # what it can mean


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
    page.add_script_tag(path=AXE)
    found = page.evaluate(
        """async () => (await axe.run(".attn", { resultTypes: ["violations"] })).violations
          .map((fault) => [fault.id, ...fault.nodes.map((node) => node.html)])"""
    )
    assert found == []


def test_redrawn_within_a_frame(open_page: Callable[..., Page]) -> None:
    """What one step of a slider costs: its handler, the drawing it asks for, and the layout."""
    page = open_page()
    for n, name in ((EXPLORER, "position i"), (EXPLORER, "pair m"), (EXPLORER, "base")):
        times = slider(widget(page, n), name).evaluate(
            """async (input) => {
              const times = [], real = requestAnimationFrame;
              let drawing;
              globalThis.requestAnimationFrame = (draw) => real(() => {
                const start = performance.now();
                draw();
                input.getBoundingClientRect();
                drawing = performance.now() - start;
              });
              for (let step = 1; step <= 41; step++) {
                const start = performance.now();
                input.value = Number(input.max) * step / 42;
                input.dispatchEvent(new Event("input"));
                const handling = performance.now() - start;
                await new Promise((done) => real(() => setTimeout(done)));
                times.push(handling + drawing);
              }
              globalThis.requestAnimationFrame = real;
              return times;
            }"""
        )
        assert np.median(times) < 16, (n, name)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_without_javascript_a_picture(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(scheme=scheme, javascript=False)
    pictures = page.locator("noscript img").all()
    assert [each.get_attribute("alt") for each in pictures] == list(map(repr, widgets()))
    assert all((each.bounding_box() or {"width": 0})["width"] > 100 for each in pictures)
