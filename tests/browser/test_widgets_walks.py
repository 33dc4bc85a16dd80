"""The walks of chapters 1 and 2 in Chromium: by keyboard, by pointer, and what they hide."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

from attnbook.model.seq2seq import GRUCell
from attnbook.walks import decoder_step, exchanged_states, gru_step, two_readers, unrolled
from attnbook.web import Drawing
from tests.browser.widget_pages import everywhere, serious, settle, widget, written
from tests.helpers.walks import drawn
from tests.helpers.walks_seq2seq import WORDS, translator

PAIR = ("deux", "trois")


@cache
def walks() -> list[Drawing]:
    torch.manual_seed(0)
    return [
        decoder_step(translator("look"), WORDS, step=2, name="look-first"),
        unrolled(translator(), WORDS, name="unrolled"),
        gru_step(GRUCell(4, 7), torch.randn(4), torch.randn(7), name="gru-step"),
        two_readers(translator("look", two_way=True).encoder, WORDS, name="two-readers"),
        exchanged_states(translator("look"), WORDS, "two six five", "un", PAIR, name="exchanged"),
    ]


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(walks())


@everywhere
def test_every_step_by_keyboard(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    for n, walk in enumerate(walks()):
        drawing = widget(page, n)
        drawing.get_by_role("button", name="Next", exact=True).focus()
        heard = drawing.locator("[aria-live=polite]")
        asked = sum(bool(step["ask"]) for step in walk.steps)
        for _ in range(len(walk.steps) - 1 + asked):
            page.keyboard.press("ArrowRight")
        settle(page)
        last = f"Step {len(walk.steps)} of {len(walk.steps)}."
        assert (heard.text_content() or "").startswith(last)
        assert drawing.locator(".draw-unseen").count() == 0


@everywhere
def test_weights_wait_for_the_question_and_show_their_numbers(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    walk = walks()[0]
    drawing = widget(page_factory(f"{path}#w.look-first=step:4", **where), 0)
    assert written(drawing, "scores") == written(drawing, "weights") == []
    outlines = drawing.locator('[data-part="weights"] rect')
    assert len({one.get_attribute("height") for one in outlines.all()}) == 1  # they tell nothing
    drawing.get_by_role("button", name="Show").click()
    scores, weights = (drawn(walk, name)[:, 0].tolist() for name in ("scores", "weights"))
    assert written(drawing, "scores") == [f"{x:z.1f}".replace("-", "−") for x in scores]
    drawing.get_by_role("button", name="Next", exact=True).click()
    assert written(drawing, "weights") == [f"{x:.2f}" for x in weights]


@everywhere
def test_an_exchange_waits_for_a_guess(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    walk = walks()[4]
    drawing = widget(page_factory(f"{path}#w.exchanged=step:4", **where), 4)
    assert written(drawing, "wrote1") == []
    drawing.get_by_role("button", name="Show").click()
    shares = [f"{share:.2f}" for share in walk.values("wrote1")]
    seen = written(drawing, "wrote1")
    assert [text for text in seen if text not in PAIR] == shares
    assert written(drawing, "wrote2") == []


@everywhere
def test_a_word_of_a_caption_lights_its_number(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    drawing = widget(page_factory(f"{path}#w.gru-step=step:7", **where), 2)
    drawing.locator(".attn-here .attn-noun").first.focus()
    settle(drawing.page)
    lit = drawing.locator('[data-part="h"] .draw-lit text')
    k = int(walks()[2].steps[-1]["caption"].split("](h.")[1][0])
    wanted = f"{walks()[2].values('h')[k]:z.2f}".replace("-", "−")
    assert lit.all_text_contents() == [wanted]


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(path, theme=theme, width=width)
    for n in range(len(walks())):
        widget(page, n).get_by_role("button", name="Next", exact=True).click()
    assert serious(page) == []
