"""Walks through a modern decoder's parts: their numbers worked out again by hand."""

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbook.walks import modern_walks
from tests.helpers.walks import drawn, told
from tests.helpers.walks_modern import CONFIG, TOKENS, WORDS, decoder

LAYER = 1


def rms(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return gain * x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()


def turned(x: Tensor, place: int) -> Tensor:
    """A head's vector after rotation, its pairs half a vector apart."""
    out, half = x.clone(), len(x) // 2
    for i in range(half):
        angle = place * CONFIG.rotary_base ** (-2 * i / len(x))
        out[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
        out[i + half] = x[i] * math.sin(angle) + x[i + half] * math.cos(angle)
    return out


def equal(walk: Any, name: str, wanted: Tensor) -> None:
    shown = drawn(walk, name)[0]
    torch.testing.assert_close(shown, wanted[: len(shown)], rtol=1e-4, atol=1e-4, msg=name)


@torch.no_grad()
@pytest.mark.parametrize("qk_norm", [False, True])
def test_each_part_shows_what_the_model_computes(qk_norm: bool) -> None:
    model = decoder(qk_norm=qk_norm)
    walks = modern_walks(model, TOKENS, WORDS, layer=LAYER)
    assert [*walks] == ["norm", "network", "places", "keys"]
    stack: Any = model.stack
    first, block = stack.blocks[0], stack.blocks[LAYER]
    x = first(24**0.5 * stack.embedding(TOKENS[None]), causal=True)[0]  # [token d_model]
    normed = rms(x, block.attention_norm.weight, block.attention_norm.eps)
    equal(walks["norm"], "x", x[-1])
    equal(walks["norm"], "measured", x[-1].pow(2).mean().sqrt()[None])
    equal(walks["norm"], "out", normed[-1])
    attention = block.attention
    q = (normed[-1] @ attention.q.weight.T).unflatten(0, (4, 6))
    keys = (normed[-2] @ attention.k.weight.T).unflatten(0, (2, 6))
    if qk_norm:
        q = rms(q, attention.q_norm.weight, attention.q_norm.eps)
        keys = rms(keys, attention.k_norm.weight, attention.k_norm.eps)
    equal(walks["places"], "a", q[0, :3])
    equal(walks["places"], "b", q[0, 3:])
    equal(walks["places"], "c", turned(q[0], 3)[:3])
    equal(walks["places"], "d", turned(q[0], 3)[3:])
    for head in range(4):
        key = turned(keys[head // 2], 2)
        score = turned(q[head], 3) @ key / 6**0.5
        torch.testing.assert_close(
            drawn(walks["keys"], "scores")[head, 0], score, atol=1e-3, rtol=0
        )
        torch.testing.assert_close(drawn(walks["keys"], "k")[head // 2], key[:2], atol=1e-3, rtol=0)
    after = x + attention(normed[None], causal=True)[0]
    ready = rms(after, block.feed_forward_norm.weight, block.feed_forward_norm.eps)[-1]
    network = block.feed_forward
    gate, up = ready @ network.gate.weight.T, ready @ network.up.weight.T
    opened = gate / (1 + (-gate).exp())
    hidden = opened * up
    wanted = {"x": ready, "gate": gate, "opened": opened, "up": up, "hidden": hidden}
    for name, values in (wanted | {"out": hidden @ network.down.weight.T}).items():
        equal(walks["network"], name, values)


def test_what_is_told_is_true() -> None:
    walks = modern_walks(decoder(), TOKENS, WORDS, layer=LAYER)

    def numbers(part: str, step: int) -> list[float]:
        return [*map(float, re.findall(r"-?\d+\.\d+", walks[part].steps[step]["caption"]))]

    x, root, normed = numbers("norm", 2)
    assert abs(x / root - normed) < 0.02
    normed, gain, out = numbers("norm", 3)
    assert abs(normed * gain - out) < 0.02
    opened, up, product = numbers("network", 4)
    assert abs(opened * up - product) < 0.03
    a, b, out = numbers("places", 2)
    b = -b if " + " in walks["places"].steps[2]["caption"] else b
    (degrees,) = {*map(int, re.findall(r"(\d+)°", walks["places"].steps[2]["caption"]))}
    assert degrees == round(math.degrees(3))
    assert abs(a * math.cos(3) - b * math.sin(3) - out) < 0.02
    assert "2 keys and 2 values of 6 numbers: 24 numbers, where 4 heads" in told(walks["keys"])
    assert "would keep 48" in told(walks["keys"]) and "2 heads share each" in told(walks["keys"])
    for walk in walks.values():
        assert walk.png() and walk.title
        links = re.findall(r"\]\(([^)]*)\)", told(walk))
        assert links and all(walk.picture.find(name) for name in links)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"normalizer": "layer"}, "model must have RMSNorm"),
        ({"gated": False}, "model must have RMSNorm"),
        ({"positions": "learned"}, "model must have RMSNorm"),
        ({"rotary_pairing": "interleaved"}, "model must have RMSNorm"),
        ({"n_kv_heads": None}, "n_kv_heads"),
        ({"n_kv_heads": 1}, "n_kv_heads"),
    ],
)
def test_models_that_it_refuses(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        modern_walks(decoder(**changes), TOKENS, WORDS)


def test_texts_and_layers_that_it_refuses() -> None:
    with pytest.raises(ValueError, match="tokens"):
        modern_walks(decoder(), TOKENS[:1], WORDS)
    with pytest.raises(ValueError, match="words"):
        modern_walks(decoder(), TOKENS, WORDS[:1])
    with pytest.raises(ValueError, match="layer"):
        modern_walks(decoder(), TOKENS, WORDS, layer=3)
