"""HeadChips in Chromium, on a built page: by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.web import HeadChips
from tests.browser.widget_pages import (
    everywhere,
    follow,
    serious,
    settle,
    stop_clocks,
    tick,
    widget,
    work,
)

CHECKPOINTS, HEADS, SIDE = 6, 8, 5
PACE = 350  # milliseconds


def chips(**changes: Any) -> HeadChips:
    rng = np.random.default_rng(3)
    maps = rng.random((CHECKPOINTS, HEADS, SIDE, SIDE))
    given: dict[str, Any] = {
        "maps": maps / maps.sum(-1, keepdims=True),
        "right": rng.random((CHECKPOINTS, 2, 2**HEADS)),
        "steps": [0, 10, 20, 30, 50, 100],
        "losses": [2.75, 2.25, 1.5, 0.75, 0.5, 0.25],
        "scores": {name: rng.random((CHECKPOINTS, HEADS)) for name in ("before", "after")},
        "title": "A head appears",
        "name": "chips",
    }
    return HeadChips(**{**given, **changes})


CHIPS = chips()


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page([CHIPS])


def right(at: int, *off: int, mean: bool = False) -> str:
    return f"{CHIPS.right[at, int(mean), sum(2**head for head in off)]:.2f}"


def readout(node: Locator) -> str:
    settle(node.page)
    return node.locator(".chips-readout").text_content() or ""


def chip(node: Locator, head: int) -> Locator:
    return node.locator(".chips-chip").nth(head)


def texts(node: Locator) -> list[list[str]]:
    """What each chip says: its name, its best score, what is right when it is switched."""
    settle(node.page)
    script = "(all) => all.map((e) => [...e.children].slice(1).map((part) => part.textContent))"
    return node.locator(".chips-chip").evaluate_all(script)


def expected(at: int, off: set[int], mean: bool = False) -> list[list[str]]:
    rows = []
    for head in range(HEADS):
        scores = {name: values[at][head] for name, values in CHIPS.scores.items()}
        best = max(scores, key=lambda name: scores[name])
        on = head not in off
        name = f"head {head + 1}{'' if on else ': off'}"
        without = f"{'without' if on else 'with'} {right(at, *(off ^ {head}), mean=mean)}"
        rows.append([name, f"{best} {scores[best]:.2f}", without])
    return rows


@everywhere
def test_heads_are_silenced_alone_and_in_pairs(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    node = widget(page_factory(path, **where), 0)
    last = CHECKPOINTS - 1
    assert readout(node).startswith(f"Step 100: loss 0.25. Right: all heads {right(last)}. Press")
    assert texts(node) == expected(last, set())
    touch = "tap" if where["width"] < 600 else "click"
    getattr(chip(node, 2), touch)()
    assert readout(node).endswith(f", without head 3 {right(last, 2)}.")
    assert texts(node) == expected(last, {2})
    getattr(chip(node, 6), touch)()
    alone = f"(alone 3: {right(last, 2)}, 7: {right(last, 6)})."
    assert readout(node).endswith(f", without heads 3, 7 {right(last, 2, 6)} {alone}")
    node.get_by_role("combobox").select_option("its average result")
    assert readout(node).split(" (")[0].endswith(right(last, 2, 6, mean=True))
    assert texts(node) == expected(last, {2, 6}, mean=True)
    node.get_by_role("button", name="All heads on").click()
    assert texts(node) == expected(last, set(), mean=True)


@everywhere
def test_keys_move_through_the_training(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    node = widget(page, 0)
    chip(node, 0).focus()
    page.keyboard.press("Space")
    node.get_by_role("slider").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    said = f"Step 10: loss 2.25. Right: all heads {right(1)}, without head 1 {right(1, 0)}."
    assert readout(node) == said
    assert texts(node) == expected(1, {0})
    spoken = node.get_by_role("slider").get_attribute("aria-valuetext")
    assert spoken == f"step 10, loss 2.25, right {right(1, 0)}"
    pixels = "(e) => [...e.getContext('2d').getImageData(0, 0, 5, 5).data]"
    shown = chip(node, 4).locator("canvas").evaluate(pixels)[::4]
    order = np.argsort(CHIPS.maps[1, 4].flatten())
    reds = np.array(shown)[order]  # the red falls as weights grow, by day; rises by night
    steps = np.diff(reds.astype(int))
    assert (steps <= 0).all() if where["theme"] == "light" else reds[-1] > reds[0]


def test_play_goes_to_the_end(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(path, theme="light", width=1280)
    node = widget(page, 0)
    stop_clocks(page)
    node.get_by_role("button", name="Play").click()  # at the end, it begins anew
    for step in CHIPS.steps:
        assert readout(node).startswith(f"Step {step}: loss")
        plays = node.get_by_role("button", name="Pause").count()
        assert tick(page, PACE) == plays == (step < CHIPS.steps[-1])
    assert readout(node).startswith("Step 100")


def test_reset_ends_the_play(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(f"{path}#w.chips=at:1", theme="light", width=390)
    node = widget(page, 0)
    stop_clocks(page)
    node.get_by_role("button", name="Play").click()
    node.get_by_role("button", name="Reset").click()
    assert node.get_by_role("button", name="Pause").count() == 0
    node.get_by_role("button", name="Play").click()
    follow(page, "#w.chips=at:2")
    assert readout(node).startswith("Step 20")
    assert tick(page, PACE) == 0 and readout(node).startswith("Step 20")
    assert node.get_by_role("button", name="Play").is_visible()


def test_the_curve_is_dragged_and_a_link_restores(
    page_factory: Callable[..., Page], path: Path
) -> None:
    page = page_factory(f"{path}#w.chips=at:2;off:9;mean:1", theme="light", width=1280)
    node = widget(page, 0)
    assert readout(node).split(" (")[0].endswith(f"without heads 1, 4 {right(2, 0, 3, mean=True)}")
    box = node.locator(".attn-graph").bounding_box()
    assert box
    page.mouse.click(box["x"] + 0.52 * box["width"], box["y"] + 20)  # nearest: the fourth of six
    assert readout(node).startswith("Step 30: loss 0.75")
    line = node.locator("polyline.chips-loss").get_attribute("points") or ""
    heights = [float(point.split(",")[1]) for point in line.split()]
    assert np.allclose(heights, [100 * (1 - x / 2.75) for x in CHIPS.losses], atol=0.01)
    node.get_by_role("button", name="Reset").click()
    assert readout(node).startswith("Step 100")


def test_a_step_of_the_slider_is_little_work(page_factory: Callable[..., Page], path: Path) -> None:
    node = widget(page_factory(path, theme="light", width=390), 0)
    step = "(n) => { node.value = n % 6; node.dispatchEvent(new Event('input')); }"
    assert max(work(node.get_by_role("slider"), step, moves=5)) < 120


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(path, theme=theme, width=width)
    chip(widget(page, 0), 1).click()
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
