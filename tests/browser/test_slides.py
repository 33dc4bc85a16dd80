"""Decks of slides, opened as files: all is drawn, nothing runs over, a walk goes step by step."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Faults
from tests.browser.widget_pages import settle
from tools.notebooks import BOOK
from tools.slides import __main__ as slides

DECKS = ["03_self_attention", "05_heads"]
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
BOX = """() => {
  const slide = Reveal.getCurrentSlide(), body = slide.querySelector(".deck-body");
  const { left, right, top, bottom } = body.getBoundingClientRect();
  return { title: slide.querySelector("h2").textContent, left, right, top, bottom,
           empty: !slide.classList.contains("opening") && !body.textContent.trim() };
}"""


@pytest.fixture(scope="module")
def decks(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the site, with the decks."""
    html = tmp_path_factory.mktemp("slides")
    for name in ("_static", "_images", "book"):
        (html / name).symlink_to(site / name)
    slides.make(html, [BOOK / f"{name}.ipynb" for name in DECKS])
    return html


@pytest.fixture(params=DECKS)
def deck(
    decks: Path, browser: Browser, faults: Faults, request: pytest.FixtureRequest
) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.route("**/*", faults.route)
    page = context.new_page()
    faults.watch(page)
    page.goto((decks / "slides" / f"{request.param}.html").as_uri())
    page.evaluate("dispatchEvent(new Event('scroll'))")  # heavy views wait until one begins
    page.wait_for_function("""() => globalThis.Reveal?.isReady() &&
      [...document.querySelectorAll("[data-widget]")].every((host) => "ready" in host.dataset)""")
    yield page
    context.close()


def test_every_slide_is_drawn_and_fits(deck: Page) -> None:
    total = deck.evaluate("Reveal.getTotalSlides()")
    assert total > 20 and deck.locator("[data-widget]").count() > 3
    assert deck.locator(".widget-failed").count() == 0
    wide, over = [], []
    for number in range(total):
        deck.evaluate(f"Reveal.slide({number})")
        deck.evaluate(DRAWN)
        box = deck.evaluate(BOX)
        assert not box["empty"], box
        wide += [box] * (box["left"] < 0 or box["right"] > 1280)
        over += [box] * (box["bottom"] > 720 * 1.1)
    assert wide == []
    # A widget as tall as a phone's screen is may be scrolled, and no more than one or two are.
    assert len(over) <= 2, over


def test_forward_goes_through_a_walk_before_it_leaves(deck: Page) -> None:
    number = deck.evaluate("""() => Reveal.getSlides().findIndex((slide) =>
      slide.querySelector(".attn-walk") !== null)""")
    deck.evaluate(f"Reveal.slide({number})")
    steps = deck.locator(".present .attn-walk input[type=range]")
    last = int(steps.get_attribute("max") or 0)
    assert last > 3
    for _ in range(40):
        deck.keyboard.press("ArrowRight")
        settle(deck, 2)  # the slider is drawn
        if deck.evaluate("Reveal.getIndices().h") != number:
            break
        reached = int(steps.input_value())
    assert reached == last and deck.evaluate("Reveal.getIndices().h") == number + 1


def test_prose_is_in_the_notes_and_links_lead_to_the_site(decks: Path) -> None:
    text = (decks / "slides" / "05_heads.html").read_text("utf-8")
    notes = slides.BeautifulSoup(text, "html.parser").select("aside.notes p")
    assert sum(len(note.get_text().split()) for note in notes) > 500
    assert not any("\\" in note.get_text() and "annotation" in str(note) for note in notes)
    links = slides.BeautifulSoup(text, "html.parser").select("a[href]")
    targets = {str(link["href"]).partition("#")[0] for link in links}
    local = {target for target in targets if target and "://" not in target}
    assert local and all((decks / "slides" / target).is_file() for target in local)
