"""PromptBench in Chromium, on a built page: stored answers, and one's own prompts to the model in
the page, held to Python. The model is a small random one."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import Preset, PromptBench
from tests.browser.widget_pages import (
    HOSTILE,
    PLACES,
    assert_pictures,
    copied,
    follow,
    serious,
    settle,
    visible,
    widget,
)
from tests.helpers.tiny_llama import read_tiny_llama, write_tiny_llama

PART = 40_000
SUM = Preset("sum", "12 + {} =", "30", (" the", " and the", "12"))
SHOWN = SUM._replace(name="examples", examples=(("1", " 2"), ("30", " the")))
# Presses Stop once twelve characters are written, if writing has not ended by itself before.
STOPPED = """() => {
    const button = document.querySelector(".attn-write .attn-go");
    const going = button.textContent === "Stop", note = button.closest(".attn-write").innerText;
    if (going && document.querySelector(".attn-continued").textContent.length <= 12) return false;
    if (going) button.click();
    return going || /end token|are written/.test(note);
}"""
TALK = Preset("talk", "Who?", candidates=("the", "re"), system="Be in it.", begin="and")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: Any) -> tuple[Path, PromptBench]:
    file = write_tiny_llama(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    model, words = read_tiny_llama(file)
    given = [SUM, SHOWN, TALK, Preset("hostile", HOSTILE[0], candidates=(*HOSTILE[1:4],))]
    return file, PromptBench(model, words, given, steps=6, title="Ask it", name="bench")


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path], bench: Any) -> Path:
    return widget_page([bench[1]], attnbook_model=str(bench[0]), attnbook_part=PART)


def choose(view: Locator, name: str) -> None:
    view.locator(".attn-presets").get_by_role("button", name=name, exact=True).click()


def says(view: Locator, answer: dict[str, Any], slack: float = 0) -> None:
    """The bars of candidates and of likely tokens, and the tokens of the prompt."""
    sent = view.locator(".attn-sent bdi")
    expect(sent).to_have_count(len(answer["tokens"]))
    shown = sent.all_inner_texts()
    special = {"<|im_start|>", "<|im_end|>"}
    assert shown == [name if name in special else visible(name) for name in answer["tokens"]]
    marked = view.locator(".attn-special").all_inner_texts()
    assert marked == [name for name in answer["tokens"] if name in special]
    rows = view.locator(".attn-three li")
    expect(rows).to_have_count(len(answer["candidates"]))
    for row, each in zip(rows.all(), answer["candidates"], strict=True):
        assert row.locator("bdi").inner_text() == visible(each["text"])
        logp = float(row.locator("b").nth(2).text_content().split()[0])  # type: ignore[union-attr]
        assert logp == pytest.approx(each["logp"], abs=0.006 + slack * len(each["tokens"]))
    first = view.locator(".attn-one li bdi").first
    assert slack or first.inner_text() == visible(answer["next"][0][1])


def wanted(bench: Any, preset: Preset) -> dict[str, Any]:
    asked = preset.asked()
    return bench[1]._answer_to(asked, bench[1]._encoded(asked))


def loaded(view: Locator) -> None:
    view.get_by_role("button", name="Load the model").click()
    expect(view.locator(".attn-own")).to_contain_text("The model runs in this page")


def told(view: Locator) -> None:
    """The model has answered what was asked last."""
    view.page.wait_for_timeout(450)  # the pause after a key, in which nothing is asked
    expect(view.locator(".attn-how")).to_have_text("")


@pytest.mark.parametrize("where", PLACES, ids=lambda where: "-".join(map(str, where.values())))
def test_stored_answers_are_shown(open_page: Callable[..., Page], bench: Any, where: Any) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    for preset in bench[1].presets:
        choose(view, preset["name"])
        settle(page, 2)
        says(view, preset["answer"])
        expect(view.locator(".attn-how")).to_contain_text("A stored answer")
        expect(view.get_by_label("System prompt")).to_be_visible(visible=preset["asked"]["chat"])
    assert page.title() != "hacked"
    assert (
        where["scheme"] == "file" or serious(page) == []
    )  # axe reads sheets, which a file may not
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_is_not_stored_is_said(open_page: Callable[..., Page]) -> None:
    view = widget(open_page(scheme="file"), 0)
    view.get_by_label("Text", exact=True).fill("31")
    expect(view.locator(".attn-how")).to_contain_text("is not stored")
    expect(view.locator(".attn-own")).to_contain_text("a page from a server can load the model")


def test_the_model_in_the_page_answers_ones_own_prompts(
    open_page: Callable[..., Page], bench: Any
) -> None:
    page = open_page(width=390, theme="dark")
    view = widget(page, 0)
    loaded(view)
    told(view)
    says(view, bench[1].presets[0]["answer"], 2e-3)
    view.get_by_label("Text", exact=True).fill("1 🐈é")
    view.get_by_role("textbox", name="Candidates").fill(" the\nin\n")
    told(view)
    own = SUM._replace(text="1 🐈é", candidates=(" the", "in"))
    says(view, wanted(bench, own), 2e-3)
    expect(view.locator(".attn-three .attn-before")).to_have_count(1)  # " the" was asked before
    before = view.locator(".attn-three .attn-before").evaluate("(bar) => bar.style.width")
    logp = [each["logp"] for each in bench[1].presets[0]["answer"]["candidates"]]
    share = 100 / sum(2.718281828 ** (z - logp[0]) for z in logp)
    assert float(before[:-1]) == pytest.approx(share, abs=0.5)
    view.get_by_label("Chat template").check()
    view.get_by_label("System prompt").fill("in<|im_end|>")
    told(view)
    says(view, wanted(bench, own._replace(system="in<|im_end|>")), 2e-3)
    assert serious(page) == []


def test_examples_are_added_moved_and_removed(open_page: Callable[..., Page], bench: Any) -> None:
    page = open_page(width=390)
    view = widget(page, 0)
    loaded(view)
    choose(view, "examples")
    told(view)
    says(view, wanted(bench, SHOWN), 2e-3)
    press = view.get_by_role("button", name="Move example 2 up")
    press.focus()
    page.keyboard.press("Enter")
    told(view)
    says(view, wanted(bench, SHOWN._replace(examples=SHOWN.examples[::-1])), 2e-3)
    expect(view.locator(".attn-three .attn-before")).to_have_count(3)
    expect(view.get_by_role("button", name="Move example 1 up")).to_be_focused()
    view.get_by_role("button", name="Add an example").click()
    expect(view.get_by_label("Text of example 3")).to_be_focused()
    page.keyboard.type("in 🐈")
    view.get_by_label("Label of example 3").fill(" re")
    told(view)
    own = (*SHOWN.examples[::-1], ("in 🐈", " re"))
    says(view, wanted(bench, SHOWN._replace(examples=own)), 2e-3)
    again = widget(open_page(copied(view)), 0)
    expect(again.get_by_label("Text of example 3")).to_have_value("in 🐈")
    for n in (1, 2, 1):
        view.get_by_role("button", name=f"Remove example {n}").focus()
        page.keyboard.press("Enter")
        settle(page, 2)
        assert page.evaluate("document.activeElement.closest('.attn') !== null")
    expect(view.get_by_role("button", name="Add an example")).to_be_focused()
    told(view)
    says(view, wanted(bench, SUM), 2e-3)
    add = view.get_by_role("button", name="Add an example")
    for n in range(12):
        add.click()
        expect(view.locator(".attn-examples li")).to_have_count(n + 1)
    expect(add).to_have_attribute("aria-disabled", "true")
    assert serious(page) == []


def test_it_writes_until_it_is_stopped(open_page: Callable[..., Page], bench: Any) -> None:
    page = open_page()
    view = widget(page, 0)
    out = view.locator(".attn-continued")
    write = view.get_by_role("button", name="Write", exact=True)
    write.click()
    expect(view.locator(".attn-write")).to_contain_text("Stored: the model's first tokens")
    stored = bench[1].presets[0]["answer"]["written"]
    words = bench[1]._tokenizer
    row = bench[1]._greedy(bench[1]._encoded(SUM.asked()), 6)
    assert len(stored) == 6 and out.text_content() == words.decode(row, special=True)
    way = view.get_by_role("combobox", name="Each token")
    way.select_option("drawn, temperature 1")
    write.click()
    expect(view.locator(".attn-write")).to_contain_text("No model is there to write")
    loaded(view)
    told(view)
    write.click()
    page.wait_for_function(STOPPED)
    expect(view.locator(".attn-write")).to_contain_text(re.compile("Stopped|end token|are written"))
    expect(write).to_be_visible()
    before = out.text_content() or ""
    page.wait_for_timeout(200)  # time itself: what would be written in it
    assert out.text_content() == before
    shown, row = bench[1], []
    ids = shown._encoded(SUM.asked())  # the same numbers fall on the same tokens
    for n in range(4):
        row.append(shown._next([*ids, *row], n, 1.0, 0))
    wrote = words.decode(row, special=True).split("\ufffd")[0]
    assert before.startswith(wrote)
    view.get_by_role("button", name="With other numbers").click()
    other = "(old) => !document.querySelector('.attn-continued').textContent.startsWith(old)"
    page.wait_for_function(other, arg=before[:12])
    page.wait_for_function("document.querySelector('.attn-continued').textContent.length > 12")
    assert not (out.text_content() or "").startswith(before[:12])
    view.get_by_label("Text", exact=True).fill("31")
    expect(out).to_be_hidden()  # it stood behind another prompt
    expect(write).to_be_visible()
    told(view)
    assert serious(page) == []


def test_what_cannot_be_asked_gets_a_sentence(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    loaded(view)
    said, form = view.locator(".attn-how"), view.get_by_label("Prompt.")
    for text, words in (
        ("  ", "The prompt is empty"),
        ("{} {}", "one {} at most"),
        ("x" * 1200, "tokens; the model reads 512 here at most"),
    ):
        form.fill(text)
        expect(said).to_contain_text(words)
    form.fill("12")
    view.get_by_role("textbox", name="Candidates").fill("a\na")
    expect(said).to_contain_text("A candidate is written twice")
    view.get_by_role("textbox", name="Candidates").fill("a\nb")
    told(view)


def test_a_link_restores_and_reset_begins_anew(open_page: Callable[..., Page], bench: Any) -> None:
    page = open_page()
    view = widget(page, 0)
    choose(view, "talk")
    view.get_by_label("System prompt").fill("Be: brief; & 🐈, ok")
    link = copied(view)
    again = widget(open_page(link), 0)
    expect(again.get_by_label("System prompt")).to_have_value("Be: brief; & 🐈, ok")
    expect(again.get_by_label("Prompt.")).to_have_value("Who?")
    expect(again.get_by_role("textbox", name="Candidates")).to_have_value("the\nre")
    again.get_by_role("button", name="Reset").click()
    settle(again.page, 2)
    says(again, bench[1].presets[0]["answer"])
    follow(again.page, "#w.bench=form:3;chat:9;examples:~,~a")  # what fits is taken
    expect(again.get_by_label("Prompt.")).to_have_value(SUM.form)


def test_without_scripts_there_is_a_picture(page_factory: Any, path: Path, bench: Any) -> None:
    assert_pictures(page_factory(path, javascript=False), [bench[1]])
