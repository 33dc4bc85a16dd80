"""MaskedWords in Chromium, on a built page: its own engine against the model in Python."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Request, expect

from attnbook.web import MaskedWords, PositionExplorer, format_number
from tests.browser.conftest import Faults
from tests.browser.widget_pages import copied, everywhere, settle, widget
from tests.helpers.tiny_bert import NAME, tiny_bert

TEXT = "We must ask the people of this country!"
READY = "textarea:not([disabled])"
SCRIPT = f"weights/{NAME}.js"


def masked(text: str = TEXT, masks: Any = (4,), **options: Any) -> MaskedWords:
    return MaskedWords(text, masks, weights=tiny_bert(), **options)


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    """The widget stands far below others."""
    others = [PositionExplorer(name=f"explorer-{n}") for n in range(4)]
    shown = [*others, masked(name="guess", title="A word")]
    return widget_page(shown, attnbook_weights=str(tiny_bert().parent))


@pytest.fixture
def open_page(page_factory: Callable[..., Page], path: Path) -> Callable[..., Page]:
    def open_at(fragment: str = "", ready: bool = True, **where: Any) -> Page:
        page = page_factory(f"{path}{fragment}", **where)
        if ready:
            found(page).scroll_into_view_if_needed()
            found(page).locator(READY).wait_for()
        return page

    return open_at


def found(page: Page) -> Locator:
    return widget(page, 4)


def share(p: float) -> str:
    return "<0.001" if 0 < p < 0.0005 else format_number(p)


def bars(shown: MaskedWords) -> list[list[str]]:
    """Each hidden place's lines: tokens with their probabilities, as Python's model says."""
    places = [each["best"][: shown.top] for each in shown.answer["likely"]]
    return [[f"{one['token']}{share(one['p'])}" for one in best] for best in places]


def shows(view: Locator, shown: MaskedWords) -> None:
    """That the page shows the words, bars and weights of a widget in Python with its state."""
    settle(view.page)
    expect(view.locator(".attn-place")).to_have_count(len(shown.answer["likely"]))
    for n, lines in enumerate(bars(shown)):
        place = view.locator(".attn-place").nth(n)
        expect(place.locator("li:has(.attn-track)")).to_have_text(
            [re.compile(rf"^{re.escape(line)}( before [<.\d]+)?$") for line in lines]
        )
    pressed = view.locator("button[aria-pressed=true]")
    hidden = [shown.answer["words"][n]["text"] for n in shown.masks]
    labels = [chip.get_attribute("aria-label") or "" for chip in pressed.all()]
    named = [label.removesuffix(", unknown to the model") for label in labels]
    assert [re.sub(r"^(\[MASK\])+, ", "", label) for label in named] == hidden
    assert all(label.startswith("[MASK]") for label in labels)  # as it is written on the button
    if not shown.masks:
        return
    n = min(shown.place, len(shown.answer["likely"]) - 1)
    at = shown.answer["likely"][n]["place"]
    weights = np.frombuffer(shown.attention, "<u2").reshape(shown.answer["shape"]) / 65535
    table = weights[:, :, :, at] if shown.into else weights[:, :, at]
    table = table.reshape(-1, table.shape[-1]).T  # [token head]
    cells = view.locator("tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.querySelectorAll('td')].map((e) => +e.textContent))"
    )
    np.testing.assert_allclose(np.array(cells), table, rtol=0, atol=0.0051)


@everywhere
def test_press_words(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = found(page)
    shows(view, masked())
    word = view.get_by_role("button", name="country")
    word.tap() if where["width"] < 600 else word.click()
    shows(view, masked(masks=[4, 7]))
    assert view.locator(".attn-chip .attn-piece").all_inner_texts().count("[MASK]") == 2
    view.get_by_role("button", name="people").press("Space")
    shows(view, masked(masks=[7]))
    view.get_by_role("button", name="country").press("Enter")
    shows(view, masked(masks=[]))
    expect(view.get_by_text("Nothing is hidden")).to_be_visible()
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    view.get_by_role("button", name="Reset").click()
    shows(view, masked())


@everywhere
def test_write_a_sentence(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = found(page)
    text = view.get_by_role("textbox", name="Your sentence")
    text.focus()
    text.evaluate("(e) => e.setSelectionRange(0, 2)")
    page.keyboard.type("I and you 貓")  # the words before the hidden one are more now
    changed = TEXT.replace("We", "I and you 貓")
    shows(view, masked(changed, [7]))
    unknown = view.get_by_text("Unknown to the model, which reads [UNK] instead")
    assert "貓" in unknown.inner_text()
    pieces = view.get_by_text("Not in its vocabulary, so read in pieces")
    assert "you = y ##ou" in pieces.inner_text()
    expect(view.get_by_role("button", name="貓, unknown to the model")).to_be_enabled()
    text.fill("peace " * 40)
    expect(view.get_by_text("Not read, as 24 tokens are the most that fit")).to_be_visible()
    expect(view.get_by_role("button", name="peace").last).to_be_disabled()
    text.fill("")
    shows(view, masked("", []))


@everywhere
def test_a_written_mask_and_a_word_in_pieces(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    view = found(open_page(**where))
    text = view.get_by_role("textbox", name="Your sentence")
    view.get_by_role("button", name="people").press("Space")
    text.fill("We must ask the [MASK] of this country!")
    expect(view.locator(".attn-place")).to_have_count(1)
    expect(view.locator(".attn-chip .attn-piece").nth(4)).to_have_text("[MASK]")
    expect(view.get_by_role("button", name="[MASK]", exact=True)).to_be_disabled()
    shown = masked("We must ask the [MASK] of this country!", [])
    lines = view.locator(".attn-place li:has(.attn-track) .attn-label")
    expect(lines).to_have_text([one["token"] for one in shown.answer["likely"][0]["best"][:5]])
    assert "itself" not in view.locator(".attn-place").inner_text()
    text.fill("We must ask the pots")
    view.get_by_role("button", name="pots").press("Space")
    pieces = masked("We must ask the pots", [4]).answer["likely"]
    assert len(pieces) == 3
    place = view.locator(".attn-place")
    expect(place).to_have_count(1)
    expect(place).to_contain_text("instead of pots")
    expect(place).to_contain_text("The model guesses 3 pieces, p ##o ##ts")
    own = float(np.prod([each["own"] for each in pieces]))
    expect(place).to_contain_text(f"pots itself: {share(own)}")
    written = place.locator(".attn-label").all_inner_texts()
    assert len(written) == 5 and not any("#" in word or "[" in word for word in written)


def test_what_a_neighbour_changes(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    assert view.locator(".attn-then:not([hidden])").count() == 0
    text = view.get_by_role("textbox")
    text.fill(TEXT.replace("country", "peace"))
    shows(view, masked(TEXT.replace("country", "peace")))
    before = masked(top=20).answer["likely"][0]
    was = {one["token"]: one["p"] for one in before["best"]}
    full = float(re.search(r"A full bar is ([\d.]+?)\.( |$)", view.inner_text())[1])  # type: ignore[index]
    assert "Thin line: before your last change." in view.inner_text()
    marks = dict(
        view.locator("li:has(.attn-track)").evaluate_all(
            "(all) => all.map((e) => [e.querySelector('bdi').textContent,"
            " parseFloat(e.querySelector('.attn-then').style.left)])"
        )
    )
    both = set(was) & set(marks)
    assert len(both) >= 3
    assert all(marks[name] == pytest.approx(100 * was[name] / full, abs=0.01) for name in both)
    assert f"(before: {share(before['own'])})" in view.inner_text()
    for more in (" and its", " cats"):  # typed on: compared with what was there at first
        page.keyboard.type(more)
    assert view.locator(".attn-then:not([hidden])").count() >= 3


def test_temperature_and_number_of_words(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    view.get_by_role("slider", name="temperature").press("Home")
    expect(view.locator(".attn-value").first).to_have_text("0.05")
    shows(view, masked(temperature=0.05))
    view.get_by_role("slider", name="words shown").press("End")
    shows(view, masked(temperature=0.05, top=20))


def test_heads(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    shown = masked()
    view.get_by_role("combobox", name="direction").select_option("what looks at it")
    shown.into = True
    shows(view, shown)
    view.get_by_role("combobox", name="layer").select_option("2")
    view.get_by_role("combobox", name="head").select_option("3")
    weights = np.frombuffer(shown.attention, "<u2").reshape(shown.answer["shape"])[1, 2] / 65535
    into = weights[:, 5]  # [CLS] we must ask the people
    best = np.argsort(-into)[:3]
    told = " · ".join(f"{shown.answer['row'][i]} {format_number(into[i])}" for i in best)
    readout = view.locator(".attn-readout")
    expect(readout).to_have_text(
        f"layer 2, head 3: the place of people is looked at most by {told}"
    )
    fills = view.locator(".attn-chips .attn-piece").evaluate_all(
        "(all) => all.map((e) => +e.style.getPropertyValue('--level'))"
    )
    middle = [*fills[1:-1]] if len(fills) == len(into) else fills
    assert np.allclose(middle, (into / into.max())[1:-1], atol=1e-3)
    cell = view.locator("td[data-place='4'][data-layer='0'][data-head='1']")
    cell.hover()
    first = np.frombuffer(shown.attention, "<u2").reshape(shown.answer["shape"])[0, 1] / 65535
    expect(readout).to_have_text(f"layer 1, head 2: the → people {format_number(first[4, 5])}")
    cell.click()
    for name, value in (("layer", "1"), ("head", "2")):
        expect(view.get_by_role("combobox", name=name)).to_have_value(value)


def test_a_link_restores_the_sentence(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    view.get_by_role("textbox").fill("Peace: the cats & 3 peoples; 50%!")
    expect(view.get_by_role("button", name="peoples")).to_be_enabled()
    view.get_by_role("button", name="the", exact=True).click()
    view.get_by_role("combobox", name="head").select_option("2")
    shows(view, masked("Peace: the cats & 3 peoples; 50%!", [2]))
    fragment = copied(view)
    assert "text:~Peace%3A%20the" in fragment
    again = open_page(fragment)
    shows(found(again), masked("Peace: the cats & 3 peoples; 50%!", [2]))
    expect(found(again).get_by_role("combobox", name="head")).to_have_value("2")
    hostile = open_page("#w.guess=text:~%3Cimg%20src=x%3E;masks:1,-4,99,1.5;top:0;layer:7;place:-3")
    shows(found(hostile), masked("<img src=x>", [1], top=1))


def test_weights_come_when_it_is_scrolled_to(open_page: Callable[..., Page]) -> None:
    page = open_page(ready=False)
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    page.reload()
    page.wait_for_function("!document.querySelector('.widget-view:not([data-ready])')")
    settle(page, 3)  # in which it would be seen to be near
    assert page.locator("script[src*='weights/']").count() == 0
    assert not [url for url in asked if "weights/" in url]
    assert bars(masked())[0][0][:3] in found(page).locator(".attn-place").inner_text()  # stored
    found(page).scroll_into_view_if_needed()
    found(page).locator(READY).wait_for()
    assert [url.split("/_static/")[1] for url in asked if "weights/" in url] == [SCRIPT]


def press(page: Page, view: Locator) -> None:
    view.get_by_role("button", name="Try again").click()


def come_near(page: Page, view: Locator) -> None:
    page.evaluate("scrollTo(0, 0)")
    settle(page, 3)  # it is seen to be away
    view.scroll_into_view_if_needed()


def come_online(page: Page, view: Locator) -> None:
    page.evaluate("dispatchEvent(new Event('online'))")


@pytest.mark.parametrize("again", [press, come_near, come_online])
def test_without_weights_the_stored_answer_stays(
    open_page: Callable[..., Page], faults: Faults, again: Callable[[Page, Locator], None]
) -> None:
    page = open_page(ready=False)
    page.route(f"**/{SCRIPT}", lambda route: route.abort())
    view = found(page)
    view.scroll_into_view_if_needed()
    said = view.get_by_text("The model could not start: its script, weights/tiny.js, did not")
    expect(said).to_contain_text("Until then this is the stored answer.")
    shows(view, masked())
    assert view.get_by_role("textbox").is_disabled()
    view.get_by_role("slider", name="words shown").press("End")
    shows(view, masked(top=20))
    page.unroute_all()
    again(page, view)
    view.locator(READY).wait_for()
    expect(said).to_have_count(0)
    view.get_by_role("button", name="the", exact=True).click()
    shows(view, masked(masks=(3, 4), top=20))
    faults.clear()


def test_a_worker_that_dies_is_started_again(open_page: Callable[..., Page]) -> None:
    page = open_page(ready=False)
    page.add_init_script(
        "Worker = class extends Worker { constructor(from) { super(from); window.last = this; } }"
    )
    page.reload()
    view = found(page)
    view.scroll_into_view_if_needed()
    view.locator(READY).wait_for()
    page.evaluate("() => { last.postMessage = () => last.onerror({ message: 'no memory' }); }")
    view.get_by_role("button", name="the", exact=True).click()
    said = view.get_by_text("The model gave no answer: no memory. It is asked again when you")
    expect(said).to_be_visible()
    view.get_by_role("button", name="we", exact=True).click()
    shows(view, masked(masks=(0, 3, 4)))
    expect(said).to_have_count(0)
