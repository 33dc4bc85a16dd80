import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from attnbook.text.number_words import (
    MAX_DIGITS,
    Numbers,
    has_unsettled_german,
    number_pair,
    split_german,
)

numbers = st.integers(1, MAX_DIGITS).flatmap(lambda d: st.integers(0, 10**d - 1))


@given(numbers.filter(lambda n: not has_unsettled_german(n)))
def test_words_are_those_of_num2words(number):
    pair = number_pair(number)
    assert " ".join(pair.source) == num2words(number).replace(",", "").replace("-", " ")
    assert "".join(pair.target) == num2words(number, lang="de").replace(" ", "")


@given(numbers)
def test_links_join_each_content_morpheme_to_its_own_word(number):
    pair = number_pair(number)
    linked_targets = [i for i, _ in pair.links]
    linked_sources = [j for _, j in pair.links]
    assert linked_targets == [i for i, word in enumerate(pair.target) if word != "und"]
    assert sorted(linked_sources) == [j for j, word in enumerate(pair.source) if word != "and"]
    meaning = {}  # every link of a word to another says the same of them in any number
    for i, j in pair.links:
        meaning.setdefault(pair.source[j], set()).add(pair.target[i])
    for english, german in meaning.items():
        alone = {
            "one": {"ein", "eins", "eine"},
            "hundred": {"hundert"},
            "thousand": {"tausend"},
            "million": {"Million", "Millionen"},
            "billion": {"Milliarde", "Milliarden"},
        }
        plain = (0, *range(2, 20), *range(20, 100, 10))
        small = {num2words(n): {num2words(n, lang="de")} for n in plain}
        assert german <= (alone | small)[english]


def test_units_and_tens_swap():
    pair = number_pair(42)
    assert pair.source == ("forty", "two")
    assert pair.target == ("zwei", "und", "vierzig")
    assert pair.links == ((0, 1), (2, 0))
    assert pair.link_matrix().tolist() == [[0, 1], [0, 0], [1, 0]]


def test_most_pairs_change_the_order():
    task = Numbers()
    rng = random.Random(0)
    pairs = [number_pair(rng.choice(task.held_out[rng.randint(1, 9)])) for _ in range(1000)]
    crossing = [p for p in pairs if [j for _, j in p.links] != sorted(j for _, j in p.links)]
    assert 0.6 < len(crossing) / len(pairs) < 0.95


def test_split_german_takes_the_longest_morpheme():
    assert split_german("zwei Millionen eins") == ["zwei", "Millionen", "eins"]
    assert split_german("eintausendneunzehn") == ["ein", "tausend", "neunzehn"]


def test_training_never_sees_held_out_numbers():
    task = Numbers(3, held_out=50)
    numbers = [n for digits in (2, 3) for n in task.held_out[digits]]
    hidden = {tuple(task.source_vocab.encode(number_pair(n).source)) for n in numbers}
    assert len(hidden) == 22 + 50
    seen = set()
    for step in range(100):
        batch = task.batch(step)
        pad = task.source_vocab.pad
        seen |= {tuple(t for t in row.tolist() if t != pad) for row in batch.source}
        assert (batch.target[:, 0] == task.target_vocab.bos).all()
        assert ((batch.target == task.target_vocab.eos).sum(1) == 1).all()
    assert len(seen) > 700
    assert not seen & hidden


def test_batches_depend_on_seed_and_step_alone():
    one, other = Numbers(9), Numbers(9)
    other.batch(3)
    assert one.batch(7, seed=2).source.equal(other.batch(7, seed=2).source)
    assert not one.batch(7).source.equal(one.batch(8).source)
    assert not one.batch(7, seed=1).source.equal(one.batch(7, seed=2).source)


def test_extra_numbers_are_trained_on():
    task = Numbers(2, extra=[10**9])
    billion = task.source_vocab.encode(["billion"])[0]
    shares = [(task.batch(s).source == billion).any(1).float().mean().item() for s in range(50)]
    share = sum(shares) / len(shares)
    assert 0.04 < share < 0.09


def test_extra_numbers_that_are_held_out_are_not_trained_on():
    hidden = Numbers(3).held_out[3][0]
    assert Numbers(3, extra=[hidden, 10**9]).extra == (10**9,)


def test_held_out_numbers_depend_on_the_seed_and_cover_one_digit():
    assert Numbers(seed=0).held_out[5] == Numbers(seed=0).held_out[5]
    assert Numbers(seed=0).held_out[5] != Numbers(seed=1).held_out[5]
    assert Numbers().held_out[1] == tuple(range(10))


@pytest.mark.parametrize(
    ("number", "unsettled"),
    [(101_000, True), (201_000_000, True), (1_000, False), (101, False), (901_000, True)],
)
def test_groups_that_end_in_01_are_left_out(number, unsettled):
    assert has_unsettled_german(number) == unsettled


def test_one_digit_numbers_are_trained_on():
    task = Numbers(1)
    assert (task.batch(0).target != task.target_vocab.pad).sum() == 3 * 64
