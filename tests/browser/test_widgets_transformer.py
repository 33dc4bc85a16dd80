"""BlockDiagram in Chromium, on a built page: by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.widgets import BlockDiagram
from tests.browser.conftest import ROOT
from tests.browser.widget_pages import EVERYWHERE, HOSTILE, diagram_says, settle, widget
from tests.test_widgets import RUNS, run

AXE = ROOT / "node_modules/axe-core/axe.min.js"
ODD = [run(loss=[0.5, 0, 0], exact=[1], said=(HOSTILE[0], HOSTILE[4]))]
ODD += [{**ODD[0], "off": [part], "exact": [0.5]} for part in ("heads", "feed-forward", "norm")]


def widgets() -> list[Any]:
    return [
        BlockDiagram(RUNS, title="Every part earns its place", name="block"),
        BlockDiagram(ODD, norm="post", n_heads=8, n_layers=6, name="odd"),
    ]


BLOCK, POST = range(2)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


@pytest.fixture
def open_page(page_factory: Callable[..., Page], path: Path) -> Callable[..., Page]:
    return lambda fragment="", **where: page_factory(f"{path}{fragment}", **where)


# ---- BlockDiagram


def switch(diagram: Locator, name: str) -> Locator:
    return diagram.get_by_role("button", name=name, exact=True)


def assert_off(diagram: Locator, part: str, runs: list[dict[str, Any]] = RUNS, n: int = 4) -> None:
    """That this part alone is off, in every place, and its run is told."""
    settle(diagram.page)
    readout = diagram.locator(".attn-readout").text_content()
    assert readout == diagram_says(runs, part, n)
    buttons = diagram.locator("[aria-pressed]").evaluate_all(
        "(all) => all.map((e) => [e.dataset.part, e.ariaPressed, e.tagName])"
    )
    parts = {run["off"][0] for run in runs[1:]}
    assert {name: pressed for name, pressed, _ in buttons} == {
        name: str(name != part).lower() for name in parts
    }
    assert len(buttons) == len(parts) and {tag for *_, tag in buttons} == {"BUTTON"}
    crossed = diagram.locator(".attn-off").evaluate_all("(all) => all.map((e) => e.dataset.part)")
    assert set(crossed) == ({part} if part else set())
    places = diagram.locator(f".attn-part[data-part='{part}']").count() if part else 0
    assert diagram.locator(".attn-part.attn-off").count() == places


@EVERYWHERE
def test_diagram_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    diagram = widget(page, BLOCK)
    assert_off(diagram, "")
    switch(diagram, "Add residual connection").focus()
    page.keyboard.press("Space")
    assert_off(diagram, "residual")
    said = diagram.locator("[aria-live=polite]").text_content()
    assert said == "Without residual connections: exactly right 0.250 · whole model 0.995"
    page.keyboard.press("Tab")  # the next part of the diagram that has a run
    page.keyboard.press("Enter")
    assert_off(diagram, "mask")  # and the residual connections are on again
    page.keyboard.press("Enter")
    assert_off(diagram, "")
    switch(diagram, "+ Positions").press("Enter")
    assert_off(diagram, "positions")
    diagram.get_by_role("button", name="Reset").click()
    assert_off(diagram, "")
    odd = widget(page, POST)
    switch(odd, "8 heads").press("Enter")
    assert_off(odd, "heads", ODD, 8)
    assert "With one head, not 8" in (odd.locator(".attn-readout").text_content() or "")


@EVERYWHERE
def test_diagram_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    diagram = widget(page, BLOCK)
    tap = "tap" if where["width"] < 600 else "click"
    every = diagram.locator(".attn-part[data-part=residual]")
    assert every.count() == 5  # two of the encoder, three of the decoder
    for n in range(5):  # any place will do
        getattr(every.nth(n), tap)()
        assert_off(diagram, "residual")
        getattr(diagram.locator(".attn-part[data-part=positions]").nth(n % 2), tap)()
        assert_off(diagram, "positions")
    for part in ("scale", "norm", "cross-attention"):  # drawn, but there is no run without them
        fixed = diagram.locator(f".attn-part[data-part={part}]")
        assert fixed.first.evaluate("(node) => node.tagName") == "SPAN"
        getattr(fixed.first, tap)()
        assert_off(diagram, "positions")


def curves(diagram: Locator, look: str) -> list[np.ndarray]:
    """The points [point, (x, y)] of each curve that is drawn, the seeds' first."""
    settle(diagram.page)
    lines = diagram.locator(f"polyline.attn-{look}").evaluate_all(
        "(all) => all.map((line) => line.getAttribute('points'))"
    )
    points = [np.array([p.split(",") for p in line.split()], dtype=float) for line in lines if line]
    return [np.stack([xy[:, 0], 100 - xy[:, 1]], -1) / 100 for xy in points]


