"""The first page in Chromium: what its first screen holds, the map that plays, the road."""

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


def weights(hero: Locator) -> list[str]:
    settle(hero.page)
    script = "(words) => words.map(({ title }) => title.split(': ').at(-1))"
    return hero.locator(".attn-text").first.locator(".attn-word").evaluate_all(script)


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_map_is_in_the_first_screen(
    page_factory: Callable[..., Page], path: Path, width: int, height: int
) -> None:
    page = page_factory(path, width=width)
    page.set_viewport_size({"width": width, "height": height})
    hero = page.locator(".hero")
    play, canvas = hero.get_by_role("button", name="Play"), hero.locator("canvas").first
    slider = hero.get_by_role("slider", name="training step")
    settle(page)
    for part in (play, slider):
        box = part.bounding_box()
        assert box and box["y"] + box["height"] < height * 2 / 3
    box = canvas.bounding_box()
    assert box and box["y"] + 0.9 * box["height"] < height  # nearly all of its rows
    road = hero.locator(".road svg").bounding_box()
    assert road and road["width"] >= 320
    if width > 1200:
        assert road["y"] + road["height"] < height + 20
        assert road["x"] + road["width"] < box["x"]
    else:
        assert road["y"] > box["y"] + box["height"]


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_its_steps_play(
    page_factory: Callable[..., Page], path: Path, width: int, height: int
) -> None:
    page = page_factory(path, width=width)
    hero = page.locator(".hero")
    slider = hero.get_by_role("slider", name="training step")
    trained = weights(hero)
    assert max(map(float, trained)) > 0.4
    slider.focus()
    page.keyboard.press("Home")
    untrained = weights(hero)
    assert slider.get_attribute("aria-valuetext") == "0"
    assert max(map(float, untrained)) < max(map(float, trained))
    play = hero.locator(".attn-player button")
    play.click()
    expect(play).to_contain_text("Pause")
    page.wait_for_function("(node) => Number(node.value) > 0", arg=slider.element_handle())
    assert weights(hero) != untrained
    expect(play).to_contain_text("Play")  # at the end
    assert weights(hero) == trained


def test_every_stop_leads_to_its_chapter(page_factory: Callable[..., Page], path: Path) -> None:
    page = page_factory(path)
    stops = page.locator(".road a")
    addresses = [stop.get_attribute("href") or "" for stop in stops.all()]
    assert len(addresses) == 11 and all((path.parent / name).is_file() for name in addresses)
    stops.nth(4).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{addresses[4]}")
    assert "Many heads" in (page.locator(".bd-article h1").text_content() or "")
