"""The walks of chapter 6 in Chromium: the shift of the target, and a token's way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from attnbook.walks import target_shift
from attnbook.web import Drawing
from tests.browser.widget_pages import everywhere, serious, settle, widget, written
from tests.helpers.walks import drawn
from tests.helpers.walks_transformer import pairs, translator, way


def walks() -> list[Drawing]:
    shift = target_shift(translator(), pairs("huit deux sept", "neuf"), name="shift")
    return [way(translator(), name="timeline"), shift]


WALKS = walks()
TIMELINE, SHIFT = range(2)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(WALKS)


def shown(n: int, name: str, digits: int = 2) -> list[str]:
    numbers = drawn(WALKS[n], name).flatten().tolist()
    return [f"{x:z.{digits}f}".replace("-", "−") for x in numbers if x == x]


@everywhere
def test_every_step_by_keyboard(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    for n, walk in enumerate(WALKS):
        drawing = widget(page, n)
        drawing.get_by_role("button", name="Next", exact=True).focus()
        asked = sum(bool(step["ask"]) for step in walk.steps)
        for _ in range(len(walk.steps) - 1 + asked):
            page.keyboard.press("ArrowRight")
        settle(page)
        said = drawing.locator("[aria-live=polite]").text_content() or ""
        assert said.startswith(f"Step {len(walk.steps)} of {len(walk.steps)}.")
        assert drawing.locator(".draw-unseen").count() == 0


@everywhere
def test_scores_wait_for_the_guess_and_leave_the_future_out(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    drawing = widget(page_factory(f"{path}#w.timeline=step:6", **where), TIMELINE)
    assert written(drawing, "own-scores") == []
    drawing.get_by_role("button", name="Show").click()
    assert written(drawing, "own-scores") == shown(TIMELINE, "own-scores")
    assert len(written(drawing, "own-scores")) == 3  # the fourth token comes later
    next_step = drawing.get_by_role("button", name="Next", exact=True)
    next_step.click()
    assert written(drawing, "own-weights") == shown(TIMELINE, "own-weights")
    assert written(drawing, "cross-weights") == []


@everywhere
def test_what_is_wanted_stands_below_what_is_read(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    drawing = widget(page_factory(f"{path}#w.shift=step:3", **where), SHIFT)
    assert written(drawing, "reads0") == ["(start)", "huit", "deux", "sept"]
    assert written(drawing, "wanted0") == []
    drawing.get_by_role("button", name="Show").click()
    assert written(drawing, "wanted0") == ["huit", "deux", "sept", "(end)"]
    places = [
        drawing.locator(f'[data-part="{name}0"]').evaluate_all(
            "(all) => all.map((e) => Math.round(e.getBoundingClientRect().x))"
        )
        for name in ("reads", "wanted")
    ]
    assert places[0] == places[1]
    for press in ("Next", "Next", "Show the answer", "Next"):  # the second comes to a question
        drawing.get_by_role("button", name=press, exact=True).click()
    assert written(drawing, "shares0") == shown(SHIFT, "shares0", 3)


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(path, theme=theme, width=width)
    for n in range(len(WALKS)):
        widget(page, n).get_by_role("button", name="Next", exact=True).click()
    assert serious(page) == []
