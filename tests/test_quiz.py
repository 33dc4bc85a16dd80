"""Quiz in Python: what it refuses, what it stores, its score."""

import re
from typing import Any

import pytest
from matplotlib.figure import Figure

from attnbook.web import Question, Quiz
from attnbook.web.quiz.questions import check_yourself
from attnbook.web.quiz.widget import which_wrote
from tools import notebooks

CHAPTERS = sorted(path.stem for path in notebooks.every() if notebooks.is_story(path))

ONE = Question("Which?", ["this", "that", "none"], 1, ["no", "yes", "no, two"], {"Code": "a  b"})
TWO = Question("True?", ["true", "false"], 0, "As it is.")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"choices": ["this"]}, "choices of question 1 must be two or more different texts"),
        ({"choices": ["this", "this"]}, "choices of question 1 must be two or more different"),
        ({"choices": "this"}, "choices of question 1 must be a list of tokens, not 'this'"),
        ({"right": 3}, "right of question 1 must be 0..2, not 3"),
        ({"right": -1}, "right of question 1 must be 0..2, not -1"),
        ({"why": ["a", "b"]}, "why of question 1 must be one text or 3, a reason for each, not 2"),
        ({"ask": "\ud83d"}, "ask of question 1 must be Unicode text"),
    ],
)
def test_what_it_refuses(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Quiz([TWO, Question(**{**vars(ONE), **changes})])


def test_questions_that_are_none() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Quiz([])
    long = Question("x" * 2_000_000, ["a", "b"], 0, "c")
    with pytest.raises(ValueError, match=r"the questions take 2,000,\d+ bytes"):
        Quiz([long])


def test_it_follows_the_browser_and_keeps_score() -> None:
    quiz = Quiz([ONE, TWO])
    assert (quiz.chosen, quiz.score, quiz.at) == ([-1, -1], 0, 0)
    quiz.set_state({"chosen": [1, 1], "at": 1})
    assert (quiz.score, quiz.at) == (1, 1)
    wrong: dict[str, Any] = {"chosen": [3, 0], "at": 2}
    for trait, value in {**wrong, "chosen ": [0]}.items():
        with pytest.raises(ValueError, match=f"{trait.strip()} must be"):
            setattr(quiz, trait.strip(), value)
    assert (quiz.chosen, quiz.at) == ([1, 1], 1)


def test_what_a_page_is_told() -> None:
    (told, short) = Quiz([ONE, TWO]).questions
    assert told["texts"] == [["Code", "a  b"]] and told["why"][1] == "yes"
    assert short["why"] == ["As it is."] * 2 and short["texts"] == []


def test_the_game_names_the_right_setting() -> None:
    texts = [(f"greedy {n}", f"free {n}") for n in range(12)]
    facts = [(f"repeats {n}", f"varies {n}") for n in range(12)]
    game = which_wrote(("greedy", "top-p"), texts, facts, prompts=[f"go {n}" for n in range(12)])
    for n, each in enumerate(game):
        first = "greedy" if each.texts["A"].startswith("greedy") else "top-p"
        assert each.choices[each.right].startswith(f"A: {first}, ")
        assert sorted(each.texts.values()) == sorted(texts[n]) and f"“go {n}”" in each.ask
        fact = facts[n][first != "greedy"]
        assert str(each.why).startswith(f"A ({first}): {fact}; B (")
    assert {each.right for each in game} == {0, 1}  # by chance
    again = which_wrote(("greedy", "top-p"), texts, facts, prompts=[f"go {n}" for n in range(12)])
    assert game == again and Quiz(game).name == Quiz(again).name


def test_the_game_refuses() -> None:
    with pytest.raises(ValueError, match="as many as the 1 pairs, not 0 and 1"):
        which_wrote(("a", "b"), [("x", "y")], [])
    with pytest.raises(ValueError, match="settings must be two different names"):
        which_wrote(("a", "a"), [("x", "y")], [("", "")])


def test_picture_shows_the_question() -> None:
    quiz, figure = Quiz([ONE, TWO]), Figure()
    quiz.draw(figure)
    shown = figure.axes[0].texts[0].get_text()
    assert shown.splitlines() == ["1 of 2: Which?", "", "Code", "    a b", "", *shown_choices()]


def shown_choices() -> list[str]:
    return [f"○  {choice}" for choice in ONE.choices]


def asked(chapter: str) -> list[dict]:
    return check_yourself(chapter).questions


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_story_ends_with_its_own_questions(chapter):
    cells = notebooks.read(notebooks.BOOK / f"{chapter}.ipynb").cells
    calls = [cell.source for cell in cells if "check_yourself(" in cell.source]
    assert calls == [f'check_yourself("{chapter}")']
    questions = asked(chapter)
    assert 4 <= len(questions) <= 6
    assert len({each["right"] for each in questions}) > 1  # no place is always the right one
    for each in questions:
        assert 3 <= len(each["choices"]) <= 4
        assert len(set(each["why"])) == len(each["choices"])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_page_stores_its_questions_as_they_are_now(chapter):
    """Otherwise the site shows old ones until the chapter is run again."""
    metadata = notebooks.read(notebooks.BOOK / f"{chapter}.ipynb").metadata
    states = metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    assert asked(chapter) in [each["state"].get("questions") for each in states]


def test_only_stories_have_questions():
    files = notebooks.ROOT.glob("src/attnbook/web/quiz/chapters/*.toml")
    assert sorted(file.stem for file in files) == CHAPTERS
    with pytest.raises(ValueError, match="chapter must be one of '01_seq2seq'"):
        check_yourself("12_more")
