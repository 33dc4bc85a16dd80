import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from attnbook.data import (
    BOS,
    EOS,
    MAX_DIGITS,
    PAD,
    UNASKED,
    Numbers,
    Vocabulary,
    has_unsettled_german,
    latest_value,
    look_back,
    number_pair,
    pad_batch,
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


def test_split_german_refuses_what_it_does_not_know():
    assert split_german("zwei Millionen eins") == ["zwei", "Millionen", "eins"]
    with pytest.raises(ValueError, match="got 'zweifel'"):
        split_german("zweifel")


@pytest.mark.parametrize("number", [-1, 10**MAX_DIGITS])
def test_number_out_of_range(number):
    with pytest.raises(ValueError, match=f"number must lie in .* got {number}"):
        number_pair(number)


def test_vocabulary_round_trip_and_errors():
    vocab = Vocabulary(["a", "b"])
    assert vocab.encode(["b", "a"]) == [4, 3]
    assert vocab.decode([BOS, 4, 3, EOS, 3]) == ["b", "a"]
    assert vocab.decode([3, PAD, 4]) == ["a"]
    with pytest.raises(KeyError, match="'c' is not among the 5 tokens"):
        vocab.encode(["c"])
    with pytest.raises(ValueError, match="got twice: \\['a'\\]"):
        Vocabulary(["a", "b", "a"])


def test_pad_batch():
    assert pad_batch([[5], [6, 7, 8]]).tolist() == [[5, PAD, PAD], [6, 7, 8]]
    with pytest.raises(ValueError, match="at least one"):
        pad_batch([])


def test_training_never_sees_held_out_numbers():
    task = Numbers(3, held_out=50)
    numbers = [n for digits in (2, 3) for n in task.held_out[digits]]
    hidden = {tuple(task.source_vocab.encode(number_pair(n).source)) for n in numbers}
    assert len(hidden) == 22 + 50
    seen = set()
    for step in range(100):
        batch = task.batch(step)
        seen |= {tuple(t for t in row.tolist() if t != PAD) for row in batch.source}
        assert (batch.target[:, 0] == BOS).all()
        assert ((batch.target == EOS).sum(1) == 1).all()
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
    assert (Numbers(1).batch(0).target != PAD).sum() == 3 * 64


def test_max_digits_out_of_range():
    with pytest.raises(ValueError, match=r"max_digits must lie in 1..12, got 13"):
        Numbers(13)


def test_look_back_asks_for_the_letter_so_many_places_before():
    tokens, targets = look_back(9, seed=1, batch=5, distance=4)
    assert tokens.shape == targets.shape == (5, 9)
    assert targets[:, :4].eq(UNASKED).all()
    assert targets[:, 4:].equal(tokens[:, :5])
    assert set(look_back(200, seed=1).tokens.unique().tolist()) == set(range(16))


def test_latest_value_against_a_dictionary():
    tokens, targets = latest_value(60, seed=2, batch=7)
    answered = 0
    for row, wanted in zip(tokens.tolist(), targets.tolist(), strict=True):
        values: dict[int, int] = {}
        for token, target in zip(row, wanted, strict=True):
            name, value = divmod(token, 9)
            if value < 8:
                values[name] = value
                assert target == UNASKED
            else:
                assert target == values.get(name, UNASKED)
                answered += target != UNASKED
    assert 100 < answered < 7 * 60 * 0.6


@pytest.mark.parametrize("make", [look_back, latest_value])
def test_sequences_depend_on_their_seed_alone(make):
    assert make(30, 5).tokens.equal(make(30, 5).tokens)
    assert not make(30, 5).tokens.equal(make(30, 6).tokens)


@pytest.mark.parametrize("distance", [0, 9])
def test_look_back_too_near_or_too_far(distance):
    with pytest.raises(ValueError, match=rf"distance must lie in 1..8, got {distance}"):
        look_back(9, seed=0, distance=distance)
