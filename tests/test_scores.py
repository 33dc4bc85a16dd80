import pytest
import torch

from attnbook.model.attention import attend
from attnbook.model.scores import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    DotScore,
    LastKeyScore,
    ScaledDotScore,
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
    score, query, keys = build(), torch.randn(2, d_query), torch.randn(2, 6, d_key)
    changed = keys.clone()
    changed[1, 4] += 1
    before, after = (score(query, score.prepare(k)) for k in (keys, changed))
    assert (before != after).nonzero().tolist() == [[1, 4]]


def test_additive_and_concat_are_one_function():
    additive, concat = AdditiveScore(3, 5, 4), ConcatScore(3, 5, 4)
    w = torch.cat([additive.w2.weight, additive.w1.weight], dim=1)
    concat.load_state_dict({"w.weight": w, "v.weight": additive.v.weight})
    query, keys = torch.randn(2, 3), torch.randn(2, 6, 5)
    ours, theirs = (score(query, score.prepare(keys)) for score in (additive, concat))
    assert (ours - theirs).abs().max() < 1e-6


def test_last_key_score_survives_half_precision():
    keys = torch.zeros(1, 80, 2, dtype=torch.float16)
    _, weights = attend(LastKeyScore().prepare(keys), keys, torch.arange(80)[None] < 9)
    assert weights.tolist() == [[0.0] * 8 + [1.0] + [0.0] * 71]
