"""Translator in Chromium, on a built page: its own engine against the models in Python."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, Request, expect

from attnbook.model.seq2seq import Seq2Seq
from attnbook.text.number_words import number_pair
from attnbook.web import PositionExplorer, Translator
from attnbook.web.translator.widget import answer
from attnbook.weights.translators import translator
from tests.browser.conftest import Faults
from tests.browser.widget_pages import (
    HOSTILE,
    copied,
    everywhere,
    settle,
    violations,
    widget,
)

MODELS = ("one_vector", "additive")
SHADES = "The deeper, the larger the weight."
FILES = [f"weights/{name}.js" for name in MODELS]
FIRST = [
    Translator(MODELS, 42, title="A <b>title</b>", name="both"),
    Translator(["four_heads"], 437, stage=1, at=2, name="heads"),
]
LATER = [  # below all others
    Translator(["transformer"], 437, stage=1, at=2, attention=1, name="alone"),
    Translator(["additive", "transformer"], 842, attention=2, name="beside"),
]
ALONE, BESIDE = 7, 8  # their places on the page
PARTS = ("cross", "encoder", "decoder")
HEAVY = 100  # times what a machine with nothing else to do needs; benchmarks keep the budget


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    """The first widgets stand above, three far below others."""
    others = [PositionExplorer(name=f"explorer-{n}") for n in range(4)]
    below = Translator(["dot", "one_head"], 842, name="below")
    guess = Translator(MODELS, 42, guess=True, name="guess")
    return widget_page([*FIRST, *others, below, *LATER, guess])


@pytest.fixture
def open_page(page_factory: Callable[..., Page], path: Path) -> Callable[..., Page]:
    def open_at(fragment: str = "", ready: bool = True, **where: Any) -> Page:
        page = page_factory(f"{path}{fragment}", **where)
        if ready:
            settled(widget(page, 0))
        return page

    return open_at


def settled(view: Locator) -> None:
    """Until the models are there."""
    view.scroll_into_view_if_needed()
    ready = view.locator("button[aria-disabled=false]:visible", has_text="Walk through")
    ready.or_(view.locator(".attn-step table")).first.wait_for()


def words(view: Locator, n: int = 0) -> list[str]:
    """What is written in the card number n, without corrections."""
    settle(view.page)
    return view.locator(".attn-written").nth(n).locator(".attn-german").all_inner_texts()


def shows(view: Locator, models: tuple[str, ...], number: int, attention: int = 0) -> None:
    """That each card has the words and the maps of the model in Python."""
    settle(view.page, 2)
    gold = number_pair(number).target
    for n, name in enumerate(models):
        told, card = answer(name, number, attention), view.locator(".attn-card").nth(n)
        parts = card.locator(".attn-morpheme")
        said = [text for text in parts.locator(".attn-german").all_inner_texts() if text != "…"]
        assert said == told["written"]
        bad = card.locator(".attn-wrong").count()
        assert (bad == 0) == (tuple(told["written"]) == gold)
        finding = "Right." if not bad else f"Wrong in {bad} of {parts.count()} parts."
        expect(card.locator(".attn-finding")).to_have_text(finding)
        maps = view.locator(".attn-own-views").nth(n).locator(".attn-grid")
        assert maps.count() == len(told["maps"])
        for head, weights in enumerate(told["maps"]):
            cells = maps.nth(head).locator("tbody td").all_text_contents()
            shape = np.array(weights).shape
            later = np.triu(np.ones(shape, bool), 1) & (PARTS[attention // 2] == "decoder")
            assert (np.reshape(cells, shape) == "masked").tolist() == later.tolist()
            assert maps.nth(head).locator("td.attn-later").count() == later.sum()
            found = np.where(later, "0", np.reshape(cells, shape)).astype(float)
            np.testing.assert_allclose(found, weights, rtol=0, atol=0.0062)


@everywhere
def test_it_translates_what_is_typed(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    shows(view, MODELS, 42)
    text = view.get_by_role("textbox", name="A number, in digits or in English words")
    text.fill("")
    text.press_sequentially("43729")
    shows(view, MODELS, 43_729)
    text.fill("nine hundred and ninety-nine million one")
    expect(view.locator(".attn-english")).to_have_text(
        "English: nine hundred and ninety nine million and one"
    )
    shows(view, MODELS, 999_000_001)
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    text.fill("")
    text.press_sequentially("437296851372")
    expect(view.locator(".attn-outcome")).to_contain_text("12 digits: both break. Training ended")
    shows(view, MODELS, 437_296_851_372)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.title() != "hacked" and view.locator(".attn-title").inner_text() == "A <b>title</b>"
    view.get_by_role("button", name="Reset").click()
    shows(view, MODELS, 42)


def test_it_grows_until_one_vector_breaks(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    longer, outcome = (
        view.get_by_role("button", name="One digit longer"),
        view.locator(".attn-outcome"),
    )
    number, broke = 42, 0
    for digits in range(3, 10):
        longer.focus()
        page.keyboard.press("Enter")
        settle(page, 2)
        grown = int(view.locator(".attn-number").input_value())
        assert grown // 10 == number and len(str(grown)) == digits
        number = grown
        right = [
            tuple(answer(name, number)["written"]) == number_pair(number).target for name in MODELS
        ]
        assert right[1]
        said = (
            "both are right." if right[0] else f"one vector {'is wrong' if broke else 'breaks'}, "
        )
        said += "" if right[0] else "additive attention is right."
        expect(outcome).to_have_text(f"{digits} digits: {said}")
        share = round(100 * FIRST[0].exact[0][digits - 1])
        note = (
            f"Of numbers that it never saw, with {digits} digits, it gets {share}% exactly right."
        )
        expect(view.locator(".attn-card").first.locator(".attn-shares + .attn-note")).to_have_text(
            note
        )
        broke = broke or (0 if right[0] else digits)
    assert 4 <= broke <= 8
    for _ in range(3):
        longer.click()
    expect(longer).to_have_attribute("aria-disabled", "true")
    view.get_by_role("button", name="Another number").click()
    settle(page, 2)
    assert len(view.locator(".attn-number").input_value()) == 12


def test_shares_wait_until_a_length_is_tried(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 9)
    settled(view)

    def shown() -> list[set[int]]:
        """Of each card the lengths whose share is shown."""
        settle(page, 2)
        cards = view.locator(".attn-card")
        found = []
        for card in (cards.nth(n) for n in range(2)):
            hidden = {int(n) for n in card.locator(".attn-untried").all_inner_texts()}
            found.append({*range(1, 13)} - hidden)
            assert card.locator(".attn-rod i:visible").count() == len(found[-1])
        return found

    assert shown() == [{2}] * 2
    for _ in range(2):
        view.get_by_role("button", name="One digit longer").click()
        settle(page, 2)
    assert shown() == [{2, 3, 4}] * 2
    view.locator(".attn-number").fill("blue")
    assert shown() == [{2, 3, 4}] * 2
    view.locator(".attn-number").fill("1234567")
    assert shown() == [{2, 3, 4, 7}] * 2
    view.get_by_role("button", name="Reset").click()
    assert shown() == [{2}] * 2
    assert widget(page, 0).locator(".attn-untried").count() == 0


def test_odd_input_gets_a_sentence(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    text, outcome = view.locator(".attn-number"), view.locator(".attn-outcome")
    odd = {"": "Write a whole number", "blue": "“blue” is no English", "-5": "nothing below zero"}
    odd |= {"3.5": "without a fraction", str(10**12): "13 digits are too many"}
    odd |= {"9" * 40: "40 digits are too many", "10^12": "13 digits", **dict.fromkeys(HOSTILE, ".")}
    for given, says in odd.items():
        text.fill(given)
        settle(page, 2)
        expect(outcome).to_contain_text(says)
        assert text.get_attribute("aria-invalid") == "true"
        assert words(view) == words(view, 1) == []
        assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    text.fill("201000000")
    expect(outcome).to_contain_text("Germans do not agree how this number is written")
    settle(page, 2)
    assert words(view) and view.locator(".attn-wrong").count() == 0
    text.fill("42")
    shows(view, MODELS, 42)


def by_hand(model: Seq2Seq, number: int, at: int) -> dict[str, Any]:
    """Scores, weights and chances of a step of the additive model, by its own modules."""
    source, vocab = model.encoder.vocab, model.decoder.vocab
    memory = model.read(torch.tensor([source.encode(number_pair(number).source)]))
    written = vocab.encode(number_pair(number).target)
    state = model.decoder.start(memory)
    for token in [vocab.bos, *written][:at]:
        _, state = model.decoder.step(torch.tensor([[token]]), state)
    scores = model.decoder.attention.scores(state[0][:, -1], state[2])[0, 0]
    logits, _ = model.decoder.step(torch.tensor([[[vocab.bos, *written][at]]]), state)
    return {"scores": scores, "weights": scores.softmax(-1), "p": logits[0].softmax(-1)}


@everywhere
def test_the_walk_of_a_word(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    view.locator(".attn-number").fill("437")
    view.get_by_role("button", name="Walk through one word").click()
    word = view.locator(".attn-written").nth(1).get_by_role("button", name="und", exact=True)
    expect(view.locator(".attn-telling")).to_contain_text("is written")
    word.tap() if where["width"] < 600 else word.click()
    expect(word).to_have_attribute("aria-pressed", "true")
    onwards, caption = view.locator(".attn-onwards"), view.locator(".attn-telling")
    expect(caption).to_contain_text("“sieben” is written. The decoder’s state now asks")
    with torch.no_grad():
        told = by_hand(translator("additive"), 437, 3)
    onwards.press("Enter")
    expect(caption).to_contain_text("score = v · tanh(W₁ h + W₂ s)")
    onwards.press("Space")
    expect(caption).to_contain_text("Softmax turns the scores into weights")
    rows = view.locator(".attn-step tbody tr")
    expect(rows.locator(".attn-level b")).to_have_count(len(told["weights"]))
    assert rows.locator("th").all_inner_texts() == list(number_pair(437).source)
    scores = [x.replace("−", "-") for x in rows.locator(".attn-score").all_inner_texts()]
    np.testing.assert_allclose(np.array(scores, float), told["scores"], rtol=0, atol=0.0051)
    weights = rows.locator(".attn-level b").all_inner_texts()
    np.testing.assert_allclose(np.array(weights, float), told["weights"], rtol=0, atol=0.0051)
    onwards.click()
    expect(rows.last.locator("th")).to_have_text("context c")
    onwards.click()
    best = told["p"].max().item()
    expect(caption).to_contain_text(f"“und” has {best:.2f} and is written.")
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    expect(onwards).to_have_text("Next word")
    onwards.click()
    expect(view.get_by_role("combobox", name="German word")).to_have_value("5. dreißig")
    expect(view.get_by_text("step 1 of 5")).to_be_visible()
    view.get_by_role("button", name="Close").click()
    expect(view.locator(".attn-inside")).to_be_hidden()


def test_each_head_has_a_map_and_a_walk(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 1)
    settled(view)
    shows(view, ("four_heads",), 437)
    told = answer("four_heads", 437)["maps"]
    expect(view.get_by_text("step 1 of 6")).to_be_visible()
    view.get_by_role("combobox", name="head").select_option("3")
    for _ in range(2):
        view.locator(".attn-onwards").click()
    levels = view.locator(".attn-step tbody .attn-level b")
    expect(levels).to_have_count(len(told[2][2]))
    weights = levels.all_inner_texts()
    np.testing.assert_allclose(np.array(weights, float), told[2][2], rtol=0, atol=0.0062)
    view.get_by_role("combobox", name="German word").select_option("5. dreißig")
    settle(page, 2)
    assert view.locator(".attn-grid tr.attn-on th").all_inner_texts() == ["dreißig"] * 4
    cell = view.locator(".attn-grid").nth(1).locator("td[data-i='0'][data-j='2']")
    cell.hover()
    expect(view.locator(".attn-readout")).to_have_text(
        f"four heads, head 2: vier → and {told[1][0][2]:.2f}"
    )
    cell.click()
    expect(view.get_by_role("combobox", name="German word")).to_have_value("1. vier")
    for _ in range(3):
        view.locator(".attn-onwards").click()
    expect(view.locator(".attn-telling")).to_contain_text("The GRU reads the context and the start")


# ---- the Transformer


def by_modules(number: int, at: int, block: int, head: int) -> dict[str, Any]:
    """Scores, weights and chances of a word that the Transformer writes, by its own modules."""
    model, seen = translator("transformer"), {}
    cross = model.decoder.stack.blocks[block].cross
    for name in ("q", "k"):
        getattr(cross, name).register_forward_hook(
            lambda _module, _given, out, name=name: seen.update({name: out[0]})
        )
    source, vocab, pair = model.encoder.vocab, model.decoder.vocab, number_pair(number)
    read = torch.tensor([[vocab.bos, *vocab.encode(pair.target)]])
    with torch.no_grad():
        logits = model(torch.tensor([source.encode(pair.source)]), read)[0, at]
    for part in (cross.q, cross.k):
        part._forward_hooks.clear()
    size = len(seen["q"][at]) // 4
    mine = slice(head * size, (head + 1) * size)
    scores = seen["k"][:, mine] @ seen["q"][at, mine] / size**0.5
    return {"scores": scores, "weights": scores.softmax(-1), "p": logits.softmax(-1)}


@everywhere
def test_the_transformer_translates_and_each_attention_has_maps(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    page = open_page(ready=False, **where)
    view = widget(page, ALONE)
    settled(view)
    shows(view, ("transformer",), 437, 1)
    text, which = view.locator(".attn-number"), view.get_by_role("combobox", name="attention")
    text.fill("43729")
    pair = number_pair(43_729)
    for attention in (0, 2, 5):
        which.focus()
        which.select_option(index=attention)
        shows(view, ("transformer",), 43_729, attention)
        rows = view.locator(".attn-grid").first.locator("tbody th").all_text_contents()
        columns = view.locator(".attn-grid").first.locator("thead th").all_text_contents()
        part = PARTS[attention // 2]
        assert rows == ([*pair.source] if part == "encoder" else [*pair.target, "(end)"])
        assert columns == [*(("(start)", *pair.target) if part == "decoder" else pair.source)]
        read = "read" if part == "encoder" else "wrote"
        expect(view.locator(".attn-readout")).to_have_text(
            f"Each row: where the model looked while it {read} that word. {SHADES}"
        )
        assert which.evaluate("(list) => list.ownerDocument.activeElement === list")
        assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    cell = view.locator(".attn-grid").nth(3).locator("td[data-i='2'][data-j='1']")
    cell.tap() if where["width"] < 600 else cell.click()
    expect(view.get_by_role("combobox", name="German word")).to_have_value("3. vierzig")
    text.fill("437296851372")
    shows(view, ("transformer",), 437_296_851_372, 5)
    assert view.locator(".attn-wrong").count()  # twelve digits are more than it has seen
    text.fill("blue")
    expect(view.locator(".attn-outcome")).to_contain_text("“blue” is no English number word.")
    assert words(view) == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@everywhere
def test_the_walk_of_a_word_in_the_transformer(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    page = open_page(ready=False, **where)
    view = widget(page, ALONE)
    settled(view)
    caption, onwards = view.locator(".attn-telling"), view.locator(".attn-onwards")
    expect(caption).to_contain_text("“hundert” is written, and self-attention has mixed it with")
    expect(caption).to_contain_text("In block 2, head 1 of cross-attention makes its query")
    view.get_by_role("combobox", name="head").select_option("3")
    view.get_by_role("combobox", name="block").select_option("1")
    expect(view.get_by_role("combobox", name="attention")).to_have_value("cross-attention, block 1")
    expect(caption).to_contain_text("In block 1, head 3 of cross-attention")
    told = by_modules(437, 2, 0, 2)
    for key in ("Enter", "Space"):
        onwards.press(key)
    rows = view.locator(".attn-step tbody tr")
    expect(rows.locator(".attn-level b")).to_have_count(len(told["weights"]))
    assert rows.locator("th").all_inner_texts() == list(number_pair(437).source)
    scores = [x.replace("−", "-") for x in rows.locator(".attn-score").all_inner_texts()]
    np.testing.assert_allclose(np.array(scores, float), told["scores"], rtol=0, atol=0.0051)
    weights = rows.locator(".attn-level b").all_inner_texts()
    np.testing.assert_allclose(np.array(weights, float), told["weights"], rtol=0, atol=0.0051)
    onwards.click()
    expect(rows.last.locator("th")).to_have_text("found")
    onwards.click()
    expect(caption).to_contain_text("What the 4 heads found stands side by side")
    expect(caption).to_contain_text("The block adds it to s.")
    onwards.click()
    expect(caption).to_contain_text("The feed-forward network and the next block and a last norm")
    expect(caption).to_contain_text(f"“sieben” has {told['p'].max().item():.2f} and is written.")
    expect(view.get_by_text("step 6 of 6")).to_be_visible()
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_the_transformer_stands_beside_another(open_page: Callable[..., Page]) -> None:
    page = open_page(ready=False)
    view = widget(page, BESIDE)
    shows(view, ("additive", "transformer"), 842, 2)  # stored
    expect(view.get_by_role("combobox", name="attention")).to_be_disabled()
    settled(view)
    shows(view, ("additive", "transformer"), 842, 2)
    expect(view.locator(".attn-readout")).to_have_text(
        "Each row: where the model looked while it wrote (the Transformer: read) that word. "
        f"{SHADES}"
    )
    view.get_by_role("combobox", name="attention").select_option("cross-attention, block 2")
    shows(view, ("additive", "transformer"), 842, 1)
    view.locator(".attn-written").nth(1).get_by_role("button", name="zwei").click()
    view.get_by_role("button", name="Walk through one word").click()
    expect(view.get_by_role("combobox", name="model")).to_have_value("Transformer")
    expect(view.locator(".attn-telling")).to_contain_text("In block 2, head 1 of cross-attention")
    view.get_by_role("combobox", name="model").select_option("additive attention")
    expect(view.locator(".attn-telling")).to_contain_text("it is the query s.")
    expect(view.get_by_role("combobox", name="block")).to_be_hidden()
    fragment = copied(view)
    assert "attention:1" in fragment
    again = widget(open_page(fragment, ready=False), BESIDE)
    settled(again)
    shows(again, ("additive", "transformer"), 842, 1)


@pytest.mark.parametrize(("theme", "width"), [("dark", 390), ("light", 1280)])
def test_nothing_is_wrong_with_the_transformer(
    open_page: Callable[..., Page], theme: str, width: int
) -> None:
    page = open_page(ready=False, theme=theme, width=width)
    view = widget(page, ALONE)
    settled(view)
    view.locator(".attn-number").fill("4237968123")  # ten digits are too many
    view.get_by_role("combobox", name="attention").select_option(index=4)
    for _ in range(5):
        view.locator(".attn-onwards").click()
    settle(page, 2)
    assert view.locator(".attn-wrong").count()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_link_restores_the_number(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    view.locator(".attn-number").fill("four thousand three hundred and seventy-two")
    view.get_by_role("button", name="Walk through one word").click()
    view.locator(".attn-onwards").click()
    fragment = copied(view)
    again = widget(open_page(fragment), 0)
    shows(again, MODELS, 4372)
    expect(again.get_by_text("step 2 of 5")).to_be_visible()
    odd = "#w.both=text:~%3Cimg%20src=x%3E;stage:99;at:-7;which:0.5;head:1e9"
    hostile = widget(open_page(odd, ready=False), 0)
    expect(hostile.locator(".attn-outcome")).to_contain_text("“<img” is no English number word.")
    hostile.locator(".attn-number").fill("42")
    shows(hostile, MODELS, 42)
    expect(hostile.get_by_text("step 5 of 5")).to_be_visible()


def test_weights_come_when_it_is_near(open_page: Callable[..., Page]) -> None:
    page = open_page(ready=False)
    asked: list[str] = []

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("request", note)
    page.reload()
    page.wait_for_function("!document.querySelector('.widget-view:not([data-ready])')")
    settled(widget(page, 0))
    settled(widget(page, 1))
    found = {url.split("/_static/")[1] for url in asked if "weights/" in url}
    assert found == {*FILES, "weights/four_heads.js"}  # each once, none of the one below
    assert sum("weights/" in url for url in asked) == 3
    below = widget(page, 6)
    assert words(below, 0) == answer("dot", 842)["written"]  # stored
    settled(below)
    shows(below, ("dot", "one_head"), 842)


def test_without_weights_the_stored_answer_stays(
    open_page: Callable[..., Page], faults: Faults
) -> None:
    page = open_page(ready=False)
    page.route(f"**/{FILES[1]}", lambda route: route.abort())
    page.reload()
    view = widget(page, 0)
    view.scroll_into_view_if_needed()
    said = view.get_by_text("A model could not start: its script, weights/additive.js, did not")
    expect(said).to_contain_text("Until then this is the stored answer.")
    shows(view, MODELS, 42)
    view.locator(".attn-number").fill("43")
    assert words(view) == [] and "dreiundvierzig" in view.locator(".attn-truth").inner_text()
    page.unroute_all()
    view.get_by_role("button", name="Try again").click()
    settled(view)
    expect(said).to_have_count(0)
    shows(view, MODELS, 43)
    faults.clear()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wrong_for_readers(
    open_page: Callable[..., Page], theme: str, width: int
) -> None:
    page = open_page(theme=theme, width=width)
    view = widget(page, 0)
    view.locator(".attn-number").fill("4237968")  # one vector is wrong
    view.get_by_role("button", name="Walk through one word").click()
    for _ in range(4):
        view.locator(".attn-onwards").click()
    settle(page, 2)
    assert view.locator(".attn-wrong").count()
    assert violations(page) == []
    sizes = page.evaluate(
        """[...document.querySelectorAll(".attn-translator *")]
          .filter((e) => [...e.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim()))
          .map((e) => parseFloat(getComputedStyle(e).fontSize)).filter((size) => size > 0)"""
    )
    assert min(sizes) >= 11
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("place", [0, ALONE])
def test_answers_are_quick(open_page: Callable[..., Page], place: int) -> None:
    """A guard against a slip: on a machine with nothing else to do it is 100 ms."""
    page = open_page(ready=False)
    view = widget(page, place)
    settled(view)
    text = view.locator(".attn-number")
    begin = time.perf_counter()
    for number in range(999_999_990, 1_000_000_000):
        text.fill(str(number))
        settle(page, 1)
    assert (time.perf_counter() - begin) / 10 < HEAVY / 100


def test_a_page_without_scripts_shows_pictures(
    page_factory: Callable[..., Page], path: Path
) -> None:
    page = page_factory(path, javascript=False)
    alts = [shown.get_attribute("alt") for shown in page.locator("noscript img").all()]
    assert alts[:2] == [repr(each) for each in FIRST]