def wanted(loss: Any) -> np.ndarray:
    """A curve of the first diagram: its losses go from 0.01 to 4."""
    height = np.log(np.maximum(loss, 0.01) / 0.01) / np.log(4 / 0.01)
    return np.stack([[0, 0.25, 1], 0.03 + 0.94 * height], -1)


def test_diagram_draws_the_losses(open_page: Callable[..., Page]) -> None:
    diagram = widget(open_page(), BLOCK)
    whole = [*RUNS[0]["loss"], np.mean(RUNS[0]["loss"], 0)]
    assert np.allclose(curves(diagram, "run"), list(map(wanted, whole)), atol=1e-3)
    assert curves(diagram, "whole") == []
    for part, n in (("mask", 1), ("Add residual connection", 2), ("+ Positions", 3)):
        switch(diagram, part).click()
        loss = np.atleast_2d(RUNS[n]["loss"])
        lines = [*loss, loss.mean(0)] if len(loss) > 1 else [loss[0]]
        assert np.allclose(curves(diagram, "run"), list(map(wanted, lines)), atol=1e-3)
        assert np.allclose(curves(diagram, "whole"), list(map(wanted, whole)), atol=1e-3)
    graph = diagram.locator(".attn-graph")
    assert graph.evaluate("(node) => [node.dataset.high, node.dataset.low]") == ["4", "0.01"]
    assert diagram.locator(".attn-axis").inner_text().split("\n") == ["0", "100", "step 200"]
    assert "Stored runs" in (diagram.locator(".attn-legend").first.text_content() or "")


def test_diagram_marks_wrong_words(open_page: Callable[..., Page]) -> None:
    page = open_page()
    diagram = widget(page, BLOCK)

    def told() -> list[str]:
        settle(page)
        return [" ".join(text.split()) for text in diagram.locator("li p").all_text_contents()]

    right = "✓ model, right: two hundred", "✓ model, right: forty"
    gold = "gold: two hundred", "gold: forty"
    assert told() == ["zweihundert", right[0], gold[0], "vierzig", right[1], gold[1]]
    switch(diagram, "mask").click()
    assert told()[1:3] == [
        "✗ model: two two (wrong) two (wrong)",
        "gold: two hundred (missing)",
    ]
    assert told()[4:] == ["✗ model: (nothing)", "gold: forty (missing)"]
    marks = diagram.locator(".attn-wrong .attn-token, .attn-missing .attn-token")
    lines = marks.evaluate_all("(all) => all.map((e) => getComputedStyle(e).textDecorationStyle)")
    assert lines == ["wavy", "wavy", "dotted", "dotted"]  # not told by colour alone
    switch(diagram, "Add residual connection").click()
    assert told()[1] == "✗ model: hundred <i>two</i> (wrong)"
    hostile = widget(page, POST).locator("li p").nth(1).text_content() or ""
    assert "<img" in hostile and page.title() != "hacked"


