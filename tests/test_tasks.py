import pytest

from attnbook.text.tasks import latest_value, look_back, repetition
from attnbook.text.vocabulary import IGNORED


def test_look_back_asks_for_the_letter_so_many_places_before():
    tokens, targets = look_back(9, seed=1, batch=5, distance=4)
    assert tokens.shape == targets.shape == (5, 9)
    assert targets[:, :4].eq(IGNORED).all()
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
                assert target == IGNORED
            else:
                assert target == values.get(name, IGNORED)
                answered += target != IGNORED
    assert 100 < answered < 7 * 60 * 0.6


@pytest.mark.parametrize("make", [look_back, latest_value, repetition])
def test_sequences_depend_on_their_seed_alone(make):
    assert make(30, 5).tokens.equal(make(30, 5).tokens)
    assert not make(30, 5).tokens.equal(make(30, 6).tokens)


def test_a_repetition_asks_for_what_came_after_the_same_letter() -> None:
    tokens, targets = repetition(40, seed=3, batch=100, ring=6, jump=0.3)
    asked = 0
    for row, wanted in zip(tokens.tolist(), targets.tolist(), strict=True):
        ring = row[:6]
        assert len({*ring}) == 6 and {*row} == {*ring} and row[6] == ring[0]
        for i, (letter, target) in enumerate(zip(row, wanted, strict=True)):
            follower = ring[(ring.index(letter) + 1) % 6]
            assert target in ((IGNORED,) if i < 6 else (IGNORED, follower))
            assert target == IGNORED or i == 39 or row[i + 1] == follower
            asked += target != IGNORED
    assert 0.66 < asked / (100 * 34) < 0.76 and {*tokens.unique().tolist()} == {*range(20)}


def test_a_repetition_refuses_what_is_no_ring() -> None:
    with pytest.raises(ValueError, match="ring must lie in 3"):
        repetition(9, 0, ring=2)
    with pytest.raises(ValueError, match="jump must lie in 0"):
        repetition(9, 0, jump=1.5)
