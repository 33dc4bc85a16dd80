"""The walks of chapter 7 in Chromium: by keyboard, by pointer, with their numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page
from torch import nn
from torch.nn.functional import pad

from attnbook.model import TransformerConfig, TransformerDecoder
from attnbook.model.mixture import Mixture
from attnbook.text.speeches import VOCAB
from attnbook.walks import (
    cache_growth,
    linear_state,
    mixture_step,
    reach,
    shared_heads,
    softmax_tiles,
)
from attnbook.web import Drawing
from tests.browser.widget_pages import everywhere, serious, settle, widget, written
from tests.helpers.walks import drawn


def walks() -> list[Drawing]:
    torch.manual_seed(0)
    decoder = TransformerDecoder(VOCAB, TransformerConfig(12, 3, 20, 2, positions="rotary"))
    q, k, v = torch.randn(3, 4, 2)
    layers = [nn.Conv1d(5, 5, 2, dilation=gap) for gap in (1, 2, 4)]
    return [
        cache_growth(decoder, torch.tensor([7, 9, 4, 11]), [*"abcd"], name="cache"),
        shared_heads({4: 2.5, 2: 2.25, 1: 2.75}, n=7, d_head=4, n_layers=5, name="shared"),
        softmax_tiles(3 * q[0], k.repeat(2, 1), v.repeat(2, 1), [*"abcdefgh"], name="tiles"),
        linear_state(q, k, v, [*"abcd"], name="linear"),
        reach(
            [lambda x, f=f: f(pad(x.T, (f.dilation[0], 0))).T for f in layers],
            torch.randn(9, 5),
            name="dilated",
        ),
        mixture_step(
            Mixture(TransformerConfig(10, 2, 7, 1)), 3 * torch.randn(10), word="G", name="mixture"
        ),
    ]


WALKS = walks()


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(WALKS)


@pytest.mark.parametrize("by", ["keyboard", "pointer"])
@everywhere
def test_every_step_and_its_numbers(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any], by: str
) -> None:
    page = page_factory(path, **where)
    for n, walk in enumerate(WALKS):
        drawing = widget(page, n)
        ahead = drawing.get_by_role("button", name="Next", exact=True)
        show = drawing.get_by_role("button", name="Show the answer")
        ahead.focus()
        for step in walk.steps[1:]:
            for button in [ahead, show] if step["ask"] else [ahead]:
                if by == "keyboard":
                    page.keyboard.press("ArrowRight")
                else:
                    button.click()
        settle(page)
        heard = drawing.locator("[aria-live=polite]").text_content() or ""
        assert heard.startswith(f"Step {len(walk.steps)} of {len(walk.steps)}.")
        assert drawing.locator(".draw-unseen").count() == 0
    for n, part, digits in (
        (0, "a", 2),
        (1, "bits-1", 2),
        (2, "out", 2),
        (3, "out", 1),
        (5, "y", 2),
    ):
        wanted = [f"{x:z.{digits}f}".replace("-", "−") for x in drawn(WALKS[n], part).flatten()]
        assert written(widget(page, n), part) == wanted
    reached = int(drawn(WALKS[4], "l0").sum())
    assert 1 < reached < 9
    heard = widget(page, 4).locator("[aria-live=polite]").text_content() or ""
    assert f"depends on {reached} places of the input" in heard


@everywhere
def test_bytes_wait_for_the_guess(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    drawing = widget(page_factory(f"{path}#w.cache=step:2", **where), 0)
    assert written(drawing, "bytes") == ["192"]
    drawing.get_by_role("button", name="Show").click()
    assert written(drawing, "bytes") == ["192", "384"]
    drawing.get_by_role("button", name="Next", exact=True).click()
    assert written(drawing, "bytes") == ["192", "384", "576"]


@everywhere
def test_two_networks_wait_for_the_guess(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    walk = WALKS[5]
    drawing = widget(page_factory(f"{path}#w.mixture=step:3", **where), 5)
    assert len(written(drawing, "s")) == 8 and written(drawing, "net") == []
    drawing.get_by_role("button", name="Show").click()
    best = drawn(walk, "s")[:, 0].topk(2).indices.sort().values
    assert written(drawing, "net") == [f"FF{e + 1}" for e in best]
    assert written(drawing, "gate") == []
    drawing.get_by_role("button", name="Next", exact=True).click()
    assert written(drawing, "gate") == [f"{g:.2f}" for g in drawn(walk, "gate").flatten()]


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(path, theme=theme, width=width)
    for n in range(len(WALKS)):
        widget(page, n).get_by_role("button", name="Next", exact=True).click()
    assert serious(page) == []
