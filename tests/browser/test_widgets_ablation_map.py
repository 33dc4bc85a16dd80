"""AblationMap in Chromium: parts taken away by pointer, touch and keyboard, and what they cost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.web import AblationMap, format_number
from tests.browser.widget_pages import (
    HOSTILE,
    copied,
    everywhere,
    follow,
    settle,
    violations,
    widget,
    work,
)
from tests.helpers.widgets import RUNS, run

ODD = [run(loss=[0.5, 0, 0], exact=[1], said=(HOSTILE[0], HOSTILE[4]))]
ODD += [{**ODD[0], "off": [part], "exact": [0.5]} for part in ("heads", "feed-forward", "norm")]
WITHOUT = {
    "": "Whole model",
    "mask": "Without the causal mask",
    "add": "Without add (residual connections)",
    "norm": "Without layer norm",
    "heads": "With one head",
}


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    first = AblationMap(RUNS, title="Every part earns its place", name="block")
    return widget_page([first, AblationMap(ODD, name="odd")])


def switch(board: Locator, name: str) -> Locator:
    return board.get_by_role("button", name=name, exact=True)


def says(runs: list[dict[str, Any]], off: str) -> str:
    """The line of figures that must be shown."""
    share = {"".join(run["off"]): format_number(float(np.mean(run["exact"]))) for run in runs}
    exact = next(run["exact"] for run in runs if run["off"] == [off] * bool(off))
    seeds = ", ".join(format_number(float(x)) for x in exact)
    each = f" (seeds {seeds})" if len(exact) > 1 else ""
    rest = f"whole model {share['']}" if off else "press a part of the drawing to take it away"
    return f"{WITHOUT.get(off, f'Without {off}')}: exactly right {share[off]}{each} · {rest}"


def assert_off(board: Locator, part: str, runs: list[dict[str, Any]] = RUNS) -> None:
    """That this part alone is away, in every place, and its run is told."""
    settle(board.page)
    assert board.locator(".attn-rule").text_content() == says(runs, part)
    buttons = board.locator("[data-part][aria-pressed]").evaluate_all(
        "(all) => all.map((e) => [e.dataset.part, e.getAttribute('aria-pressed')])"
    )
    assert dict(buttons) == {run["off"][0]: str(run["off"] == [part]).lower() for run in runs[1:]}
    away = board.locator(".attn-away").evaluate_all("(all) => all.map((e) => e.dataset.part)")
    places = board.locator(f".attn-towers [data-part='{part}']").count() if part else 0
    assert away == [part] * places and bool(away) == bool(part)


@everywhere
def test_by_keyboard(page_factory: Callable[..., Page], path: Path, where: dict[str, Any]) -> None:
    page = page_factory(path, **where)
    board = widget(page, 0)
    assert_off(board, "")
    switch(board, "add").focus()
    page.keyboard.press("Space")
    assert_off(board, "add")
    said = board.locator("[aria-live=polite]").first.text_content()
    assert said == ("Without add (residual connections): exactly right 0.250 · whole model 0.995")
    switch(board, "mask: causal").press("Enter")
    assert_off(board, "mask")  # and add is there again
    page.keyboard.press("Enter")
    assert_off(board, "")
    switch(board, "+ place").press("Enter")
    assert_off(board, "positions")
    board.get_by_role("button", name="Reset").click()
    assert_off(board, "")
    odd = widget(page, 1)
    switch(odd, "4 heads").press("Enter")
    assert_off(odd, "heads", ODD)


@everywhere
def test_by_pointer(page_factory: Callable[..., Page], path: Path, where: dict[str, Any]) -> None:
    page = page_factory(path, **where)
    board = widget(page, 0)
    tap = "tap" if where["width"] < 600 else "click"
    every = board.locator(".attn-towers [data-part=add]")
    assert every.count() == 5  # two of the encoder, three of the decoder
    for n in range(5):  # any place will do
        getattr(every.nth(n), tap)()
        assert_off(board, "add")
        getattr(board.locator(".attn-towers [data-part=positions]").nth(n % 2), tap)()
        assert_off(board, "positions")
    for part in ("padding", "norm", "cross"):  # drawn, but there is no run without them
        fixed = board.locator(f".attn-towers [data-part={part}]").first
        assert fixed.get_attribute("role") is None
        getattr(fixed, tap)(force=True)  # padding lets a press through to the box that it stands in
        assert_off(board, "positions")


def curves(board: Locator, look: str) -> list[np.ndarray]:
    """The points [point, (x, y)] of each curve that is drawn, the seeds' first."""
    settle(board.page)
    lines = board.locator(f"polyline.attn-{look}").evaluate_all(
        "(all) => all.map((line) => line.getAttribute('points'))"
    )
    points = [np.array([p.split(",") for p in line.split()], dtype=float) for line in lines if line]
    return [np.stack([xy[:, 0], 100 - xy[:, 1]], -1) / 100 for xy in points]


