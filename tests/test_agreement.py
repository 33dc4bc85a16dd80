"""Beginnings that ask for a verb, and the two verbs."""

from collections import Counter
from itertools import product

import pytest

from attnbook.text.agreement import FORMS, NOUNS, VERBS, Pair, pairs
from attnbook.weights.pretrained import sotu_gpt

SINGULAR, PLURAL = ({f" {verb[i]}" for verb in VERBS} for i in (0, 1))


def numbers(start: str) -> list[bool]:
    """Of each noun, in order: whether it is plural."""
    words = start.replace(",", "").split()
    return [word not in NOUNS for word in words if word.removesuffix("s") in NOUNS]


@pytest.mark.parametrize(
    ("form", "attracted"), [("simple", False), *product([*FORMS][1:], [False, True])]
)
def test_the_verb_has_the_number_of_the_subject(form: str, attracted: bool) -> None:
    where = -1 if form == "opening" else 0
    for i, pair in enumerate(pairs(form, 30, 3, attracted=attracted)):
        plural = numbers(pair.start)
        subject = plural.pop(where)
        assert subject == bool(i % 2)
        assert plural == [subject ^ attracted] * FORMS[form].count("A")
        assert (pair.right in PLURAL, pair.wrong in SINGULAR) == (subject, subject)
        assert {pair.right.strip(), pair.wrong.strip()} in [set(verb) for verb in VERBS]


def test_words_are_drawn() -> None:
    assert pairs("long", 9, 1) == pairs("long", 9, 1) != pairs("long", 9, 2)
    assert pairs("long", 9, 1)[:5] == pairs("long", 5, 1)
    drawn = pairs("preposition", 600, 0, attracted=True)
    nouns = Counter(word.removesuffix("s") for pair in drawn for word in pair.start.split()[1::3])
    assert set(nouns) == set(NOUNS) and max(nouns.values()) < 2 * min(nouns.values())
    assert {pair.right for pair in drawn} == SINGULAR | PLURAL
    words = [pair.start.split() for pair in drawn]
    assert {each[2] for each in words} == {"near", "behind", "beside", "above"}
    assert all(each[1].removesuffix("s") != each[4].removesuffix("s") for each in words)
    opened = {pair.start.split()[0] for pair in pairs("opening", 60, 0)}
    assert opened == {"Near", "Behind", "Beside", "Above"}


def test_one_pair_as_it_is() -> None:
    (one,) = pairs("simple", 1, 0)
    assert isinstance(one, Pair) and one.start.startswith("The ") and one.right.startswith(" ")


def test_each_verb_is_one_token_for_the_book_s_gpt() -> None:
    _, tokenizer = sotu_gpt()
    assert all(len(tokenizer.encode(f" {verb}")) == 1 for both in VERBS for verb in both)


@pytest.mark.parametrize(
    ("form", "n", "attracted", "message"),
    [
        ("odd", 3, False, "form must be one of 'simple'"),
        ("long", 0, False, "n must be a whole number of at least 1, got 0"),
        ("simple", 3, True, "attracted must be False where no other noun is, got form 'simple'"),
    ],
)
def test_bad_arguments(form: str, n: int, attracted: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs(form, n, 0, attracted=attracted)
