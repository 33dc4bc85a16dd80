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
    tokens, targets = repetition(28, seed=3, batch=200, shortest=3, longest=6)
    lengths = set()
    for row, wanted in zip(tokens.tolist(), targets.tolist(), strict=True):
        n = len({*row})
        lengths.add(n)
        assert row == (row[:n] * 10)[:28]
        assert wanted == [IGNORED] * n + (row[:n] * 10)[n + 1 : 29]
    assert lengths == {3, 4, 5, 6} and {*tokens.unique().tolist()} == {*range(20)}
    with pytest.raises(ValueError, match="longest must lie in 5..20, got 4"):
        repetition(9, 0, shortest=5, longest=4)
