import math

import pytest
import torch
from torch import nn
from transformers import GPTJConfig, LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gptj.modeling_gptj import GPTJAttention
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

from attnbook.model.attention import MultiHeadAttention
from attnbook.model.masks import causal_mask
from attnbook.model.positions import (
    Alibi,
    LearnedPositions,
    RelativePositions,
    Rotary,
    ScorePositions,
    SinusoidalPositions,
    positions_of,
    sinusoidal,
    tree_distance,
)
from attnbook.model.recording import recorded

PLACES = torch.arange(11)[None]


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


def test_vectors_of_given_positions_are_added():
    x, places = torch.randn(2, 5, 8), torch.tensor([[4, 0, 2, 2, 5], [0, 1, 2, 3, 4]])
    learned = LearnedPositions(6, 8)
    tables = [(learned, learned.embedding.weight), (SinusoidalPositions(), sinusoidal(6, 8))]
    for positions, table in tables:
        assert (positions(x, places) - x - table[places]).abs().max() < 1e-6
        assert positions(x, places[1:]).equal(positions(x))


def test_padding_on_either_side_is_not_counted():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0]]).bool()
    assert positions_of(mask)[mask].tolist() == [0, 1, 2] * 3
    assert positions_of(mask).min() == 0


def test_a_scheme_changes_nothing_by_itself():
    torch.manual_seed(0)
    plain = MultiHeadAttention(24, 4)
    scheme = MultiHeadAttention(24, 4, positions=ScorePositions())
    scheme.load_state_dict(plain.state_dict())
    x = torch.randn(2, 5, 24)
    assert scheme(x).equal(plain(x))


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotary_against_complex_numbers(pairing):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    places = torch.tensor([[[4, 5, 6, 9, 1]], [[0, 1, 2, 3, 11]]])
    rotary = Rotary(8, base=100.0, pairing=pairing)
    turned = rotary(x, places)
    assert rotary(x).equal(rotary(x, torch.arange(5)))
    assert rotary.rotate(x, places[:, 0]).equal(turned)
    for i in range(5):
        for m in range(4):
            a, b = (m, m + 4) if pairing == "half" else (2 * m, 2 * m + 1)
            angle = places[..., i].double() / 100.0 ** (2 * m / 8)
            expected = torch.complex(x[..., i, a], x[..., i, b]) * torch.exp(1j * angle)
            assert (turned[..., i, a] - expected.real).abs().max() < 1e-12
            assert (turned[..., i, b] - expected.imag).abs().max() < 1e-12


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_rotary_scores_do_not_change_when_both_positions_shift(pairing):
    torch.manual_seed(0)
    rotary = Rotary(16, pairing=pairing)
    q, k = torch.randn(2, 9, 16, dtype=torch.float64)
    scores, places = rotary(q) @ rotary(k).T, torch.arange(9)
    for shift in (1, 37, 1000):
        moved = rotary(q, places + shift) @ rotary(k, places + shift).T
        assert (moved - scores).abs().max() < 1e-9
    assert (rotary(q, places + 1) @ rotary(k).T - scores).abs().max() > 0.1


def test_rotary_in_half_precision_counts_positions_in_full():
    x = torch.randn(1, 8, dtype=torch.bfloat16)
    exact = Rotary(8)(x.float(), torch.tensor([1001]))
    assert (Rotary(8)(x, torch.tensor([1001])).float() - exact).abs().max() < 0.05


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
    with recorded(ours) as mine:
        ours(x, causal=True)
    assert (mine[""] - weights).abs().max() < 1e-5
    assert (ours(x, causal=True) - out).abs().max() < 1e-5


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
    with recorded(ours) as mine:
        ours(x, causal=True)
    assert (mine[""] - weights).abs().max() < 1e-5
    assert (ours(x, causal=True) - out).abs().max() < 1e-5


@pytest.mark.parametrize("n_heads", [4, 6, 12])
def test_alibi_against_bloom(n_heads):
    """BLOOM adds slope * j: the same as - slope (i - j) but for a constant in each row."""
    theirs = build_alibi_tensor(torch.ones(1, 9), n_heads, torch.float32)  # [head 1 key]
    q = torch.randn(2, n_heads, 9, 8)
    scores = q @ q.mT
    bias = Alibi(n_heads).bias(q, PLACES[:, :9], PLACES[:, :9])
    ours = (scores + bias).masked_fill(~causal_mask(9), -torch.inf).softmax(-1)
    bloom = (scores + theirs).masked_fill(~causal_mask(9), -torch.inf).softmax(-1)
    assert (ours - bloom).abs().max() < 1e-5


def test_alibi_against_loops_on_both_sides():
    queries, keys = torch.tensor([[3, 0, 9], [0, 1, 2]]), torch.tensor([[5, 1, 2, 9, 0]])
    bias = Alibi(4).bias(torch.randn(2, 4, 3, 7), queries, keys)
    assert bias.shape == (2, 4, 3, 5)
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        for b in range(2):
            for i in range(3):
                for j in range(5):
                    expected = -slope * abs(int(queries[b, i] - keys[0, j]))
                    assert bias[b, head, i, j] == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_positions_keep_the_type_of_what_they_change(dtype):
    x = torch.randn(2, 4, 5, 6, dtype=dtype)
    assert SinusoidalPositions()(x[0]).dtype == dtype
    assert LearnedPositions(5, 6).to(dtype)(x[0]).dtype == dtype
    assert Rotary(6)(x).dtype == dtype
    assert RelativePositions(6, 2).to(dtype).bias(x, PLACES[:, :5], PLACES[:, :5]).dtype == dtype


def test_alibi_tells_far_keys_apart_in_half_precision():
    """The slope of the last head is 1/256: from 2048 on, half precision could not hold a step."""
    q = torch.randn(1, 4, 1, 6).half()
    bias = Alibi(4).half().bias(q, torch.tensor([[8000]]), torch.arange(8000)[None])
    assert (bias.diff() > 0).all()


def test_relative_positions_against_loops():
    torch.manual_seed(0)
    relative = RelativePositions(8, max_distance=3)
    queries, keys = torch.tensor([[3, 0, 9, 4], [0, 1, 2, 5]]), torch.tensor([[5, 1, 2, 9, 0]])
    q = torch.randn(2, 6, 4, 8)
    bias = relative.bias(q, queries, keys)
    assert bias.shape == (2, 6, 4, 5)
    for b in range(2):
        for i in range(4):
            for j in range(5):
                r = min(max(int(keys[0, j] - queries[b, i]), -3), 3)
                expected = (q[b, :, i] * relative.a[r + 3]).sum(-1) / 8**0.5
                assert (bias[b, :, i, j] - expected).abs().max() < 1e-5


def test_distances_may_come_from_a_tree():
    class InATree(RelativePositions):
        def distance(self, positions, key_positions):
            return tree_distance([1, -1, 1])[positions, key_positions]

    q = torch.randn(2, 1, 3, 8)
    bias = InATree(8, max_distance=3).bias(q, PLACES[:, :3], PLACES[:, :3])
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