@pytest.mark.parametrize("width", [1280, 390])
def test_diagram_wires_meet_what_they_join(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    for n, outer in ((BLOCK, "residual"), (POST, "norm")):
        diagram = widget(page, n)
        wires, boxes = diagram.evaluate(
            """(root) => {
              const frame = root.querySelector(".attn-wires").getBoundingClientRect();
              const place = ({ left, right, top, bottom }) =>
                [left - frame.left, right - frame.left, top - frame.top, bottom - frame.top];
              const every = (selector, read) =>
                [...root.querySelectorAll(selector)].map((e) => [e.dataset.part, ...read(e)]);
              return [every(".attn-wire", (e) => [e.getAttribute("d")]),
                every(".attn-part", (e) => place(e.getBoundingClientRect()))];
            }"""
        )
        heads = [(part, *map(float, d.split("M")[2].split("l")[0].split())) for part, d in wires]
        for kind, count in (("residual", 5), ("cross-attention", 1), ("", 22 - 5 * (n == POST))):
            assert [part for part, *_ in heads].count(kind) == count
        (cross,) = {left for part, left, *_ in boxes if part == "cross-attention"}
        (x,) = {x for part, x, _ in heads if part == "cross-attention"}
        assert 0 <= cross - x <= 6  # at the frame around its box
        # Residual: at the left edge of the encoder's sums, and in the decoder at the right edge
        # of the sum, or of the norm that stands beside it.
        left = {(box[1], (box[3] + box[4]) / 2) for box in boxes if box[0] == "residual"}
        right = {(box[2], (box[3] + box[4]) / 2) for box in boxes if box[0] == outer}
        for number, (_, x, y) in enumerate(head for head in heads if head[0] == "residual"):
            edges = left if number < 2 else right
            assert min(np.hypot(x - a, y - b) for a, b in edges) < 1


def test_diagram_reads_on_a_phone(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    for n in (BLOCK, POST):
        parts = widget(page, n).locator(".attn-part")
        sizes = parts.evaluate_all(
            """(all) => all.map((e) => [e.textContent, e.scrollWidth - e.clientWidth,
              parseFloat(getComputedStyle(e).fontSize), e.getBoundingClientRect().height])"""
        )
        assert len(sizes) > 20
        for text, over, font, height in sizes:
            assert over <= 0 and font >= 11.5 and 32 <= height < 36, text
    diagram = widget(page, BLOCK)
    towers = [tower.bounding_box() for tower in diagram.locator(".attn-tower").all()]
    assert towers[0] and towers[1]
    assert towers[0]["x"] + towers[0]["width"] + 20 < towers[1]["x"]  # side by side


# ---- all


@EVERYWHERE
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    switch(widget(page, BLOCK), "mask").click()
    widget(page, BLOCK).get_by_role("button", name="Copy link").click()
    widget(page, BLOCK).get_by_text("Link copied").wait_for()
    assert page.url.endswith("#w.block=off:3")
    fresh = widget(open_page("#w.block=off:3", **where), BLOCK)
    assert_off(fresh, "mask")
    for nothing in ("off:9", "off:-2", "off:99", "off:0"):  # no such part, or no run without it
        fresh.page.evaluate(f"location.hash = '#w.block={nothing}'")
        assert_off(fresh, "")


def test_narrow_page_is_comfortable(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390, theme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for control in page.locator(".attn button, .attn select, .attn input").all():
        box = control.bounding_box()
        assert box and box["height"] >= 32 and box["width"] >= 32


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page("#w.block=off:3&w.odd=off:8", theme=theme)
    page.add_script_tag(path=AXE)
    found = page.evaluate(
        """async () => (await axe.run(".attn", { resultTypes: ["violations"] })).violations
          .map((fault) => [fault.id, ...fault.nodes.map((node) => node.html)])"""
    )
    assert found == []


def test_redrawn_within_a_frame(open_page: Callable[..., Page]) -> None:
    """What a switch costs: its handler, the drawing it asks for, and the layout."""
    page = open_page()
    times = switch(widget(page, BLOCK), "mask").evaluate(
        """async (button) => {
          const times = [];
          for (let n = 0; n < 41; n++) {
            const start = performance.now();
            button.click();
            button.getBoundingClientRect();
            times.push(performance.now() - start);
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          }
          return times;
        }"""
    )
    assert np.median(times) < 16


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_without_javascript_a_picture(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(scheme=scheme, javascript=False)
    pictures = page.locator("noscript img").all()
    assert [each.get_attribute("alt") for each in pictures] == list(map(repr, widgets()))
    assert all((each.bounding_box() or {"width": 0})["width"] > 100 for each in pictures)
