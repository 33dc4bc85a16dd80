"""The findings of chapter 5 on the task of neighbours: 32 numbers in all heads."""

import pytest
import torch

from book.experiments.heads import LENGTH, Neighbours, held_out, look, strongest, trained
from tests.helpers.repeats import repeats

SEEDS = pytest.mark.parametrize("seed", repeats(*range(3)))
TOKENS = held_out()


def run(
    places: int, heads: int, seed: int, readout: str = "linear", steps: int = 600
) -> Neighbours:
    return trained(places, readout, heads, steps, seed)


def exact(model: Neighbours) -> float:
    return model.right(TOKENS).all(-1).float().mean().item()


def sides(model: Neighbours) -> torch.Tensor:
    """Mean weight of each head on the tokens before and after, `[head 2]`."""
    weights = look(model, TOKENS)
    i = torch.arange(2, LENGTH - 2)
    before, after = weights[:, :, i, i - 1], weights[:, :, i, i + 1]
    return torch.stack([before.mean((0, 2)), after.mean((0, 2))], -1)


@SEEDS
def test_one_head_finds_one_place_and_not_two(seed):
    assert exact(run(1, 1, seed)) >= 0.98
    assert exact(run(2, 1, seed)) <= 0.3


@pytest.mark.full  # chapter 5 trains this model and those below, and asserts as much
@pytest.mark.parametrize("seed", range(3))
def test_two_heads_share_two_places(seed):
    model = run(2, 2, seed, steps=1000)  # after 600 a head may still look at both sides
    assert exact(model) >= 0.9
    on_sides = sides(model)
    assert on_sides.argmax(-1).unique().numel() == 2
    assert on_sides.max(-1).values.min() > 0.5


@pytest.mark.full
def test_heads_of_one_number_point_at_two_places_each():
    """Even one neighbour is too much for them, which one head of 32 numbers finds."""
    model = run(1, 32, 0)
    assert exact(model) <= 0.8
    assert strongest(model, TOKENS).max() <= 2


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_a_hidden_layer_reads_uneven_weights(seed):
    """One head, two places, not even: what a linear readout cannot tell apart."""
    model = run(2, 1, seed, "hidden")
    assert exact(model) >= 0.9
    weights = sides(model)[0]
    assert weights.max() > 1.7 * weights.min()
    assert weights.sum() > 0.6
