"""The walk through two heads: each number by torch's attention, a head at a time."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnbook.model.attention import MultiHeadAttention
from attnbook.model.positions import Rotary
from attnbook.walks import heads_step
from tests.helpers.walks import drawn, told
from tests.helpers.walks_heads import AT, D_HEAD, TOKENS, D, N, setting, walk


@torch.no_grad()
def by_hand(at: int) -> dict[str, Tensor]:
    """What each head computes for the token `at`, by PyTorch's own attention."""
    attention, x = setting()
    found = {}
    for m in (1, 2):
        part = slice(D_HEAD * (m - 1), D_HEAD * m)
        q, k, v = (f(x)[:, part] for f in (attention.q, attention.k, attention.v))
        scores = q[at] @ k.T / D_HEAD**0.5
        made = scaled_dot_product_attention(q[None], k[None], v[None])[0, at]
        from_head = nn.functional.linear(made, attention.out.weight[:, part])
        numbers = {"q": q[at], "k": k, "v": v, "s": scores, "a": scores.softmax(-1), "h": made}
        found |= {f"{name}{m}": x for name, x in numbers.items()} | {f"o{m}": from_head}
    return found | {"out": attention(x[None])[0, at]}


@pytest.mark.parametrize(("at", "first"), [(AT, 4), (0, 0), (1, 0), (N - 1, N - 5)])
def test_the_numbers_are_those_of_torch(at: int, first: int) -> None:
    drawing, right = walk(at), by_hand(at)
    near = slice(first, first + 5)
    for m in (1, 2):
        for name in ("k", "v"):
            assert torch.allclose(drawn(drawing, f"{name}{m}"), right[f"{name}{m}"][near, :4])
        for name in ("s", "a"):
            shown = drawn(drawing, f"{name}{m}")[:, 0]
            assert torch.allclose(shown, right[f"{name}{m}"][near], atol=1e-5)
        assert torch.allclose(drawn(drawing, f"q{m}")[0], right[f"q{m}"][:4])
        assert torch.allclose(drawn(drawing, f"h{m}")[0], right[f"h{m}"][:4], atol=1e-5)
        assert torch.allclose(drawn(drawing, f"o{m}")[0], right[f"o{m}"][:6], atol=1e-5)
    joined = torch.stack([right["h1"][:4], right["h2"][:4]])
    assert torch.allclose(drawn(drawing, "joined"), joined, atol=1e-5)
    assert torch.allclose(drawn(drawing, "out")[0], right["out"][:6], atol=1e-5)


def test_what_is_told_is_what_is_drawn() -> None:
    drawing, right = walk(), by_hand(AT)
    words = told(drawing)
    for m in (1, 2):
        weights = right[f"a{m}"]
        best = int(weights.argmax())
        assert f"“{TOKENS[best]}” [{weights[best]:.2f}](a{m})" in words
    rest = [f"{1 - float(right[f'a{m}'][4:9].sum()):.2f}" for m in (1, 2)]
    assert f"The other 4 tokens share {rest[0]} and {rest[1]}." in words
    terms = [float(right[f"o{m}"][0]) for m in (1, 2)]
    assert f"{terms[0]:.2f}".replace("-", "−") in words
    assert f"= {float(right['out'][0]):.2f}.".replace("-", "−") in words
    assert len(drawing.steps) == 12 and drawing.picture.height < 900


def test_whole_numbers_are_vectors_too() -> None:
    attention, _ = setting()
    x = torch.arange(3 * D).reshape(3, D)
    drawing = heads_step(attention, x, TOKENS[:3], at=1)
    expected = attention(x[None].float())[0, 1, :6].detach()
    assert torch.allclose(drawn(drawing, "out")[0], expected, atol=1e-4)


def test_few_tokens_are_all_shown() -> None:
    attention, x = setting()
    drawing = heads_step(attention, x[:3], TOKENS[:3], at=1)
    assert drawn(drawing, "a1").sum().item() == pytest.approx(1)
    assert "other" not in drawing.steps[5]["caption"].replace("another", "")


def test_what_it_cannot_draw_is_refused() -> None:
    attention, x = setting()
    for other in (
        MultiHeadAttention(D, 7),
        MultiHeadAttention(D, 2, n_kv_heads=1),
        MultiHeadAttention(D, 2, bias=False),
        MultiHeadAttention(D, 2, d_head=3),
    ):
        with pytest.raises(ValueError, match="attention must have two heads of d_model / 2 and b"):
            heads_step(other, x, TOKENS, at=AT)
    for other in (
        MultiHeadAttention(D, 2, qk_norm=True, norm_eps=1e-6),
        MultiHeadAttention(D + 2, 2, positions=Rotary(D_HEAD + 1)),
    ):
        with pytest.raises(ValueError, match="attention must have no positions and no norm, got"):
            heads_step(other, x, TOKENS, at=AT)
    with pytest.raises(ValueError, match=r"tokens must lie in 2\.\.128, got 1"):
        heads_step(attention, x[:1], TOKENS[:1], at=0)
    with pytest.raises(ValueError, match=r"x must be \[token d_model\]"):
        heads_step(attention, x[:, 1:], TOKENS, at=AT)
    with pytest.raises(ValueError, match=r"x must be \[token d_model\]"):
        heads_step(attention, x, TOKENS[1:], at=0)
    with pytest.raises(ValueError, match=r"at must lie in 0\.\.8, got 9"):
        heads_step(attention, x, TOKENS, at=N)
