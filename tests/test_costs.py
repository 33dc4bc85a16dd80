import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from attnbook.model.attention import MultiHeadAttention
from attnbook.model.config import TransformerConfig
from attnbook.model.costs import StepCost, most_bytes, operations, step_cost
from attnbook.model.recording import recorded
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary


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


def test_a_step_with_and_without_a_cache_costs_what_the_formula_says():
    n, d, layers, heads, groups, batch = 11, 24, 3, 6, 2, 5
    config = TransformerConfig(
        d, heads, 64, layers, activation="silu", gated=True, positions="rotary", n_kv_heads=groups
    )  # d_ff is 8/3 d
    model = TransformerDecoder(Vocabulary("abcdefgh"), config).requires_grad_(False)
    tokens = torch.randint(3, 11, (batch, n))
    _, state = model.step(tokens[:, :-1], model.start())

    def counted(run):
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            run()
        return counter.get_total_flops()

    kept = step_cost(n, d, layers, heads, groups, batch=batch, size=4)
    anew = step_cost(n, d, layers, heads, groups, batch=batch, cache=False, size=4)
    cache = dict(state[0])
    assert counted(lambda: model.stack(tokens[:, -1:], causal=True, cache=cache)) == kept.operations
    assert counted(lambda: model.stack(tokens, causal=True)) == anew.operations
    assert sum(k.nbytes + v.nbytes for k, v, _ in cache.values()) == kept.cache
    matrices = [p for p in model.stack.blocks.parameters() if p.ndim == 2]
    assert sum(p.nbytes for p in matrices) == kept.parameters == anew.parameters
    with recorded(model) as weights:
        model.stack(tokens, causal=True)
    assert [w.nbytes for w in weights.values()] == [anew.scores] * layers
    assert (anew.cache, kept.scores) == (0, anew.scores // n)


def test_what_takes_longer_bounds_a_step():
    cost = StepCost(operations=600, parameters=100, cache=20, scores=7)
    assert cost.seconds(speed=200, bandwidth=40) == (3, 3)
    assert cost.seconds(speed=100, bandwidth=40) == (6, 3)
    for speeds, name in (((0, 1), "speed"), ((1, -2), "bandwidth"), ((math.nan, 1), "speed")):
        with pytest.raises(ValueError, match=f"{name} must be above 0, got"):
            cost.seconds(*speeds)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ((0, 8, 1, 2, 1), "n must be"),
        ((5, 8, 1, 3, 1), "n_heads must divide d_model, and n_kv_heads n_heads, got 8, 3, 1"),
        ((5, 8, 1, 4, 3), "n_heads must divide d_model, and n_kv_heads n_heads, got 8, 4, 3"),
        ((5, 8, 0, 4, 2), "n_layers must be"),
    ],
)
def test_sizes_that_do_not_fit(sizes, says):
    with pytest.raises(ValueError, match=says):
        step_cost(*sizes)
