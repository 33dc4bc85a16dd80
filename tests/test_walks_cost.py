"""The walks of chapter 7: numbers by PyTorch's own functions, or by loops."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from attnbook.model import TransformerConfig, TransformerDecoder, calls
from attnbook.model.efficient import window_attention
from attnbook.model.mixture import Mixture
from attnbook.text.speeches import VOCAB
from attnbook.walks import (
    cache_growth,
    linear_state,
    mixture_step,
    reach,
    shared_heads,
    softmax_tiles,
)
from attnbook.web import Drawing
from tests.helpers.walks import drawn, told

IDS, NAMES = torch.tensor([7, 9, 4, 11]), [*"abcd"]


def decoder(n_kv_heads: int = 3) -> TransformerDecoder:
    torch.manual_seed(0)
    config = TransformerConfig(12, 3, 20, 2, positions="rotary", n_kv_heads=n_kv_heads)
    return TransformerDecoder(VOCAB, config)


def test_the_cache_holds_the_keys_and_values_of_the_whole_text() -> None:
    model = decoder()
    walk = cache_growth(model, IDS, NAMES, block=1, head=2)
    with torch.no_grad(), calls(model) as seen:
        model(IDS[None])  # anew, without a cache
    (q, k, *_), _ = seen["stack.blocks.1.attention.scores"]
    (a, v), _ = seen["stack.blocks.1.attention.combine"]
    assert torch.allclose(drawn(walk, "k"), k[0, 2, :, :3], atol=1e-5)
    assert torch.allclose(drawn(walk, "v"), v[0, 2, :, :3], atol=1e-5)
    assert torch.allclose(drawn(walk, "a")[:, 0], a[0, 2, -1], atol=1e-5)
    assert torch.allclose(drawn(walk, "q")[0], q[0, 2, -1, :3], atol=1e-5)
    each = 2 * 2 * 12 * 4  # keys and values, two blocks, twelve numbers of four bytes
    assert drawn(walk, "bytes")[:, 0].tolist() == [each, 2 * each, 3 * each, 4 * each]
    words = told(walk)
    assert "2 blocks × 2 × 12 numbers of 4 bytes, [192 bytes](bytes.0)" in words
    assert "without, 1 + 2 + … + 4 = 10. The scores of the next token are the same." in words


def test_a_cache_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tokens must lie in 2\.\.6, got 1"):
        cache_growth(decoder(), IDS[:1], NAMES[:1])
    with pytest.raises(ValueError, match=r"tokens must be \[token\]"):
        cache_growth(decoder(), IDS, NAMES[:3])
    with pytest.raises(ValueError, match=r"block must lie in 0\.\.1, got 2"):
        cache_growth(decoder(), IDS, NAMES, block=2)
    with pytest.raises(ValueError, match=r"head must lie in 0\.\.2, got 3"):
        cache_growth(decoder(), IDS, NAMES, head=3)
    with pytest.raises(ValueError, match="decoder must have a key head for each query head"):
        cache_growth(decoder(1), IDS, NAMES)


def test_shared_heads_have_their_bytes_and_their_quality() -> None:
    walk = shared_heads({6: 2.5, 2: 2.25, 1: 2.75}, n=7, d_head=4, n_layers=5, size=2)
    for i, (g, bits) in enumerate({6: 2.5, 2: 2.25, 1: 2.75}.items()):
        assert drawn(walk, f"mb-{i}")[0, 0].item() == pytest.approx(2 * 5 * 7 * g * 4 * 2 / 1e6)
        assert drawn(walk, f"bits-{i}")[0, 0].item() == bits
        assert len(walk.picture.find(f"k-{i}")) == g
    ends = [(a.start, a.end) for a in walk.arrows]
    assert ("k-1.0", "q-1.2") in ends and ("k-1.1", "q-1.3") in ends and ("k-2", "q-2.5") in ends
    assert len(ends) == 18 and "3 times less" in told(walk) and "6 times less" in told(walk)


@pytest.mark.parametrize(
    "bits", [{4: 1.0}, {4: 1.0, 2: 1.0}, {4: 1.0, 3: 1.0, 1: 1.0}, {1: 1.0, 4: 1.0}]
)
def test_heads_that_cannot_be_shared_are_refused(bits: dict[int, float]) -> None:
    with pytest.raises(ValueError, match=r"bits must|heads must"):
        shared_heads(bits, n=7, d_head=4, n_layers=5)


@pytest.mark.parametrize("size", [2, 3])
def test_tiles_give_what_a_softmax_over_all_gives(size: int) -> None:
    torch.manual_seed(size)
    q, k, v = 3 * torch.randn(5), torch.randn(6, 5), torch.randn(6, 2)
    walk = softmax_tiles(q, k, v, [*"abcdef"], size=size)
    right = scaled_dot_product_attention(q[None, None], k[None], v[None])[0, 0]
    for name in ("out", "whole"):
        assert torch.allclose(drawn(walk, name)[0], right, atol=1e-5)
    scores = [
        sum(a * b for a, b in zip(q.tolist(), key, strict=True)) / 5**0.5 for key in k.tolist()
    ]
    for t in range(6 // size):
        seen = scores[: size * (t + 1)]
        most = max(seen)
        assert drawn(walk, "max")[t, 0].item() == pytest.approx(most, abs=1e-4)
        total = sum(math.exp(s - most) for s in seen)
        assert drawn(walk, "sum")[t, 0].item() == pytest.approx(total, abs=1e-4)
        before = max(scores[: size * t], default=-math.inf)
        assert drawn(walk, "factor")[t, 0].item() == pytest.approx(
            math.exp(before - most), abs=1e-4
        )


def test_tiles_that_do_not_fit_are_refused() -> None:
    q, k, v = torch.randn(5), torch.randn(6, 5), torch.randn(6, 2)
    for size, words in ((4, r"size must lie in 2\.\.3"), (1, "size must be")):
        with pytest.raises(ValueError, match=words):
            softmax_tiles(q, k, v, [*"abcdef"], size=size)
    with pytest.raises(ValueError, match="size must divide the 5 keys, got 2"):
        softmax_tiles(q, k[:5], v[:5], [*"abcde"])
    with pytest.raises(ValueError, match=r"tiles must lie in 2\.\.5, got 1"):
        softmax_tiles(q, k[:2], v[:2], [*"ab"])
    with pytest.raises(ValueError, match=r"v must be \[key d_value\]"):
        softmax_tiles(q, k, v[:, :1], [*"abcdef"])


def test_the_state_gives_what_the_square_gives() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4, 2)
    walk = linear_state(q, k, v, NAMES)

    def phi(x: float) -> float:
        return x + 1 if x > 0 else math.exp(x)

    state = [[0.0] * 3, [0.0] * 3]
    for t in range(4):
        for a in range(2):
            for b, x in enumerate([*v[t].tolist(), 1.0]):
                state[a][b] += phi(k[t, a].item()) * x
        assert walk.picture.find("state")[t].part.values == pytest.approx(
            torch.tensor(state), abs=1e-4
        )
        pairs = [
            sum(phi(q[t, a].item()) * phi(k[j, a].item()) for a in range(2)) for j in range(t + 1)
        ]
        assert drawn(walk, "pairs")[t, : t + 1].tolist() == pytest.approx(pairs, abs=1e-4)
        assert drawn(walk, "pairs")[t, t + 1 :].isnan().all()
    right = [sum(pairs[j] * v[j, b].item() for j in range(4)) / sum(pairs) for b in range(2)]
    for name in ("slow", "out"):
        assert drawn(walk, name)[0].tolist() == pytest.approx(right, abs=1e-4)


def test_a_state_that_cannot_be_drawn_is_refused() -> None:
    q, k, v = torch.randn(3, 6, 2)
    with pytest.raises(ValueError, match=r"tokens must lie in 2\.\.5, got 6"):
        linear_state(q, k, v, [*"abcdef"])
    with pytest.raises(ValueError, match=r"k must be \[token d\]"):
        linear_state(q[:4], torch.randn(4, 3), v[:4], NAMES)


def window(x: Tensor) -> Tensor:
    return window_attention(x[None, None], x[None, None], x[None, None], 2, causal=True)[0, 0]


def lit(walk: Drawing, layer: int) -> list[int]:
    return [j for j, x in enumerate(drawn(walk, f"l{layer}")[0].tolist()) if x]


def test_a_window_reaches_its_width_further_in_each_layer() -> None:
    torch.manual_seed(0)
    walk = reach([window] * 3, torch.randn(12, 5))
    assert [lit(walk, i) for i in range(4)] == [[*range(5, 12)], [*range(7, 12)], [9, 10, 11], [11]]
    ends = [(a.start, a.end) for a in walk.arrows]
    assert ("l0.5", "l1.7") in ends and ("l0.4", "l1.6") not in ends
    assert [e for e in ends if e[1] == "l3.11"] == [(f"l2.{j}", "l3.11") for j in (9, 10, 11)]


def test_gaps_that_double_reach_twice_as_far() -> None:
    torch.manual_seed(0)
    layers = [nn.Conv1d(5, 5, 2, dilation=gap) for gap in (1, 2, 4)]
    walk = reach(
        [lambda x, f=f: f(pad(x.T, (f.dilation[0], 0))).T for f in layers], torch.randn(9, 5)
    )
    assert [lit(walk, i) for i in range(4)] == [[*range(1, 9)], [2, 4, 6, 8], [4, 8], [8]]
    assert len(walk.arrows) == 14 and "[8 places](l0) of the input" in told(walk)


def test_a_reach_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match=r"tokens must lie in 8\.\.16, got 17"):
        reach([window], torch.randn(17, 5))
    with pytest.raises(ValueError, match=r"layers must lie in 1\.\.5, got 0"):
        reach([], torch.randn(9, 5))


def mixture(n_experts: int = 5, top: int = 2) -> Mixture:
    torch.manual_seed(0)
    layer = Mixture(TransformerConfig(10, 2, 7, 1), n_experts, top)
    return layer.requires_grad_(False)


def test_a_mixture_shows_what_its_layer_computes() -> None:
    layer, x = mixture(), 3 * torch.randn(10)
    walk = mixture_step(layer, x, word="G")
    scores = [sum(w * a for w, a in zip(row, x, strict=True)) for row in layer.router.weight]
    assert torch.allclose(drawn(walk, "s")[:, 0], torch.tensor(scores), atol=1e-5)
    first, second = sorted(sorted(range(5), key=lambda e: -scores[e])[:2])
    share = 1 / (1 + math.exp(scores[second] - scores[first]))
    assert drawn(walk, "gate")[:, 0].tolist() == pytest.approx([share, 1 - share], abs=1e-5)
    made = torch.stack([layer.experts[e](x) for e in (first, second)])
    given = made * torch.tensor([[share], [1 - share]])
    for name, right in (("out", made), ("given", given), ("x", x[None]), ("y", layer(x)[None])):
        assert torch.allclose(drawn(walk, name), right[:, :6], atol=1e-5)
    assert torch.allclose(drawn(walk, "given").sum(0), drawn(walk, "y")[0], atol=1e-5)
    joined = [(a.start, a.end) for a in walk.arrows if a.drawn]
    assert joined == [(f"s.{first}", "net.0"), (f"s.{second}", "net.1"), ("net", "gate")]
    words, each = told(walk), 2 * 10 * 7 + 10 + 7
    assert f"[FF{first + 1}](net.0)" in words and f"[FF{second + 1}](net.1)" in words
    assert f"all 5 networks hold {5 * each} parameters, of which “G” used {2 * each}." in words


def test_a_mixture_that_trains_goes_on_training() -> None:
    layer = Mixture(TransformerConfig(10, 2, 7, 1), 3, 2)
    mixture_step(layer, torch.zeros(10), word="G")
    assert layer.training and layer(torch.randn(10)).requires_grad
