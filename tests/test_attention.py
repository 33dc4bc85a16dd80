import pytest
import torch

from attnbook.attention import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    DotScore,
    LastKeyScore,
    ScaledDotScore,
    attend,
)

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
