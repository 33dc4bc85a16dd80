"""Small walks through the parts of a block: their numbers worked out again by hand."""

import re
from typing import Any

import pytest
import torch

from attnbook.model.transformer import Transformer
from attnbook.walks import part_walks
from attnbook.web import Drawing
from tests.helpers.walks import drawn, told
from tests.helpers.walks_transformer import (
    ENGLISH,
    FRENCH,
    LAYER,
    PLACE,
    READ,
    TARGET,
    by_hand,
    encoder_by_hand,
    normed,
    translator,
)

OWN = ["norm", "add", "attention", "feed-forward"]


def walked(model: Transformer, **options: Any) -> dict[str, Drawing]:
    places = {"place": PLACE, "source_place": READ, "layer": LAYER}
    return part_walks(model, ENGLISH, FRENCH, **{**places, **options})


@torch.no_grad()
def test_each_part_shows_what_the_model_computes() -> None:
    model = translator()
    walks = walked(model)
    found, block = by_hand(model), model.decoder.stack.blocks[LAYER]
    assert [*walks] == [*OWN, "cross", *(f"encoder {part}" for part in OWN)]
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
    read = encoder_by_hand(model)
    wanted = {
        ("norm", "x"): read["before"],
        ("norm", "out"): read["norm"],
        ("add", "update"): read["own-out"],
        ("add", "sum"): read["own-sum"],
        ("feed-forward", "hidden"): read["hidden"],
        ("feed-forward", "out"): read["fed"],
    }
    for (part, name), values in wanted.items():
        shown = drawn(walks[f"encoder {part}"], name)[0]
        torch.testing.assert_close(shown, values[: len(shown)], rtol=1e-4, atol=1e-4, msg=name)


@torch.no_grad()
def test_attentions_show_head_1_and_what_the_mask_strikes_out() -> None:
    model = translator()
    walks = walked(model)
    for part, struck in (("attention", 1), ("cross", 0), ("encoder attention", 0)):
        scores, weights = (drawn(walks[part], name)[:, 0] for name in ("scores", "weights"))
        assert int(scores.isnan().sum()) == struck
        shares = scores.nan_to_num(-torch.inf).exp()
        torch.testing.assert_close(weights, shares / shares.sum(), rtol=1e-4, atol=1e-4)
        best = f"{float(weights.max()):.2f}"
        assert f"gets {best}" in told(walks[part])
    texts = [told(walks[part]) for part in ("attention", "cross", "encoder attention")]
    assert ["strikes out" in each for each in texts] == [True, False, False]
    assert ["encoder's H" in each for each in texts] == [False, True, False]
    assert "German" in texts[0] and "English" in texts[1] and "“five” asks" in texts[2]


@torch.no_grad()
def test_what_is_told_of_norm_and_sum_is_true() -> None:
    walks = walked(translator())
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
        walked(translator(norm="post"))
    wrong = {"place": 9, "source_place": 4, "layer": 3}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=f"^{name} must lie in"):
            walked(translator(), **{name: value})
    with pytest.raises(KeyError):
        part_walks(translator(), ENGLISH, "dog", place=0, source_place=0)
    assert TARGET.bos == 1
