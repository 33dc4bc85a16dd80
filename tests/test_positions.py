import math
import re

import pytest
import torch
from torch import nn
from transformers import GPTJConfig, LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj.modeling_gptj import GPTJAttention
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

from attnbook.attention import MultiHeadAttention
from attnbook.masks import causal_mask
from attnbook.positions import (
    Alibi,
    LearnedPositions,
    RelativePositions,
    Rotary,
    ScorePositions,
    SinusoidalPositions,
    sinusoidal,
    tree_distance,
)


def test_sinusoidal_against_the_paper_as_loops():
    p = sinusoidal(7, 10, base=50.0)
    assert p.shape == (7, 10)
    for i in range(7):
        for m in range(5):
            angle = i / 50.0 ** (2 * m / 10)
            assert abs(p[i, 2 * m] - math.sin(angle)) < 1e-6
            assert abs(p[i, 2 * m + 1] - math.cos(angle)) < 1e-6


def test_inner_products_of_sinusoids_depend_on_the_distance_alone():
    p = sinusoidal(60, 16).double()
    products = p @ p.T
    for distance in (0, 1, 7, 30):
        assert products.diagonal(distance).std() < 1e-5
    assert products.diagonal(0).std() < products.diagonal(0)[0] - products.diagonal(1)[0]


def test_vectors_that_are_added():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    assert SinusoidalPositions()(x).equal(x + sinusoidal(5, 8))
    learned = LearnedPositions(6, 8)
    assert learned(x).equal(x + learned.embedding.weight[:5])
    with pytest.raises(ValueError, match=r"x must have at most 6 tokens, .* got 7"):
        learned(torch.randn(2, 7, 8))


def test_a_scheme_changes_nothing_by_itself():
    torch.manual_seed(0)
    plain = MultiHeadAttention(24, 4)
    scheme = MultiHeadAttention(24, 4, positions=ScorePositions())
    scheme.load_state_dict(plain.state_dict())
    x = torch.randn(2, 5, 24)
    assert scheme(x)[0].equal(plain(x)[0])


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotary_against_complex_numbers(pairing):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    turned = Rotary(8, base=100.0, pairing=pairing)(x, start=4)
    for i in range(5):
        for m in range(4):
            a, b = (m, m + 4) if pairing == "half" else (2 * m, 2 * m + 1)
            angle = torch.tensor((4 + i) / 100.0 ** (2 * m / 8), dtype=torch.float64)
            expected = torch.complex(x[..., i, a], x[..., i, b]) * torch.exp(1j * angle)
            assert (turned[..., i, a] - expected.real).abs().max() < 1e-12
            assert (turned[..., i, b] - expected.imag).abs().max() < 1e-12


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotary_scores_do_not_change_when_both_positions_shift(pairing):
    torch.manual_seed(0)
    rotary = Rotary(16, pairing=pairing)
    q, k = torch.randn(2, 9, 16, dtype=torch.float64)
    scores = rotary(q) @ rotary(k).T
    for shift in (1, 37, 1000):
        assert (rotary(q, shift) @ rotary(k, shift).T - scores).abs().max() < 1e-9
    assert (rotary(q, 1) @ rotary(k).T - scores).abs().max() > 0.1


def test_rotary_in_half_precision_counts_positions_in_full():
    x = torch.randn(1, 8, dtype=torch.bfloat16)
    exact = Rotary(8)(x.float(), start=1001)
    assert (Rotary(8)(x, start=1001).float() - exact).abs().max() < 0.05


def copy_maps(ours: MultiHeadAttention, theirs: nn.Module, out: str) -> None:
    for mine, name in [(ours.q, "q_proj"), (ours.k, "k_proj"), (ours.v, "v_proj"), (ours.out, out)]:
        mine.load_state_dict(getattr(theirs, name).state_dict())


def test_rotary_attention_against_llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=48,
        num_attention_heads=6,
        num_key_value_heads=3,
        max_position_embeddings=64,
    )
    config._attn_implementation = "eager"  # the only one that gives weights
    theirs = LlamaAttention(config, layer_idx=0).eval()
    ours = MultiHeadAttention(48, 6, n_kv_heads=3, bias=False, positions=Rotary(8))
    copy_maps(ours, theirs, "o_proj")
    x = torch.randn(2, 11, 48)
    hidden = torch.zeros(11, 11).masked_fill(~causal_mask(11), -torch.inf)[None, None]
    places = LlamaRotaryEmbedding(config)(x, torch.arange(11)[None])
    out, weights = theirs(x, position_embeddings=places, attention_mask=hidden)
    mine, my_weights = ours(x, causal=True, need_weights=True)
    assert (my_weights - weights).abs().max() < 1e-5
    assert (mine - out).abs().max() < 1e-5


