"""TokenizerBench in Chromium, on a built page: what it shows is what Python counts and cuts."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.text.tokenizers import BytePair, learn_merges
from attnbook.web import TokenizerBench
from attnbook.weights.vocabularies import VOCABULARIES, load_vocabulary
from tests.browser.conftest import Faults
from tests.browser.widget_pages import (
    assert_pictures,
    copied,
    everywhere,
    settle,
    violations,
    widget,
)

TEXT = "the people of the states, the unaffordable peace of the people"
SHOWN = TokenizerBench(TEXT, word=6, name="bench", title="How a text becomes tokens")
HOSTILE = "<img src=x onerror=document.title='hacked'> שלום é🥲\x00 & " + "x" * 60


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    return widget_page([SHOWN])


def lanes(view: Locator) -> list[str]:
    view.get_by_role("button", name="Cut words").click()
    counts = view.locator(".attn-lane .attn-legend b:last-child")
    expect(counts).to_have_count(3)
    expect(counts.last).to_contain_text("token")
    return counts.all_inner_texts()


def pieces(box: Locator) -> list[str]:
    return box.locator("bdi").all_text_contents()


@everywhere
def test_it_learns_merge_by_merge(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    words = [word.replace(" ", "␣") for word in BytePair([]).words(TEXT)]
    for said, given in (("", words), ("not ", [TEXT.replace(" ", "␣")])):
        if said:
            box = view.get_by_role("checkbox")
            box.tap() if where["width"] < 600 else box.click()
            view.get_by_role("slider", name="merges").fill("0")
        counts = Counter(pair for word in given for pair in pairwise(word))
        most = view.locator(".attn-pairs li").first
        expect(most.locator("b")).to_have_text(str(max(counts.values())))
        learnt = learn_merges([word.replace("␣", "Ġ") for word in given], 4)
        for n, (a, b) in enumerate(learnt, 1):
            view.get_by_role("button", name="Next", exact=True).first.click()
            made = (a + b).replace("Ġ", "␣")
            expect(view.get_by_text(f"Merge {n}: ")).to_contain_text(f"became {made}")
        assert "".join(pieces(view.locator(".attn-pieces").first)) == "".join(given)
    view.get_by_role("button", name="Back", exact=True).first.click()
    expect(view.get_by_text("Merge 3: ")).to_be_visible()
    view.locator("textarea").fill("")
    expect(view.get_by_text("Type a text.")).to_be_visible()
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")


@everywhere
def test_three_vocabularies_cut(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    said = lanes(view)
    for n, name in enumerate(VOCABULARIES):
        ours: Any = load_vocabulary(name)
        ids = ours.encode(TEXT)
        assert said[n].startswith(f"{len(ids)} tokens, ")
        tokens = [ours.vocab.tokens[i].replace("Ġ", "␣") for i in ids]
        assert pieces(view.locator(".attn-lane .attn-pieces").nth(n)) == tokens
    view.get_by_role("slider", name="step").press("End")
    settle(page, 2)
    parts = view.locator(".attn-cuts")
    for n, name in enumerate([*VOCABULARIES][:2]):
        ours = load_vocabulary(name)
        cut = [ours.vocab.tokens[i].replace("Ġ", "␣") for i in ours.encode(" unaffordable")]
        assert pieces(parts.nth(n)) == cut
    expect(view.get_by_text("No pair of neighbours was ever learnt")).to_have_count(2)
    expect(view.get_by_text("The longest piece that is known")).to_contain_text("The word is cut.")
    view.locator("textarea").fill("🙂 " + "é" * 500)
    expect(view.get_by_text("No piece begins so: the whole word is [UNK].")).to_be_visible()
    view.locator(".attn-words button").last.press("Enter")
    expect(view.get_by_text("This word has 500 letters. Its first 40 are cut")).to_be_visible()
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_a_link_restores_the_state(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    view.locator("textarea").fill(HOSTILE)
    view.get_by_role("checkbox").click()
    view.get_by_role("slider", name="merges").fill("2")
    lanes(view)
    view.locator(".attn-words button").nth(1).click()
    view.get_by_role("button", name="Next", exact=True).last.click()
    again = widget(open_page(copied(view)), 0)
    expect(again.locator("textarea")).to_have_value(HOSTILE)
    expect(again.locator(".attn-words [aria-pressed=true]")).to_have_text("src=x")
    expect(again.get_by_role("slider", name="step")).to_have_value("1")
    again.get_by_role("button", name="Learn pieces").click()
    expect(again.get_by_role("checkbox")).not_to_be_checked()
    expect(again.get_by_role("slider", name="merges")).to_have_value("2")
    assert again.page.title() != "hacked"
    hostile = widget(open_page("#w.bench=merges:1e99;word:-3;step:7777;cut:5;text:4"), 0)
    expect(hostile.locator(".attn-words [aria-pressed=true]")).to_have_text("the")


def test_keys(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    lanes(view)
    words = view.locator(".attn-words button")
    words.nth(5).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(words.nth(4)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    expect(words.last).to_have_attribute("aria-pressed", "true")
    expect(view.locator(".attn-words [tabindex='0']")).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: str) -> None:
    page = open_page(theme=theme)
    view = widget(page, 0)
    view.get_by_role("button", name="Next", exact=True).first.click()
    view.get_by_text("The same in Python").click()
    assert violations(page, ".attn-cutter") == []
    lanes(view)
    settle(page)
    assert violations(page, ".attn-cutter") == []


def test_what_a_keystroke_draws_does_not_grow_with_the_text(
    open_page: Callable[..., Page],
) -> None:
    """The elements on the page, and those that a letter at the end of a text changes."""
    page = open_page()
    view = widget(page, 0)
    script = """async (node) => {
      let changes = 0;
      const watch = new MutationObserver((all) => {
        for (const each of all) changes += 1 + each.addedNodes.length + each.removedNodes.length;
      });
      watch.observe(node.closest(".attn"), { childList: true, subtree: true, characterData: true });
      const note = node.closest(".attn").querySelector(".attn-pieces + .attn-note");
      const said = () => note.textContent, before = said();
      node.value += "e";
      node.dispatchEvent(new Event("input"));
      while (said() === before) await new Promise((done) => setTimeout(done, 5));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      watch.disconnect();
      return [changes, node.closest(".attn").querySelectorAll("*").length];
    }"""
    sizes = []
    for count in (20, 1600):
        text = (TEXT + " ") * count
        view.locator("textarea").fill(text)
        expect(view.get_by_text(f"{len(text):,} bytes are")).to_be_visible()
        sizes.append(view.locator("textarea").evaluate(script))
    assert sizes[1][0] <= 60 and sizes[1][1] <= 1.2 * sizes[0][1] < 1500


def test_a_vocabulary_that_does_not_come(open_page: Callable[..., Page], faults: Faults) -> None:
    page = open_page()
    page.route("**/weights/pieces_gpt2.js", lambda route: route.abort())
    view = widget(page, 0)
    view.get_by_role("button", name="Cut words").click()
    said = view.get_by_text("A vocabulary could not start: its script, weights/pieces_gpt2.js")
    expect(said).to_be_visible()
    page.unroute("**/weights/pieces_gpt2.js")
    view.get_by_role("button", name="Try again").click()
    expect(view.locator(".attn-lane")).to_have_count(3)
    faults.clear()


def test_without_scripts_there_is_a_picture(open_page: Callable[..., Page]) -> None:
    assert_pictures(open_page(javascript=False), [SHOWN])
