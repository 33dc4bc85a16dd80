"""The walk through two heads in Chromium: by keyboard and pointer, its numbers, and axe."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.widget_pages import everywhere, serious, settle, widget, written
from tests.helpers.walks import drawn
from tests.helpers.walks_heads import walk

WALK = walk(name="heads-step", title="Split, attend, join, mix")
ATTENDS = 6  # the step of the weights


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page([WALK])


@everywhere
def test_weights_wait_for_the_question(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(f"{path}#w.heads-step=step:{ATTENDS}", **where)
    node = widget(page, 0)
    assert written(node, "a1") == written(node, "a2") == []
    node.get_by_role("button", name="Show").click()
    for name in ("a1", "a2"):
        assert written(node, name) == [f"{x:.2f}" for x in drawn(WALK, name)[:, 0].tolist()]
    assert written(node, "h1") == []
    for _ in range(2):
        page.keyboard.press("ArrowRight")  # the keys stay in the drawing
    shown = [f"{x:z.2f}".replace("-", "−") for x in drawn(WALK, "h2")[0].tolist()]
    assert written(node, "h2") == shown


def test_every_step_by_keyboard(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(path, theme="light", width=390)
    node = widget(page, 0)
    node.get_by_role("button", name="Next", exact=True).focus()
    asked = sum(bool(step["ask"]) for step in WALK.steps)
    for _ in range(len(WALK.steps) - 1 + asked):
        page.keyboard.press("ArrowRight")
    settle(page)
    assert node.locator(".draw-unseen").count() == 0
    assert (node.locator(".attn-count").text_content() or "") == "12 / 12"


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(f"{path}#w.heads-step=step:5", theme=theme, width=width)
    assert serious(page) == []
