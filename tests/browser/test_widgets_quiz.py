"""Quiz in Chromium, on a built page: choose, read why, keep the score."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import Question, Quiz
from attnbook.web.quiz.widget import which_wrote
from tests.browser.widget_pages import HOSTILE, copied, everywhere, serious, widget

GAME = which_wrote(
    ("greedy", "top-p 0.9"),
    [("the sea the sea the sea " * 4, "a boat, red, and late " * 4)] * 3,
    [("0.9 of its words repeat", "0.1 of its words repeat")] * 3,
    prompts=["He looked at"] * 3,
)
ODD = Question(
    HOSTILE[0], HOSTILE[:4], 2, [f"no {each}" for each in HOSTILE[:4]], {HOSTILE[1]: HOSTILE[4]}
)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page([Quiz(GAME, title="Which?", name="game"), Quiz([ODD], name="odd")])


def choices(quiz: Locator) -> Locator:
    return quiz.locator(".attn-choice")


def says(quiz: Locator, n: int, right: int, done: int) -> None:
    told = f"Question {n} of 3 · right so far: {right} of {done} answered."
    expect(quiz.locator(".attn-score")).to_have_text(told)


@everywhere
def test_choose_and_read_why(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    quiz = widget(page, 0)
    says(quiz, 1, 0, 0)
    for n, each in enumerate(GAME):
        expect(quiz.locator(".attn-asked")).to_have_text(each.ask)
        expect(quiz.locator(".attn-texts blockquote")).to_have_text([*each.texts.values()])
        expect(quiz.locator(".attn-verdict")).to_be_empty()
        mine = each.right if n != 1 else 1 - each.right
        button = choices(quiz).nth(mine)
        button.tap() if where["width"] < 600 else button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        word = "Right." if mine == each.right else "Wrong."
        expect(quiz.locator(".attn-verdict")).to_have_text(f"{word} {each.why}")
        expect(quiz.locator(".attn-good")).to_contain_text(each.choices[each.right])
        expect(quiz.locator(".attn-bad")).to_have_count(int(mine != each.right))
        says(quiz, n + 1, n + 1 - (n > 0), n + 1)
        choices(quiz).nth(1 - mine).click()  # tells its reason, and changes no score
        says(quiz, n + 1, n + 1 - (n > 0), n + 1)
        expect(button).to_have_attribute("aria-pressed", "true")
        if n < 2:
            quiz.get_by_role("button", name="Next question").click()
    assert quiz.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_keys_and_what_is_heard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    quiz, heard = widget(page, 0), widget(page, 0).locator(".attn-heard[aria-live]")
    choices(quiz).first.focus()
    page.keyboard.press("Space")
    word = "Right." if GAME[0].right == 0 else "Wrong."
    expect(heard).to_have_text(
        f"{word} {GAME[0].why} Question 1 of 3 · right so far: {1 - GAME[0].right} of 1 answered."
    )
    for _ in range(3):  # the other choice, Back, Next
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(heard).to_contain_text(f"Question 2 of 3 · right so far: {1 - GAME[0].right} of 1")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # at the last one nothing follows, and the focus stays
    says(quiz, 3, 1 - GAME[0].right, 1)
    expect(quiz.get_by_role("button", name="Next question")).to_be_focused()


def test_the_browser_keeps_the_answers_and_reset_forgets_them(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    quiz = widget(page, 0)
    choices(quiz).nth(GAME[0].right).click()
    page.reload()
    says(quiz, 1, 1, 1)
    expect(choices(quiz).nth(GAME[0].right)).to_have_attribute("aria-pressed", "true")
    quiz.get_by_role("button", name="Reset").click()
    says(quiz, 1, 0, 0)
    page.reload()
    says(quiz, 1, 0, 0)
    assert page.evaluate("localStorage.getItem('attnbook.quiz.game')") is None
    for kept in ("{", "null", '{"content":1,"chosen":[0,0,0]}', '{"chosen":[9,9,9]}'):
        page.evaluate("(kept) => localStorage.setItem('attnbook.quiz.game', kept)", kept)
        page.reload()
        says(quiz, 1, 0, 0)


def test_a_link_restores_the_state(open_page: Callable[..., Page]) -> None:
    page = open_page()
    quiz = widget(page, 0)
    choices(quiz).nth(GAME[0].right).click()
    quiz.get_by_role("button", name="Next question").click()
    says(widget(open_page(copied(quiz)), 0), 2, 1, 1)
    says(widget(open_page("#w.game=at:99;chosen:7,7,7"), 0), 3, 0, 0)
    says(widget(open_page("#w.game=at:-5;chosen:1"), 0), 1, 0, 0)


def test_odd_texts_stay_texts(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    quiz = widget(page, 1)
    choices(quiz).nth(2).click()
    expect(quiz.locator(".attn-verdict")).to_have_text(f"Right. no {HOSTILE[2]}")
    expect(quiz.locator(".attn-asked")).to_have_text(HOSTILE[0])
    assert quiz.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    assert quiz.locator("img").count() == 0


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: str, width: int) -> None:
    page = open_page(theme=theme, width=width)
    choices(widget(page, 0)).first.click()
    assert serious(page) == []