def test_rotary_attention_against_gpt_j():
    torch.manual_seed(0)
    config = GPTJConfig(n_embd=48, n_head=6, rotary_dim=8, n_positions=64, attn_pdrop=0.0)
    theirs = GPTJAttention(config, layer_idx=0).eval()
    ours = MultiHeadAttention(48, 6, bias=False, positions=Rotary(8, pairing="interleaved"))
    copy_maps(ours, theirs, "out_proj")
    x = torch.randn(2, 11, 48)
    hidden = torch.zeros(11, 11).masked_fill(~causal_mask(11), -torch.inf)[None, None]
    out, weights = theirs(
        x, attention_mask=hidden, position_ids=torch.arange(11)[None], output_attentions=True
    )
    mine, my_weights = ours(x, causal=True, need_weights=True)
    assert (my_weights - weights).abs().max() < 1e-5
    assert (mine - out).abs().max() < 1e-5


@pytest.mark.parametrize("n_heads", [4, 6, 12])
def test_alibi_against_bloom(n_heads):
    """BLOOM adds slope * j: the same as - slope (i - j) but for a constant in each row."""
    theirs = build_alibi_tensor(torch.ones(1, 9), n_heads, torch.float32)  # [head 1 key]
    q = torch.randn(2, n_heads, 9, 8)
    scores = q @ q.mT
    ours = (scores + Alibi(n_heads).bias(q, q)).masked_fill(~causal_mask(9), -torch.inf).softmax(-1)
    bloom = (scores + theirs).masked_fill(~causal_mask(9), -torch.inf).softmax(-1)
    assert (ours - bloom).abs().max() < 1e-5


def test_alibi_against_loops_on_both_sides():
    bias = Alibi(4).bias(torch.randn(2, 4, 7, 3), torch.randn(2, 4, 7, 3))
    assert bias.shape == (1, 4, 7, 7)
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for i in range(7):
            for j in range(7):
                assert bias[0, head, i, j] == -slope * abs(i - j)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_positions_keep_the_type_of_what_they_change(dtype):
    x = torch.randn(2, 4, 5, 6, dtype=dtype)
    assert SinusoidalPositions()(x[0]).dtype == dtype
    assert LearnedPositions(5, 6).to(dtype)(x[0]).dtype == dtype
    assert Rotary(6)(x).dtype == dtype
    for scheme in (RelativePositions(6, 2).to(dtype), Alibi(4)):
        bias = scheme.bias(x, x)
        assert bias is not None
        assert bias.dtype == dtype


def test_relative_positions_against_loops():
    torch.manual_seed(0)
    relative = RelativePositions(8, max_distance=3)
    q = torch.randn(2, 4, 9, 8)
    bias = relative.bias(q, q)
    assert bias.shape == (2, 4, 9, 9)
    for i in range(9):
        for j in range(9):
            r = min(max(j - i, -3), 3)
            expected = (q[:, :, i] * relative.a[r + 3]).sum(-1) / 8**0.5
            assert (bias[:, :, i, j] - expected).abs().max() < 1e-5


def test_distances_may_come_from_a_tree():
    class InATree(RelativePositions):
        def distance(self, n):
            return tree_distance([1, -1, 1])

    q = torch.randn(1, 1, 3, 8)
    bias = InATree(8, max_distance=3).bias(q, q)
    assert bias[0, 0, 0, 0] != bias[0, 0, 0, 1]
    assert bias[0, 0, 1, 0] == bias[0, 0, 1, 2]


def test_tree_distance_against_walks():
    parents = [3, 0, 3, -1, 3, 4, 5]
    edges = {(i, p) for i, p in enumerate(parents) if p >= 0}
    edges |= {(b, a) for a, b in edges}
    distance = tree_distance(parents)
    for start in range(7):
        seen, reached = {start}, 0
        while len(seen) < 7:
            reached += 1
            new = {b for a, b in edges if a in seen} - seen
            assert {j for j in range(7) if distance[start, j] == reached} == new
            seen |= new


SHORT = torch.ones(1, 3, 24)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: sinusoidal(3, 5), "must be even, two numbers for each wave, got 5"),
        (lambda: Rotary(5), "d_head must be even, two numbers for each pair, got 5"),
        (lambda: Rotary(4, pairing="both"), "pairing must be 'half' or 'interleaved', got 'both'"),
        (lambda: Rotary(4)(torch.ones(3, 6)), "x must be of size 4, got 6"),
        (lambda: RelativePositions(8, -1), "max_distance must be at least 0, got -1"),
        (lambda: Alibi(0), "n_heads must be at least 1, got 0"),
        (
            lambda: MultiHeadAttention(24, 4, positions=RelativePositions(8, 3))(SHORT),
            "q must be of size 8, got 6",
        ),
        (
            lambda: MultiHeadAttention(24, 4, positions=Alibi(1))(SHORT),
            "q must have 1 heads, got 4",
        ),
        (
            lambda: MultiHeadAttention(24, 4, positions=Rotary(8))(SHORT),
            "x must be of size 8, got 6",
        ),
        (lambda: tree_distance([1, 0]), "-1 exactly once, got [1, 0]"),
        (lambda: tree_distance([-1, 5]), "parents must be indices of 2 words"),
        (lambda: tree_distance([-1, 2, 1]), "parents must form one tree, got [-1, 2, 1]"),
    ],
)
def test_what_cannot_be(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()