def wanted(loss: Any) -> np.ndarray:
    """A curve of the first board: its losses go from 0.01 to 4."""
    height = np.log(np.maximum(loss, 0.01) / 0.01) / np.log(4 / 0.01)
    return np.stack([[0, 0.25, 1], 0.03 + 0.94 * height], -1)


def test_it_draws_the_losses(page_factory: Callable[..., Page], path: Path) -> None:
    board = widget(page_factory(path), 0)
    whole = [*RUNS[0]["loss"], np.mean(RUNS[0]["loss"], 0)]
    assert np.allclose(curves(board, "run"), list(map(wanted, whole)), atol=1e-3)
    assert curves(board, "whole") == []
    for part, n in (("mask: causal", 1), ("add", 2), ("+ place", 3)):
        switch(board, part).click()
        loss = np.atleast_2d(RUNS[n]["loss"])
        lines = [*loss, loss.mean(0)] if len(loss) > 1 else [loss[0]]
        assert np.allclose(curves(board, "run"), list(map(wanted, lines)), atol=1e-3)
        assert np.allclose(curves(board, "whole"), list(map(wanted, whole)), atol=1e-3)
    graph = board.locator(".attn-graph")
    assert graph.evaluate("(node) => [node.dataset.high, node.dataset.low]") == ["4", "0.01"]
    assert board.locator(".attn-axis").inner_text().split("\n") == ["0", "100", "step 200"]
    assert "Stored runs" in (board.locator(".attn-legend").first.text_content() or "")


def test_it_marks_wrong_words(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(path)
    board = widget(page, 0)

    def told() -> list[str]:
        settle(page)
        return [" ".join(text.split()) for text in board.locator("li p").all_text_contents()]

    right = "✓ model, right: two hundred", "✓ model, right: forty"
    gold = "gold: two hundred", "gold: forty"
    assert told() == ["zweihundert", right[0], gold[0], "vierzig", right[1], gold[1]]
    switch(board, "mask: causal").click()
    assert told()[1:3] == [
        "✗ model: two two (wrong) two (wrong)",
        "gold: two hundred (missing)",
    ]
    assert told()[4:] == ["✗ model: (nothing)", "gold: forty (missing)"]
    marks = board.locator(".attn-wrong .attn-token, .attn-missing .attn-token")
    lines = marks.evaluate_all("(all) => all.map((e) => getComputedStyle(e).textDecorationStyle)")
    assert lines == ["wavy", "wavy", "dotted", "dotted"]  # not told by colour alone
    switch(board, "add").click()
    assert told()[1] == "✗ model: hundred <i>two</i> (wrong)"
    hostile = widget(page, 1).locator("li p").nth(1).text_content() or ""
    assert "<img" in hostile and page.title() != "hacked"


@everywhere
def test_a_link_restores_the_state(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    board = widget(page_factory(path, **where), 0)
    switch(board, "mask: causal").click()
    assert copied(board) == "#w.block=off:1"
    fresh = widget(page_factory(f"{path}#w.block=off:1", **where), 0)
    assert_off(fresh, "mask")
    for nothing in ("off:9", "off:-2", "off:99", "off:0"):  # no such part
        follow(fresh.page, f"#w.block={nothing}")
        assert_off(fresh, "")


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(f"{path}#w.block=off:1&w.odd=off:1", theme=theme, width=width)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_press_changes_little(page_factory: Callable[..., Page], path: Path) -> None:
    part = widget(page_factory(path), 0).locator(".attn-towers [data-part=add]").first
    once = work(part, "(n) => node.dispatchEvent(new MouseEvent('click', { bubbles: true }))")
    assert 0 < max(once) < 400  # marks, four curves and two translations, within one frame
