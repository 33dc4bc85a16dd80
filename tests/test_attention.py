import copy
import re

import pytest
import torch
from torch import nn

from attnbook.attention import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    DotScore,
    LastKeyScore,
    MultiHeadAttention,
    ScaledDotScore,
    attend,
)
from attnbook.masks import causal_mask, padding_mask
from attnbook.positions import Alibi, RelativePositions, Rotary, ScorePositions

# query and key sizes, the score, and its formula for one query s and one key h
SCORES = {
    "dot": (5, 5, lambda: DotScore(), lambda f, s, h: sum(s[i] * h[i] for i in range(5))),
    "scaled": (5, 5, lambda: ScaledDotScore(), lambda f, s, h: (s @ h) / 5**0.5),
    "bilinear": (
        3,
        5,
        lambda: BilinearScore(3, 5),
        lambda f, s, h: sum(s[i] * f.w.weight[i, k] * h[k] for i in range(3) for k in range(5)),
    ),
    "additive": (
        3,
        5,
        lambda: AdditiveScore(3, 5, 4),
        lambda f, s, h: f.v.weight[0] @ torch.tanh(f.w1.weight @ h + f.w2.weight @ s),
    ),
    "concat": (
        3,
        5,
        lambda: ConcatScore(3, 5, 4),
        lambda f, s, h: f.v.weight[0] @ torch.tanh(f.w.weight @ torch.cat([s, h])),
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_against_their_formulas_as_loops(name):
    d_query, d_key, build, formula = SCORES[name]
    torch.manual_seed(0)
    score, query, keys = build().double(), torch.randn(2, d_query), torch.randn(2, 6, d_key)
    query, keys = query.double(), keys.double()
    scores = score(query, score.prepare(keys))
    assert scores.shape == (2, 6)
    for b in range(2):
        for j in range(6):
            assert abs(formula(score, query[b], keys[b, j]) - scores[b, j]) < 1e-12


@pytest.mark.parametrize("name", SCORES)
def test_a_score_depends_on_its_own_key_and_sentence_alone(name):
    d_query, d_key, build, _ = SCORES[name]
    torch.manual_seed(0)
    score, query, keys = build(), torch.randn(2, d_query), torch.randn(2, 6, d_key)
    changed = keys.clone()
    changed[1, 4] += 1
    before, after = (score(query, score.prepare(k)) for k in (keys, changed))
    assert (before != after).nonzero().tolist() == [[1, 4]]


def test_additive_and_concat_are_one_function():
    torch.manual_seed(0)
    additive, concat = AdditiveScore(3, 5, 4), ConcatScore(3, 5, 4)
    w = torch.cat([additive.w2.weight, additive.w1.weight], dim=1)
    concat.load_state_dict({"w.weight": w, "v.weight": additive.v.weight})
    query, keys = torch.randn(2, 3), torch.randn(2, 6, 5)
    ours, theirs = (score(query, score.prepare(keys)) for score in (additive, concat))
    assert (ours - theirs).abs().max() < 1e-6


@pytest.mark.parametrize("score", [DotScore(), ScaledDotScore()])
def test_a_dot_product_needs_equal_sizes(score):
    with pytest.raises(ValueError, match=r"query must be of the size of a key .* 5, got 3"):
        score(torch.randn(2, 3), score.prepare(torch.randn(2, 6, 5)))


@pytest.mark.parametrize("name", ["bilinear", "additive", "concat"])
def test_a_query_or_key_of_another_size_is_named(name):
    score = SCORES[name][2]()
    with pytest.raises(ValueError, match="keys must be of size 5, got 4"):
        score(torch.randn(2, 3), score.prepare(torch.randn(2, 6, 4)))
    with pytest.raises(ValueError, match="query must be of size 3, got 4"):
        score(torch.randn(2, 4), score.prepare(torch.randn(2, 6, 5)))


def test_last_key_score_survives_half_precision():
    keys = torch.zeros(1, 60, 2, dtype=torch.float16)
    _, weights = attend(LastKeyScore().prepare(keys), keys, torch.arange(60)[None] < 9)
    assert weights.tolist() == [[0.0] * 8 + [1.0] + [0.0] * 51]


def test_attention_is_the_weighted_sum():
    torch.manual_seed(0)
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    out, weights = attend(scores, values)
    assert out.shape == (2, 5)
    for b in range(2):
        total = sum(scores[b, j].exp() for j in range(6))
        expected = sum(scores[b, j].exp() / total * values[b, j] for j in range(6))
        assert (out[b] - expected).abs().max() < 1e-6
        assert abs(weights[b].sum() - 1) < 1e-6


def test_attention_does_not_see_the_order_of_its_values():
    torch.manual_seed(0)
    scores, values, order = torch.randn(2, 6), torch.randn(2, 6, 5), torch.randperm(6)
    out, shuffled = attend(scores, values)[0], attend(scores[:, order], values[:, order])[0]
    assert (out - shuffled).abs().max() < 1e-6


def test_attention_stays_between_its_values_and_goes_to_the_best_key_in_the_limit():
    torch.manual_seed(0)
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    out, _ = attend(scores, values)
    assert (out >= values.min(1).values).all() and (out <= values.max(1).values).all()
    sharp, _ = attend(scores / 1e-6, values)
    assert sharp.equal(values[torch.arange(2), scores.argmax(-1)])
    flat, _ = attend(scores / 1e6, values)
    assert (flat - values.mean(1)).abs().max() < 1e-5


def test_attention_ignores_masked_values_and_gives_zeros_where_all_are():
    torch.manual_seed(0)
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    mask = torch.tensor([[True, True, False, True, False, True], [False] * 6])
    out, weights = attend(scores, values, mask)
    alone, _ = attend(scores[:1, mask[0]], values[:1, mask[0]])
    assert (out[0] - alone[0]).abs().max() < 1e-6
    assert (weights[~mask] == 0).all()
    assert (out[1] == 0).all()


def torch_pair(d_model=24, n_heads=4, bias=True):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(d_model, n_heads, bias=bias, batch_first=True)
    if bias:
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    return MultiHeadAttention(d_model, n_heads, bias=bias).load_torch(theirs), theirs


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_heads_against_torch(cross, bias):
    """Both kinds of mask at once; torch's boolean masks are True where one may NOT attend."""
    ours, theirs = torch_pair(bias=bias)
    x = torch.randn(3, 5, 24)
    m = torch.randn(3, 7, 24) if cross else x
    tokens = torch.randint(1, 9, m.shape[:2])
    tokens[1, -2:] = 0
    padding, pairs = padding_mask(tokens), torch.rand(5, m.shape[1]) < 0.7
    pairs[:, 0] = True  # torch gives NaN for a query with nothing to attend to
    out, weights = theirs(
        x, m, m, key_padding_mask=~padding, attn_mask=~pairs, average_attn_weights=False
    )
    mask = padding[:, None] & pairs
    memory = m if cross else None
    mine, my_weights = ours(x, memory, mask=mask, need_weights=True)
    assert weights.shape == (3, 4, 5, m.shape[1])
    assert (my_weights - weights).abs().max() < 1e-6
    assert (mine - out).abs().max() < 1e-6
    assert (ours(x, memory, mask=mask)[0] - out).abs().max() < 1e-6


def test_heads_against_torch_without_a_mask():
    ours, theirs = torch_pair()
    x, m = torch.randn(3, 5, 24), torch.randn(3, 7, 24)
    assert (ours(x, m)[0] - theirs(x, m, m)[0]).abs().max() < 1e-6


class Odd(ScorePositions):
    """A scheme that does everything: turns queries and keys apart, and adds to the scores."""

    def rotate(self, q, k):
        return q * torch.arange(1.0, q.shape[2] + 1)[:, None], k.roll(1, dims=2)

    def bias(self, q, k):
        return torch.sin(torch.arange(q.shape[2] ** 2.0)).view(q.shape[2], -1) * q[..., :1]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("positions", [None, Odd()])
def test_heads_against_loops(positions, n_kv_heads, causal):
    torch.manual_seed(0)
    attention = MultiHeadAttention(12, 4, n_kv_heads=n_kv_heads, positions=positions)
    x, mask = torch.randn(2, 5, 12), torch.rand(2, 5, 5) < 0.7
    mask[1, 3] = False  # a query with nothing to attend to
    out, weights = attention(x, mask=mask, causal=causal, need_weights=True)
    q, k, v = (
        m(x).view(2, 5, -1, 3).transpose(1, 2) for m in (attention.q, attention.k, attention.v)
    )
    bias = torch.zeros(2, 4, 5, 5)
    if positions:
        q, k = positions.rotate(q, k)
        bias = positions.bias(q, k)
    for b in range(2):
        for i in range(5):
            joined = []
            for h in range(4):
                own = h * n_kv_heads // 4  # the head of keys that serves this one
                allowed = [j for j in range(5) if mask[b, i, j] and not (causal and j > i)]
                powers = {
                    j: (q[b, h, i] @ k[b, own, j] / 3**0.5 + bias[b, h, i, j]).exp()
                    for j in allowed
                }
                head = torch.zeros(3)
                for j in range(5):
                    alpha = powers[j] / sum(powers.values()) if j in powers else torch.tensor(0.0)
                    assert abs(weights[b, h, i, j] - alpha) < 1e-6
                    head = head + alpha * v[b, own, j]
                joined.append(head)
            assert (out[b, i] - attention.out(torch.cat(joined))).abs().max() < 1e-6


SCHEMES = pytest.mark.parametrize(
    "positions", [None, Rotary(6), RelativePositions(6, 3), Alibi(4)], ids=str
)


@SCHEMES
@pytest.mark.parametrize("n_kv_heads", [2, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_fused_equals_explicit_forward_and_backward(positions, n_kv_heads, causal, masked):
    torch.manual_seed(0)
    attention = MultiHeadAttention(24, 4, n_kv_heads=n_kv_heads, positions=positions)
    x = torch.randn(3, 7, 24)
    mask = torch.rand(3, 7, 7) < 0.6 if masked else None
    if mask is not None:
        mask[1, 2] = False
    found = []
    for need_weights in (False, True):
        asked = x.clone().requires_grad_()
        out, weights = attention(asked, mask=mask, causal=causal, need_weights=need_weights)
        assert (weights is not None) == need_weights
        out.square().sum().backward()
        assert asked.grad is not None
        assert asked.grad.isfinite().all()
        found.append((out, asked.grad))
    assert (found[0][0] - found[1][0]).abs().max() < 1e-5
    assert (found[0][1] - found[1][1]).abs().max() < 1e-5


@pytest.mark.parametrize("need_weights", [False, True])
@SCHEMES
def test_causal_attention_does_not_see_ahead(positions, need_weights):
    torch.manual_seed(0)
    attention = MultiHeadAttention(24, 4, positions=positions)
    x = torch.randn(2, 9, 24)
    changed = x.clone()
    changed[:, 5] += 1
    before, after = (attention(t, causal=True, need_weights=need_weights)[0] for t in (x, changed))
    assert before[:, :5].equal(after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(-1).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_without_positions_a_permutation_goes_through(need_weights):
    torch.manual_seed(0)
    attention, x, order = MultiHeadAttention(24, 4), torch.randn(2, 9, 24), torch.randperm(9)
    out, moved = (attention(t, need_weights=need_weights)[0] for t in (x, x[:, order]))
    assert (out[:, order] - moved).abs().max() < 1e-6


@pytest.mark.parametrize("need_weights", [False, True])
def test_padding_changes_nothing_and_its_gradient_is_zero(need_weights):
    torch.manual_seed(0)
    attention = MultiHeadAttention(24, 4)
    x = torch.randn(2, 9, 24)
    tokens = torch.ones(2, 9, dtype=torch.long)
    tokens[:, 6:] = 0
    x.requires_grad_()
    alone = attention(x[:, :6], need_weights=need_weights)[0]
    padded = attention(x, mask=padding_mask(tokens)[:, None], need_weights=need_weights)[0][:, :6]
    assert (alone - padded).abs().max() < 1e-6
    padded.sum().backward()
    assert x.grad is not None
    assert x.grad[:, 6:].eq(0).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_query_with_nothing_to_attend_to_gets_zeros_from_every_head(need_weights):
    attention = MultiHeadAttention(24, 4)
    mask = causal_mask(5)[None].clone()
    mask[:, 2] = False
    out, _ = attention(torch.randn(2, 5, 24), mask=mask, need_weights=need_weights)
    assert out[:, 2].equal(attention.out.bias.expand(2, -1))


@SCHEMES
@pytest.mark.parametrize(
    ("dtype", "near"), [(torch.float16, 0.01), (torch.bfloat16, 0.05), (torch.float64, 1e-12)]
)
def test_heads_in_other_types(positions, dtype, near):
    torch.manual_seed(0)
    attention = MultiHeadAttention(24, 4, positions=copy.deepcopy(positions)).to(dtype)
    x = torch.randn(2, 5, 24, dtype=dtype)
    explicit, weights = attention(x, causal=True, need_weights=True)
    fused, _ = attention(x, causal=True)
    assert weights is not None
    assert explicit.dtype == fused.dtype == weights.dtype == dtype
    assert (explicit - fused).abs().max() < near


def test_the_causal_mask_is_made_where_the_vectors_are():
    attention = MultiHeadAttention(24, 4).to("meta")
    x = torch.randn(2, 5, 24, device="meta")
    assert attention(x, causal=True, need_weights=True)[0].is_meta


def test_huge_scores_do_not_overflow_in_either_path():
    attention = MultiHeadAttention(24, 4)
    with torch.no_grad():
        attention.q.weight *= 1e10
        attention.k.weight *= 1e10
    x = torch.randn(2, 5, 24)
    for need_weights in (False, True):
        assert attention(x, need_weights=need_weights)[0].isfinite().all()


def test_several_heads_have_the_weights_of_one():
    counts = {sum(p.numel() for p in MultiHeadAttention(24, h).parameters()) for h in (1, 2, 4, 24)}
    assert counts == {4 * (24 * 24 + 24)}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MultiHeadAttention(24, 5), "n_heads must divide d_model, 24, got 5"),
        (lambda: MultiHeadAttention(24, 0), "n_heads must divide d_model, 24, got 0"),
        (lambda: MultiHeadAttention(24, 4, n_kv_heads=3), "n_kv_heads must divide n_heads, 4, got"),
        (lambda: MultiHeadAttention(24, 4, n_kv_heads=0), "n_kv_heads must divide n_heads, 4, got"),
        (lambda: MultiHeadAttention(24, 4)(torch.ones(1, 2, 23)), "x must be of size 24, got 23"),
        (
            lambda: MultiHeadAttention(24, 4)(torch.ones(1, 2, 24), torch.ones(1, 3, 25)),
            "memory must be of size 24, got 25",
        ),
        (
            lambda: MultiHeadAttention(24, 4)(*torch.ones(2, 1, 3, 24), causal=True),
            "memory must be None with causal or positions",
        ),
        (
            lambda: MultiHeadAttention(24, 4, positions=Alibi(4))(*torch.ones(2, 1, 3, 24)),
            "memory must be None with causal or positions",
        ),
        (
            lambda: MultiHeadAttention(24, 4)(torch.ones(4, 3, 24), mask=causal_mask(3)),
            "mask must be boolean [batch query key]",
        ),
        (
            lambda: MultiHeadAttention(24, 4)(torch.ones(4, 3, 24), mask=torch.ones(1, 3, 3)),
            "got torch.float32 of shape (1, 3, 3)",
        ),
        (
            lambda: MultiHeadAttention(24, 4).load_torch(
                nn.MultiheadAttention(24, 4, add_bias_kv=True)
            ),
            "no additional keys",
        ),
        (
            lambda: MultiHeadAttention(24, 4).load_torch(nn.MultiheadAttention(24, 4, bias=False)),
            "reference must have the sizes",
        ),
        (
            lambda: MultiHeadAttention(24, 4).load_torch(nn.MultiheadAttention(24, 3)),
            "reference must have the sizes of this module",
        ),
        (
            lambda: MultiHeadAttention(24, 4).load_torch(nn.MultiheadAttention(24, 4, kdim=5)),
            "one size of keys",
        ),
        (
            lambda: MultiHeadAttention(24, 4).load_torch(
                nn.MultiheadAttention(24, 4, add_zero_attn=True)
            ),
            "no additional keys",
        ),
        (
            lambda: MultiHeadAttention(24, 4, n_kv_heads=2).load_torch(
                nn.MultiheadAttention(24, 4)
            ),
            "reference must have the sizes",
        ),
    ],
)
def test_heads_that_cannot_be(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()
