"""Small walks through the parts of a block: their numbers worked out again by hand."""

import re

import pytest
import torch

from attnbook.walks import part_walks
from tests.helpers.walks import drawn, told
from tests.helpers.walks_transformer import (
    ENGLISH,
    FRENCH,
    LAYER,
    PLACE,
    TARGET,
    by_hand,
    normed,
    translator,
)


@torch.no_grad()
def test_each_part_shows_what_the_model_computes() -> None:
    model = translator()
    walks = part_walks(model, ENGLISH, FRENCH, place=PLACE, layer=LAYER)
    found, block = by_hand(model), model.decoder.stack.blocks[LAYER]
    assert [*walks] == ["norm", "add", "attention", "cross", "feed-forward"]
    x = found["before"]
    deviation = ((x - x.mean()) ** 2).mean().add(block.attention_norm.eps).sqrt()
    wanted = {
        ("norm", "x"): x,
        ("norm", "measured"): torch.stack([x.mean(), deviation]),
        ("norm", "normed"): (x - x.mean()) / deviation,
        ("norm", "out"): normed(block.attention_norm, x),
        ("add", "update"): found["own-out"],
        ("add", "sum"): found["own-sum"],
        ("feed-forward", "x"): normed(block.feed_forward_norm, found["cross-sum"]),
        ("feed-forward", "hidden"): found["hidden"],
        ("feed-forward", "out"): found["fed"],
    }
    for (part, name), values in wanted.items():
        shown = drawn(walks[part], name)[0]
        torch.testing.assert_close(shown, values[: len(shown)], rtol=1e-4, atol=1e-4, msg=name)
    assert not torch.allclose(drawn(walks["norm"], "x"), drawn(walks["norm"], "normed"), atol=0.1)


@torch.no_grad()
def test_attentions_show_head_1_and_what_the_mask_strikes_out() -> None:
    model = translator()
    walks = part_walks(model, ENGLISH, FRENCH, place=PLACE, layer=LAYER)
    for part, struck in (("attention", 1), ("cross", 0)):
        scores, weights = (drawn(walks[part], name)[:, 0] for name in ("scores", "weights"))
        assert int(scores.isnan().sum()) == struck
        shares = scores.nan_to_num(-torch.inf).exp()
        torch.testing.assert_close(weights, shares / shares.sum(), rtol=1e-4, atol=1e-4)
        best = f"{float(weights.max()):.2f}"
        assert f"gets {best}" in told(walks[part])
    texts = [told(walks[part]) for part in ("attention", "cross")]
    assert ["strikes out" in each for each in texts] == [True, False]
    assert "German" in texts[0] and "English" in texts[1]


@torch.no_grad()
def test_what_is_told_of_norm_and_sum_is_true() -> None:
    walks = part_walks(translator(), ENGLISH, FRENCH, place=PLACE, layer=LAYER)
    told_sum = walks["add"].steps[-1]["caption"].replace("−", "-").replace("- ", "-")
    a, b, total = map(float, re.findall(r"-?\d+\.\d+", told_sum))
    assert abs(a + b - total) < 0.011
    scaled = walks["norm"].steps[-1]["caption"].replace("−", "-")
    x, y, out = map(float, re.findall(r"-?\d+\.\d+", scaled)[1:])
    normed = float(drawn(walks["norm"], "normed")[0, 0])
    assert abs(normed * x + y - out) < 0.03
    hidden = by_hand(translator())["hidden"]
    assert f"{int((hidden > 0).sum())} of 14" in told(walks["feed-forward"])
    for walk in walks.values():
        assert walk.png() and len(walk.steps) in (3, 4)
        assert not re.search(r"-\d", told(walk))  # a minus, as in the cells, not a hyphen


def test_walks_that_it_refuses() -> None:
    with pytest.raises(ValueError, match="norm 'pre', got 'post'"):
        part_walks(translator(norm="post"), ENGLISH, FRENCH, place=0)
    with pytest.raises(ValueError, match="place"):
        part_walks(translator(), ENGLISH, FRENCH, place=9)
    with pytest.raises(ValueError, match="layer"):
        part_walks(translator(), ENGLISH, FRENCH, place=0, layer=3)
    with pytest.raises(KeyError):
        part_walks(translator(), ENGLISH, "dog", place=0)
    assert TARGET.bos == 1
