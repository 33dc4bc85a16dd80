import torch

from attnbook.attention import MultiHeadAttention
from attnbook.costs import most_bytes


def test_memory_that_is_held_at_once():
    x = torch.randn(100, 1000)  # 400,000 bytes, made before

    def one_after_another():
        for _ in range(5):
            (x * 2).sum()

    def together():
        return torch.stack([x * 2 for _ in range(5)])

    assert 400_000 <= most_bytes(one_after_another) < 410_000
    assert 4_000_000 <= most_bytes(together) < 4_010_000


def test_stored_scores_are_seen_and_fused_ones_do_not_exist():
    n, n_heads = 512, 3
    scores = 4 * n_heads * n**2
    heads = MultiHeadAttention(24, n_heads)

    def step(need_weights):
        x = torch.randn(1, n, 24, requires_grad=True)
        heads(x, need_weights=need_weights)[0].sum().backward()

    assert most_bytes(lambda: step(True)) > 2 * scores  # scores and weights at least
    assert most_bytes(lambda: step(False)) < scores / 2
