"""TransformerMap in Chromium: parts that open by pointer and keys, switches of norm and shape."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page

from attnbook.show.blocks import SHAPES
from attnbook.walks import part_walks
from attnbook.web import TransformerMap
from tests.browser.widget_pages import (
    box_of,
    copied,
    everywhere,
    settle,
    violations,
    widget,
    written,
)
from tests.helpers.walks import drawn
from tests.helpers.walks_transformer import ENGLISH, FRENCH, PLACE, READ, translator

WALKS = part_walks(translator(), ENGLISH, FRENCH, place=PLACE, source_place=READ)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    widgets = [
        TransformerMap(WALKS, title="Press a part", name="parts"),
        TransformerMap(WALKS, shapes=SHAPES, name="shapes"),
    ]
    return widget_page(widgets)


def shown(part: str, name: str) -> list[str]:
    return [f"{x:z.2f}".replace("-", "−") for x in drawn(WALKS[part], name).flatten().tolist()]


def opened(page: Page) -> Locator:
    settle(page, 2)
    return widget(page, 0).locator(".attn-walked .attn-drawing")


@everywhere
def test_a_pressed_part_opens_its_walk(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    press = "tap" if where["width"] < 600 else "click"
    places = widget(page, 0).locator(".attn-towers [data-part=add]")
    assert places.count() == 5 and opened(page).count() == 0
    towers, part = widget(page, 0).locator(".attn-towers"), places.nth(3)
    page.add_style_tag(content="body { padding: 1000px 0 }")  # a page that can scroll
    part.scroll_into_view_if_needed()
    large, before = box_of(towers)["width"], box_of(part)["y"]
    getattr(part, press)()
    walk = opened(page)
    assert (box_of(towers)["width"] < large) == (where["width"] >= 1000)  # beside the walk
    assert abs(box_of(part)["y"] - before) < 2  # what was pressed stays under the pointer
    assert walk.count() == 1 and walk.get_attribute("aria-label") == "Add"
    for _ in range(2):
        walk.get_by_role("button", name="Next", exact=True).click()
    assert written(walk, "sum") == shown("add", "sum")
    getattr(places.nth(4), press)()  # the same part again closes it
    assert opened(page).count() == 0
    getattr(places.nth(0), press)()  # the encoder's
    assert walk.get_attribute("aria-label") == "Add in the encoder"
    for _ in range(2):
        walk.get_by_role("button", name="Next", exact=True).click()
    assert written(walk, "sum") == shown("encoder add", "sum") != shown("add", "sum")


def test_a_query_opens_the_attention_that_it_enters(
    page_factory: Callable[..., Page], path: Path
) -> None:
    page = page_factory(path)
    queries = widget(page, 0).locator(".attn-towers [data-part=port]")
    names = ["Self-attention in the encoder", "Self-attention", "Cross-attention"]
    assert queries.count() == len(names)
    for n, name in enumerate(names):
        queries.nth(n).click()
        assert opened(page).get_attribute("aria-label") == name


@everywhere
def test_by_keyboard(page_factory: Callable[..., Page], path: Path, where: dict[str, Any]) -> None:
    page = page_factory(path, **where)
    board = widget(page, 0)
    names = [("norm", "measured"), ("feed-forward", "before"), ("encoder norm", "measured")]
    for part, name in names:
        own = part.removeprefix("encoder ")
        label = own if part == own else f"{own}, encoder"
        board.get_by_role("button", name=label, exact=True).focus()
        page.keyboard.press("Enter" if own == "norm" else "Space")
        walk = opened(page)
        said = own.capitalize() + " in the encoder" * (part != own)
        assert walk.get_attribute("aria-label") == said
        walk.get_by_role("button", name="Next", exact=True).press("Enter")
        assert written(walk, name) == shown(part, name)
        pressed = board.locator(".attn-towers [aria-pressed=true]")
        assert pressed.evaluate_all("(all) => all.map((e) => e.dataset.opens)") == [part]


def test_a_part_that_a_shape_lacks_is_not_open(
    page_factory: Callable[..., Page], path: Path
) -> None:
    page = page_factory(path)
    board = widget(page, 1)
    walk = board.locator(".attn-walked .attn-drawing")
    board.get_by_role("button", name="cross-attention").press("Enter")
    for name, count in (("decoder alone", 0), ("encoder-decoder", 1)):
        board.get_by_role("button", name=name).click()
        settle(page, 2)
        assert walk.count() == count


def test_the_switch_moves_the_norms(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(f"{path}#w.parts=part:2")
    board = widget(page, 0)
    norms = board.locator(".attn-towers [data-part=norm]")
    assert opened(page).get_attribute("aria-label") == "Norm" and norms.count() == 7
    board.get_by_role("button", name="post-norm").click()
    settle(page)
    assert norms.count() == 5 and board.locator(".attn-towers .attn-open").count() == 3
    assert "norm(x + layer(x))" in (board.locator(".attn-rule").text_content() or "")
    middle = "(all) => all.map((e) => e.getBoundingClientRect()).map((r) => r.y + r.height / 2)"
    sums = board.locator(".attn-towers [data-part=add]").evaluate_all(middle)
    assert all(any(0 < y - n < 60 for n in norms.evaluate_all(middle)) for y in sums)
    board.get_by_role("button", name="Reset").click()
    settle(page)
    assert norms.count() == 7


@everywhere
def test_the_switch_changes_the_shape(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    board = widget(page, 1)
    walk = board.locator(".attn-walked .attn-drawing")
    counts = {"encoder-decoder": (5, 1), "decoder alone": (2, 0), "encoder alone": (2, 0)}
    for name, (sums, cross) in counts.items():
        board.get_by_role("button", name=name).press("Enter")
        settle(page)
        found = [board.locator(f".attn-towers [data-part={part}]").count()
                 for part in ("add", "cross", "mask")]  # fmt: skip
        assert found == [sums, cross, name != "encoder alone"]
        assert board.get_by_role("button", name=name).get_attribute("aria-pressed") == "true"
    assert "as BERT does" in (board.locator(".attn-rule").text_content() or "")
    assert board.locator(".attn-towers [role=button]").count() == 4
    board.get_by_role("button", name="norm, encoder").press("Enter")
    settle(page, 2)
    assert walk.get_attribute("aria-label") == "Norm in the encoder"
    board.get_by_role("button", name="decoder alone").press("Enter")
    settle(page)
    board.get_by_role("button", name="feed-forward", exact=True).press("Enter")
    settle(page, 2)
    walk.get_by_role("button", name="Next", exact=True).press("Enter")
    assert written(walk, "before") == shown("feed-forward", "before")
    assert copied(board) == "#w.shapes=part:5;shape:1"


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(path, theme=theme, width=width)
    widget(page, 0).get_by_role("button", name="cross-attention").press("Enter")
    assert opened(page).count() == 1
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
