"""A modern decoder's parts in numbers, which are worked out again by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbook.walks import modern_parts
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


def numbers(row: tuple[str, str, list[str], str]) -> list[float]:
    return [float(text.replace("−", "-")) for text in row[2] if text != "…"]


def equal(row: Any, label: str, wanted: Tensor, within: float = 0.0051) -> None:
    assert row[0] == label and len(numbers(row)) == min(5, len(wanted))
    assert (len(wanted) > 5) == (row[2][-1] == "…")
    shown = torch.tensor(numbers(row))
    torch.testing.assert_close(shown, wanted[: len(shown)], rtol=0, atol=within, msg=label)


@torch.no_grad()
@pytest.mark.parametrize("qk_norm", [False, True])
def test_each_part_shows_what_the_model_computes(qk_norm: bool) -> None:
    model = decoder(qk_norm=qk_norm)
    parts = modern_parts(model, TOKENS, WORDS, layer=LAYER)
    assert [*parts] == ["norm", "network", "places", "keys"]
    stack: Any = model.stack
    first, block = stack.blocks[0], stack.blocks[LAYER]
    x = first(24**0.5 * stack.embedding(TOKENS[None]), causal=True)[0]  # [token d_model]
    root = x[-1].pow(2).mean().add(block.attention_norm.eps).sqrt()
    normed = rms(x, block.attention_norm.weight, block.attention_norm.eps)
    wanted = {"x": x[-1], "root mean square": root[None], "x over it": x[-1] / root}
    wanted |= {"times gain": normed[-1]}
    for row, (label, values) in zip(parts["norm"], wanted.items(), strict=True):
        equal(row, label, values)
    attention = block.attention
    q = (normed[-1] @ attention.q.weight.T).unflatten(0, (4, 6))
    keys = (normed[-2] @ attention.k.weight.T).unflatten(0, (2, 6))
    if qk_norm:
        q = rms(q, attention.q_norm.weight, attention.q_norm.eps)
        keys = rms(keys, attention.k_norm.weight, attention.k_norm.eps)
    after = turned(q[0], 3)
    angles = torch.tensor([math.degrees(3 * CONFIG.rotary_base ** (-i / 3)) for i in range(3)])
    wanted = {"query": q[0, :3], "partners": q[0, 3:], "degrees": angles}
    wanted |= {"query, turned": after[:3], "partners, turned": after[3:]}
    for row, (label, values) in zip(parts["places"], wanted.items(), strict=True):
        equal(row, label, values, 0.51 if label == "degrees" else 0.0051)
    for head in range(4):
        at = 2 * (head // 2)
        key = turned(keys[head // 2], 2)
        equal(parts["keys"][at], f"key {head // 2 + 1}", key)
        score = float(turned(q[head], 3) @ key / 6**0.5)
        assert abs(numbers(parts["keys"][at + 1])[head % 2] - score) < 0.0061
    equal(parts["keys"][-1], "kept", torch.tensor([24.0, 48.0]))
    after = x + attention(normed[None], causal=True)[0]
    ready = rms(after, block.feed_forward_norm.weight, block.feed_forward_norm.eps)[-1]
    network = block.feed_forward
    gate, up = ready @ network.gate.weight.T, ready @ network.up.weight.T
    opened = gate / (1 + (-gate).exp())
    wanted = {"normed x": ready, "x times W gate": gate, "SiLU of the gate": opened}
    wanted |= {"x times W up": up, "gate times up": opened * up}
    wanted |= {"times W down": (opened * up) @ network.down.weight.T}
    for row, (label, values) in zip(parts["network"], wanted.items(), strict=True):
        equal(row, label, values)


def test_what_is_said_is_true() -> None:
    parts = modern_parts(decoder(), TOKENS, WORDS, layer=LAYER)
    said = {name: " ".join(row[3] for row in rows) for name, rows in parts.items()}
    assert "5 of its 24 numbers" in said["norm"] and "makes 18 numbers" in said["network"]
    assert "stands at place 3" in said["places"] and "has number 4" in said["places"]
    assert "“our” gives heads 3 to 4 this one key" in said["keys"]
    assert "With 2 keys and values, and with 4" in said["keys"] and "“cats” asks" in said["keys"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"normalizer": "layer"}, "model must have RMSNorm"),
        ({"gated": False}, "model must have RMSNorm"),
        ({"positions": "learned"}, "model must have RMSNorm"),
        ({"rotary_pairing": "interleaved"}, "model must have RMSNorm"),
        ({"n_kv_heads": None}, "model must have RMSNorm"),
    ],
)
def test_models_that_it_refuses(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        modern_parts(decoder(**changes), TOKENS, WORDS)


def test_texts_and_layers_that_it_refuses() -> None:
    with pytest.raises(ValueError, match="tokens"):
        modern_parts(decoder(), TOKENS[:1], WORDS)
    with pytest.raises(ValueError, match="words"):
        modern_parts(decoder(), TOKENS, WORDS[:1])
    with pytest.raises(ValueError, match="layer"):
        modern_parts(decoder(), TOKENS, WORDS, layer=3)
