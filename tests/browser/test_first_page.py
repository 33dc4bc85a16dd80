"""The first page in Chromium: what its first screen holds, the translator, the road."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.widget_pages import settle
from tests.helpers.minibook import whole_book

SCREENS = [pytest.param(1280, 800, id="laptop"), pytest.param(390, 844, id="phone")]


@pytest.fixture(scope="module")
def path() -> Path:
    return whole_book() / "book/index.html"


def ready(hero: Locator) -> Locator:
    """The field where a number is typed, when the models are there."""
    hero.get_by_role("button", name="Walk through one word", disabled=False).wait_for()
    settle(hero.page)
    return hero.locator(".attn-number")


def written(hero: Locator) -> list[list[str]]:
    """What each model writes."""
    settle(hero.page, 2)
    lists = hero.locator(".attn-written").all()
    return [each.locator(".attn-german").all_inner_texts() for each in lists]


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_translator_is_in_the_first_screen(
    page_factory: Callable[..., Page], path: Path, width: int, height: int
) -> None:
    page = page_factory(path, width=width)
    page.set_viewport_size({"width": width, "height": height})
    hero = page.locator(".hero")
    field, longer = ready(hero), hero.get_by_role("button", name="One digit longer")
    for part in (field, longer, hero.locator(".attn-english")):
        box = part.bounding_box()
        assert box and box["y"] + box["height"] < height * 2 / 3
    cards = hero.locator(".attn-written").all()
    assert len(cards) == 2
    for card in cards if width > 1200 else cards[:1]:
        box = card.bounding_box()
        assert box and box["y"] + box["height"] < height
    box, road = field.bounding_box(), hero.locator(".road svg").bounding_box()
    assert box and road and road["width"] >= 320
    if width > 1200:
        assert road["y"] + road["height"] < height + 20
        assert road["x"] + road["width"] < box["x"]
    else:
        assert road["y"] > box["y"] + box["height"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_it_translates_until_one_vector_breaks(
    page_factory: Callable[..., Page], path: Path, width: int, height: int
) -> None:
    page = page_factory(path, width=width)
    hero = page.locator(".hero")
    field, longer = ready(hero), hero.get_by_role("button", name="One digit longer")
    assert written(hero) == [["zwei", "und", "vierzig"]] * 2
    field.fill("seven hundred")
    assert written(hero)[1] == ["sieben", "hundert"]
    hero.get_by_role("button", name="Reset").click()
    broken = hero.get_by_text("one vector breaks, additive attention is right")
    for _ in range(7):
        longer.tap() if width < 600 else longer.click()
        settle(page, 2)
        if broken.count():
            break
    expect(broken).to_be_visible()
    assert hero.locator(".attn-card").first.locator(".attn-wrong").count()
    assert hero.locator(".attn-card").last.locator(".attn-wrong").count() == 0
    hero.locator(".attn-card").last.locator("button.attn-morpheme").first.press("Enter")
    expect(hero.locator("tr.attn-on th")).to_have_text("vier")


def test_every_stop_leads_to_its_chapter(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(path)
    stops = page.locator(".road a")
    addresses = [stop.get_attribute("href") or "" for stop in stops.all()]
    assert len(addresses) == 11 and all((path.parent / name).is_file() for name in addresses)
    stops.nth(4).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{addresses[4]}")
    assert "Many heads" in (page.locator(".bd-article h1").text_content() or "")
