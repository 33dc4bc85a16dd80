import torch

from attnbook.attention import MultiHeadAttention
from attnbook.config import TransformerConfig
from attnbook.costs import most_bytes, operations
from attnbook.recording import recorded
from attnbook.transformer import TransformerDecoder
from attnbook.vocabulary import Vocabulary


def test_operations_of_a_transformer_are_those_of_the_formula():
    batch, n, d, d_ff, layers = 3, 7, 8, 20, 2
    vocab = Vocabulary("abcdefgh")
    for positions in ("sinusoidal", "rotary"):
        model = TransformerDecoder(
            vocab, TransformerConfig(d, 2, d_ff, layers, positions=positions)
        )
        tokens = torch.randint(3, 11, (batch, n))
        maps = layers * (4 * d * d + 2 * d * d_ff) + d * len(vocab)
        forward = 2 * batch * n * maps + layers * batch * 4 * n * n * d
        assert operations(lambda: model(tokens).sum()) == 3 * forward  # noqa: B023


def test_operations_of_a_gru_are_those_of_the_formula():
    batch, n, d_input, d = 3, 7, 5, 6
    gru = torch.nn.GRU(d_input, d, batch_first=True)
    x = torch.randn(batch, n, d_input, requires_grad=True)
    forward = 2 * batch * n * (3 * d_input * d + 3 * d * d)
    first = 2 * batch * 3 * d * d  # the state before the first word needs no gradient
    assert operations(lambda: gru(x)[0].sum()) == 3 * forward - first


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

    def step():
        x = torch.randn(1, n, 24, requires_grad=True)
        heads(x).sum().backward()

    assert most_bytes(step) < scores / 2
    with recorded(heads):
        assert most_bytes(step) > 2 * scores  # scores and weights at least
