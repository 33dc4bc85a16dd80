import torch
from hypothesis import given
from hypothesis import strategies as st

from attnbook.model.masks import causal_mask, masked_softmax, padding_mask


def test_padding_mask_is_true_at_words():
    assert padding_mask(torch.tensor([[4, 5, 0]]), 0).tolist() == [[True, True, False]]
    assert padding_mask(torch.tensor([[4, 5, 0]]), 5).tolist() == [[True, False, True]]


def test_causal_mask_is_true_up_to_the_query():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]


def test_causal_mask_with_keys_of_the_past_is_the_end_of_the_whole():
    for n in range(5):
        for past in range(4):
            assert causal_mask(n, past).equal(causal_mask(past + n)[past:])


@given(st.integers(0, 2**16), st.floats(0, 1))
def test_masked_softmax_against_a_loop(seed, share):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, 4, 5, generator=generator) * 10
    mask = torch.rand(3, 4, 5, generator=generator) < share
    weights = masked_softmax(scores, mask)
    for at in [(b, q) for b in range(3) for q in range(4)]:
        allowed = [scores[at][j].double().exp() if mask[at][j] else 0.0 for j in range(5)]
        total = float(sum(allowed)) or 1.0
        expected = torch.tensor([float(a) / total for a in allowed])
        assert torch.allclose(weights[at], expected, atol=1e-6)


def test_a_mask_may_serve_many_rows():
    scores, mask = torch.randn(3, 4, 5), torch.rand(4, 5) < 0.5
    assert masked_softmax(scores, mask).equal(masked_softmax(scores, mask.expand(3, 4, 5)))
    assert masked_softmax(scores, mask[:1]).equal(masked_softmax(scores, mask[:1].expand(4, 5)))


def test_a_query_that_may_attend_to_nothing_gets_zeros_and_no_nan_gradient():
    scores = torch.randn(2, 3, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        weights = masked_softmax(scores, torch.tensor([[True, True, False], [False] * 3]))
        assert weights[1].tolist() == [0, 0, 0]
        weights[:, 0].sum().backward()
    assert scores.grad is not None
    assert scores.grad[0, :2].ne(0).all()
    assert scores.grad[1].eq(0).all() and scores.grad[0, 2] == 0


def test_a_hidden_score_may_be_anything():
    scores = torch.randn(2, 5)
    mask = torch.tensor([True, False, True, True, False])
    expected = masked_softmax(scores[:, mask])
    for strange in (torch.nan, torch.inf, -torch.inf):
        changed = scores.masked_fill(~mask, strange).requires_grad_()
        weights = masked_softmax(changed, mask)
        assert (weights[:, mask] - expected).abs().max() < 1e-6
        assert weights[:, ~mask].eq(0).all()
        weights[:, 0].sum().backward()
        assert changed.grad is not None and changed.grad.isfinite().all()
        assert changed.grad[:, ~mask].eq(0).all()


def test_huge_scores_do_not_overflow():
    scores = torch.tensor([[3e38, -3e38, 3e38]])
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert weights.tolist() == [[1, 0, 0]]
