import copy
import math
from itertools import pairwise
from typing import Any

import jaxtyping
import pytest
import torch
from torch import nn

from attnbook.model import attention as attention_module
from attnbook.model.attention import MultiHeadAttention, ScoredAttention, attend, combine
from attnbook.model.masks import causal_mask, masked_softmax, padding_mask
from attnbook.model.positions import Alibi, RelativePositions, Rotary, ScorePositions
from attnbook.model.recording import recorded
from attnbook.model.scores import AdditiveScore

STRANGE = (torch.nan, torch.inf, -torch.inf)
PATHS = pytest.mark.parametrize("stepwise", [False, True], ids=["fused", "stepwise"])
SCHEMES = pytest.mark.parametrize(
    "positions", [None, Rotary(6), RelativePositions(6, 3), Alibi(4)], ids=str
)


def run(attention, *vectors, stepwise: bool, **options) -> torch.Tensor:
    """The output by one of the two ways: while weights are recorded, step by step."""
    if not stepwise:
        return attention(*vectors, **options)
    with recorded(attention):
        return attention(*vectors, **options)


def watched(attention, *vectors, **options) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and weights."""
    with recorded(attention) as weights:
        out = attention(*vectors, **options)
    return out, weights[""]


def slopes(out: torch.Tensor, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Gradients of something that depends on every number of `out`."""
    return torch.autograd.grad((out * torch.linspace(1, 2, out.numel()).view_as(out)).sum(), inputs)


def test_attention_is_the_weighted_sum():
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    out, weights = attend(scores, values)
    assert out.shape == (2, 5)
    for b in range(2):
        total = sum(scores[b, j].exp() for j in range(6))
        expected = sum(scores[b, j].exp() / total * values[b, j] for j in range(6))
        assert (out[b] - expected).abs().max() < 1e-6
        assert abs(weights[b].sum() - 1) < 1e-6


def test_attention_does_not_see_the_order_of_its_values():
    scores, values, order = torch.randn(2, 6), torch.randn(2, 6, 5), torch.randperm(6)
    out, shuffled = attend(scores, values)[0], attend(scores[:, order], values[:, order])[0]
    assert (out - shuffled).abs().max() < 1e-6


def test_attention_stays_between_its_values_and_goes_to_the_best_key_in_the_limit():
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    out, _ = attend(scores, values)
    assert (out >= values.min(1).values).all() and (out <= values.max(1).values).all()
    sharp, _ = attend(scores / 1e-6, values)
    assert sharp.equal(values[torch.arange(2), scores.argmax(-1)])
    flat, _ = attend(scores / 1e6, values)
    assert (flat - values.mean(1)).abs().max() < 1e-5


def test_attention_ignores_masked_values_and_gives_zeros_where_all_are():
    scores, values = torch.randn(2, 6), torch.randn(2, 6, 5)
    mask = torch.tensor([[True, True, False, True, False, True], [False] * 6])
    out, weights = attend(scores, values, mask)
    alone, _ = attend(scores[:1, mask[0]], values[:1, mask[0]])
    assert (out[0] - alone[0]).abs().max() < 1e-6
    assert (weights[~mask] == 0).all()
    assert (out[1] == 0).all()


@pytest.mark.parametrize("strange", STRANGE)
def test_what_a_masked_value_or_score_holds_is_not_seen(strange):
    mask = torch.tensor([[True, False, True, True], [False, True, True, True], [False] * 4])
    scores, values = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, 5, requires_grad=True)
    clean, weights = attend(scores, values, mask)
    dirty, same = attend(
        scores.masked_fill(~mask, strange), values.masked_fill(~mask[..., None], strange), mask
    )
    assert same.equal(weights) and (dirty - clean).abs().max() < 1e-6
    for mine, expected in zip(
        slopes(dirty, scores, values), slopes(clean, scores, values), strict=True
    ):
        assert (mine - expected).abs().max() < 1e-6


def test_one_value_may_be_seen_by_some_queries_alone():
    """Values serve all queries: who may not see the strange one gets a number."""
    values = torch.tensor([[[1.0], [torch.nan], [3.0]]])
    mask = torch.tensor([[True, False, True], [True, True, True], [False, False, True]])
    out, _ = attend(torch.zeros(1, 3, 3), values[:, None], mask)
    assert out[0, [0, 2], 0].tolist() == [2.0, 3.0] and out[0, 1, 0].isnan()


def test_scored_attention_is_attend_with_a_score():
    attention = ScoredAttention(AdditiveScore(3, 5, 4))
    query, keys = torch.randn(2, 3), torch.randn(2, 6, 5)
    mask = torch.tensor([[True] * 6, [True, True, False, True, False, False]])
    prepared = attention.prepare(keys)
    out, weights = watched(attention, query, keys, prepared, mask)
    expected, alpha = attend(attention.score(query, prepared), keys, mask)
    assert weights.shape == (2, 1, 6)
    assert weights[:, 0].equal(alpha) and out.equal(expected)


def torch_pair(d_model=24, n_heads=4, bias=True):
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
    padding, pairs = padding_mask(tokens, 0), torch.rand(5, m.shape[1]) < 0.7
    pairs[:, 0] = True  # torch gives NaN for a query with nothing to attend to
    out, weights = theirs(
        x, m, m, key_padding_mask=~padding, attn_mask=~pairs, average_attn_weights=False
    )
    mask = padding[:, None] & pairs
    memory = m if cross else None
    mine, my_weights = watched(ours, x, memory, mask=mask)
    assert weights.shape == (3, 4, 5, m.shape[1])
    assert (my_weights - weights).abs().max() < 1e-6
    assert (mine - out).abs().max() < 1e-6
    assert (ours(x, memory, mask=mask) - out).abs().max() < 1e-6


def test_heads_against_torch_without_a_mask():
    ours, theirs = torch_pair()
    x, m = torch.randn(3, 5, 24), torch.randn(3, 7, 24)
    assert (ours(x, m) - theirs(x, m, m)[0]).abs().max() < 1e-6


class Odd(ScorePositions):
    """A scheme that does everything: turns queries and keys, and adds to the scores."""

    def rotate(self, x, positions):
        return x * (positions + 1)[:, None, :, None]

    def bias(self, q, positions, key_positions):
        return (
            torch.sin(3.0 * positions[:, None, :, None] - key_positions[:, None, None]) * q[..., :1]
        )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("positions", [None, Odd()], ids=["plain", "odd"])
@pytest.mark.parametrize("qk_norm", [False, True])
def test_heads_against_loops(positions, n_kv_heads, causal, qk_norm):
    """Heads of five numbers, though d_model / n_heads is three."""
    options: Any = {"d_head": 5, "n_kv_heads": n_kv_heads, "positions": positions}
    attention = MultiHeadAttention(12, 4, qk_norm=qk_norm, norm_eps=0.1, **options)
    if qk_norm:
        nn.init.normal_(attention.get_parameter("q_norm.weight"))
        nn.init.normal_(attention.get_parameter("k_norm.weight"))
    x, mask = torch.randn(2, 6, 12), torch.rand(2, 6, 6) < 0.7
    mask[1, 3] = False  # a query with nothing to attend to
    out, weights = watched(attention, x, mask=mask, causal=causal)

    def head(name, h):
        """A head's vectors of one map, and normalised, as the equations say."""
        linear: Any = attention.get_submodule(name)
        rows = slice(5 * h, 5 * h + 5)
        vectors = x @ linear.weight[rows].T + linear.bias[rows]
        if qk_norm and name != "v":
            root = (vectors.square().mean(-1, keepdim=True) + 0.1).sqrt()
            vectors = attention.get_parameter(f"{name}_norm.weight") * vectors / root
        return vectors

    bias = torch.zeros(2, 4, 6, 6)
    q, k, v = (torch.stack([head(n, h) for h in range(m)], 1) for n, m in
               (("q", 4), ("k", n_kv_heads), ("v", n_kv_heads)))  # fmt: skip
    if positions:
        places = torch.arange(6)[None]
        q, k = positions.rotate(q, places), positions.rotate(k, places)
        bias = positions.bias(q, places, places)
    for b in range(2):
        for i in range(6):
            joined = []
            for h in range(4):
                own = h * n_kv_heads // 4  # the head of keys that serves this one
                allowed = [j for j in range(6) if mask[b, i, j] and not (causal and j > i)]
                scores = {j: q[b, h, i] @ k[b, own, j] / 5**0.5 + bias[b, h, i, j] for j in allowed}
                top = max(scores.values(), default=torch.tensor(0.0))
                powers = {j: (score - top).exp() for j, score in scores.items()}
                total = torch.zeros(5)
                for j in range(6):
                    alpha = powers[j] / sum(powers.values()) if j in powers else torch.tensor(0.0)
                    assert abs(weights[b, h, i, j] - alpha) < 1e-5
                    total = total + alpha * v[b, own, j]
                joined.append(total)
            assert (out[b, i] - attention.out(torch.cat(joined))).abs().max() < 1e-5


@SCHEMES
@pytest.mark.parametrize("n_kv_heads", [2, 4])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_fused_equals_stepwise_forward_and_backward(positions, n_kv_heads, causal, masked):
    attention = MultiHeadAttention(24, 4, n_kv_heads=n_kv_heads, positions=positions)
    x = torch.randn(3, 7, 24, requires_grad=True)
    mask = torch.rand(3, 7, 7) < 0.6 if masked else None
    if mask is not None:
        mask[1, 2] = False
    outs = [run(attention, x, mask=mask, causal=causal, stepwise=way) for way in (False, True)]
    assert (outs[0] - outs[1]).abs().max() < 1e-5
    for fused, stepwise in zip(*(slopes(out, x, attention.q.weight) for out in outs), strict=True):
        assert fused.isfinite().all()
        assert (fused - stepwise).abs().max() < 1e-4 * max(1.0, float(fused.abs().max()))


@PATHS
@SCHEMES
def test_causal_attention_does_not_see_ahead(positions, stepwise):
    attention = MultiHeadAttention(24, 4, positions=positions)
    x = torch.randn(2, 9, 24)
    changed = x.clone()
    changed[:, 5] += 1
    before, after = (run(attention, t, causal=True, stepwise=stepwise) for t in (x, changed))
    assert before[:, :5].equal(after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).any(-1).all()


@PATHS
def test_without_positions_a_permutation_goes_through(stepwise):
    attention, x, order = MultiHeadAttention(24, 4), torch.randn(2, 9, 24), torch.randperm(9)
    out, moved = (run(attention, t, stepwise=stepwise) for t in (x, x[:, order]))
    assert (out[:, order] - moved).abs().max() < 1e-6


@PATHS
@SCHEMES
def test_what_counts_is_the_position_not_the_place(positions, stepwise):
    """Tokens that are shuffled and keep their positions get what they got; all schemes here look at
    distances, so that a shift changes nothing."""
    attention, x, order = (
        MultiHeadAttention(24, 4, positions=positions),
        torch.randn(2, 9, 24),
        None,
    )
    out, order = run(attention, x, stepwise=stepwise), torch.randperm(9)
    moved = run(attention, x[:, order], positions=order[None] + 3, stepwise=stepwise)
    assert (out[:, order] - moved).abs().max() < 1e-5
    if positions:
        moved = run(attention, x[:, order], stepwise=stepwise)
        assert (out[:, order] - moved).abs().max() > 1e-3


@PATHS
def test_padding_changes_nothing_and_its_gradient_is_zero(stepwise):
    attention = MultiHeadAttention(24, 4)
    x = torch.randn(2, 9, 24)
    tokens = torch.ones(2, 9, dtype=torch.long)
    tokens[:, 6:] = 0
    x.requires_grad_()
    alone = run(attention, x[:, :6], stepwise=stepwise)
    mask = padding_mask(tokens, 0)[:, None]
    padded = run(attention, x, mask=mask, stepwise=stepwise)[:, :6]
    assert (alone - padded).abs().max() < 1e-6
    padded.sum().backward()
    assert x.grad is not None
    assert x.grad[:, 6:].eq(0).all()


@PATHS
@SCHEMES
def test_a_query_with_nothing_to_attend_to_gets_zeros_and_gives_no_gradient(positions, stepwise):
    """No step of the way back is NaN either, or anomaly detection would stop training."""
    attention = MultiHeadAttention(24, 4, positions=positions)
    mask = causal_mask(5).expand(3, -1, -1).clone()
    mask[0, 2] = False
    mask[2] = False  # a whole sentence
    x = torch.randn(3, 5, 24, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        out = run(attention, x, mask=mask, stepwise=stepwise)
        assert out[0, 2].equal(attention.out.bias)
        assert out[2].equal(attention.out.bias.expand(5, -1))
        grads = slopes(out, x, *(p for p in attention.parameters() if p is not attention.k.bias))
    assert all(t.isfinite().all() for t in grads)
    assert grads[0][2].eq(0).all() and grads[0][:2].ne(0).any(-1).all()


@PATHS
@pytest.mark.parametrize("strange", STRANGE)
def test_a_key_that_no_query_may_see_takes_no_part_whatever_it_holds(strange, stepwise):
    """Output and every gradient are those of memories without that key, each its own."""
    attention = MultiHeadAttention(24, 4, n_kv_heads=2, qk_norm=True)
    x, memory = torch.randn(3, 5, 24, requires_grad=True), torch.randn(3, 7, 24, requires_grad=True)
    mask = torch.rand(3, 5, 7) < 0.6
    hidden = torch.arange(7) == torch.tensor([[2], [6], [0]])
    mask &= ~hidden[:, None]
    others = (~hidden).nonzero()[:, 1].view(3, 6)
    dirty = memory.masked_fill(hidden[..., None], strange)
    mine = run(attention, x, dirty, mask=mask, stepwise=stepwise)
    less = mask.take_along_dim(others[:, None], -1)
    clean = run(
        attention, x, memory.take_along_dim(others[..., None], 1), mask=less, stepwise=stepwise
    )
    assert (mine - clean).abs().max() < 1e-6
    inputs = (x, memory, *attention.parameters())
    for ours, expected in zip(slopes(mine, *inputs), slopes(clean, *inputs), strict=True):
        assert (ours - expected).abs().max() < 1e-4


@PATHS
@pytest.mark.parametrize("strange", STRANGE)
@SCHEMES
def test_a_query_does_not_see_a_strange_token_that_it_may_not_attend_to(
    positions, strange, stepwise
):
    """Ahead, in padding, and where the mask of each query hides it."""
    attention = MultiHeadAttention(24, 4, positions=positions)
    x = torch.randn(2, 7, 24)
    dirty = x.index_fill(1, torch.tensor([4]), strange)
    ahead = {"causal": True}
    padding = {"mask": torch.arange(7).ne(4).expand(2, 1, 7)}
    each = torch.rand(2, 7, 7) < 0.5
    each[:, 4] = True
    both = {"mask": each, "causal": True}
    every: list[dict[str, Any]] = [ahead, padding, {"mask": each}, both]
    for options in every:
        allowed = options.get("mask", torch.ones(1, 1, 7, dtype=torch.bool)).expand(2, 7, 7)
        if "causal" in options:
            allowed = allowed & causal_mask(7)
        blind = ~allowed[..., 4] & torch.arange(7).ne(4)
        clean, found = (run(attention, t, stepwise=stepwise, **options) for t in (x, dirty))
        assert blind.any() and (found - clean)[blind].abs().max() < 1e-5
        assert not found[~blind].isfinite().all()


@PATHS
@pytest.mark.parametrize("part", ["k", "v"])
def test_a_strange_key_or_value_alone_is_not_seen(part, stepwise):
    """Of the other the numbers are sound: a hidden score is NaN, or a weight 0 meets a NaN."""
    attention, x = MultiHeadAttention(24, 4), torch.randn(2, 7, 24)
    mask = torch.arange(7).ne(4).expand(2, 7, 7).clone()
    mask[:, 5] = True
    clean = run(attention, x, mask=mask, stepwise=stepwise)
    spoil = lambda _module, _inputs, t: t.index_fill(1, torch.tensor([4]), torch.nan)  # noqa: E731
    attention.get_submodule(part).register_forward_hook(spoil)
    found = run(attention, x, mask=mask, stepwise=stepwise)
    blind = torch.arange(7).ne(5)
    assert (found - clean)[:, blind].abs().max() < 1e-6
    assert found[:, 5].isnan().all()


@SCHEMES
@pytest.mark.parametrize(
    ("dtype", "near"), [(torch.float16, 0.01), (torch.bfloat16, 0.05), (torch.float64, 1e-12)]
)
def test_heads_in_other_types(positions, dtype, near):
    attention = MultiHeadAttention(24, 4, positions=copy.deepcopy(positions)).to(dtype)
    x = torch.randn(2, 5, 24, dtype=dtype)
    stepwise, fused = (run(attention, x, causal=True, stepwise=way) for way in (True, False))
    assert stepwise.dtype == fused.dtype == dtype
    assert (stepwise - fused).abs().max() < near


@PATHS
@SCHEMES
def test_large_queries_in_half_precision_are_close_to_single(positions, stepwise):
    """Products far above 65,504, the largest number of half precision."""
    attention = MultiHeadAttention(24, 4, positions=copy.deepcopy(positions)).half()
    with torch.no_grad():
        attention.q.weight *= 1000
        attention.k.weight *= 1000
    x = torch.randn(2, 5, 24).half()
    exact = copy.deepcopy(attention).float()
    q, k = (attention.get_submodule(name)(x) for name in "qk")
    assert (q @ k.mT).isinf().any()
    for options in ({}, {"causal": True}, {"mask": causal_mask(5)[None]}):
        found = run(attention, x, stepwise=stepwise, **options)
        assert (found - exact(x.float(), **options)).abs().max() < 0.02


def test_the_causal_mask_is_made_where_the_vectors_are():
    attention = MultiHeadAttention(24, 4).to("meta")
    x = torch.randn(2, 5, 24, device="meta")
    for stepwise in (False, True):
        assert run(attention, x, causal=True, stepwise=stepwise).is_meta


def test_huge_scores_do_not_overflow_in_either_path():
    attention = MultiHeadAttention(24, 4)
    with torch.no_grad():
        attention.q.weight *= 1e10
        attention.k.weight *= 1e10
    x = torch.randn(2, 5, 24)
    for stepwise in (False, True):
        assert run(attention, x, stepwise=stepwise).isfinite().all()


def test_several_heads_have_the_weights_of_one():
    counts = {sum(p.numel() for p in MultiHeadAttention(24, h).parameters()) for h in (1, 2, 4, 24)}
    assert counts == {4 * (24 * 24 + 24)}


def test_a_graph_is_exported_and_compiled_for_any_batch_and_length(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # it asks for each size
    attention = MultiHeadAttention(24, 4, n_kv_heads=2, positions=Rotary(6))
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("token")}
    x = torch.randn(2, 5, 24)
    exported = torch.export.export(
        attention, (x,), {"causal": True}, dynamic_shapes={"x": sizes, "causal": None}
    ).module()
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    for x in (torch.randn(3, 7, 24), torch.randn(5, 4, 24)):
        assert (exported(x, causal=True) - attention(x, causal=True)).abs().max() < 1e-6
        assert (compiled(x, causal=True) - attention(x, causal=True)).abs().max() < 1e-6


# A step, what takes its place, and what the heads then are, from scores `[batch head query key]`,
# mask, and values `[batch head key d_head]`.
def doubled(scores, mask):
    return masked_softmax(2 * scores, mask)


def strongest(weights, values):
    return values.take_along_dim(weights.argmax(-1)[..., None], dim=-2)


REPLACED = {
    "scores": (
        lambda q, k, bias=None: -torch.cdist(q, k),
        lambda q, k, v, mask: (
            masked_softmax(-(q[:, :, :, None] - k[:, :, None]).norm(dim=-1), mask) @ v
        ),
    ),
    "weights": (doubled, lambda q, k, v, mask: masked_softmax(2 * q @ k.mT / 6**0.5, mask) @ v),
    "combine": (
        strongest,
        lambda q, k, v, mask: strongest((q @ k.mT).masked_fill(~mask, -torch.inf), v),
    ),
}


@pytest.mark.parametrize("step", REPLACED)
@pytest.mark.parametrize("where", ["subclass", "instance"])
def test_each_step_can_be_replaced_alone(step, where):
    """Without a word to anybody: the fused way, which knows no steps, is left by itself."""
    replacement, formula = REPLACED[step]
    plain = MultiHeadAttention(24, 4)
    if where == "subclass":
        method = lambda self, *args: replacement(*args)  # noqa: E731
        attention = type("Other", (MultiHeadAttention,), {step: method})(24, 4)
        attention.load_state_dict(plain.state_dict())
    else:
        attention = copy.deepcopy(plain)
        setattr(attention, step, replacement)
    x, mask = torch.randn(2, 5, 24), torch.rand(2, 5, 5) < 0.6
    mask[:, :, 0] = True
    q, k, v = (plain.get_submodule(n)(x).unflatten(-1, (4, 6)).transpose(1, 2) for n in "qkv")
    expected = plain.out(formula(q, k, v, mask[:, None]).transpose(1, 2).flatten(2))
    found = attention(x, mask=mask)
    assert (found - expected).abs().max() < 1e-5
    assert (found - plain(x, mask=mask)).abs().max() > 1e-3
    assert (plain(x, mask=mask) - run(plain, x, mask=mask, stepwise=True)).abs().max() < 1e-6
    if where == "instance":
        delattr(attention, step)
        assert attention(x, mask=mask).equal(plain(x, mask=mask))


@pytest.mark.parametrize("step", ["scores", "weights", "combine"])
def test_each_step_of_scored_attention_can_be_replaced_alone(step):
    plain = ScoredAttention(AdditiveScore(3, 5, 4))
    other = copy.deepcopy(plain)
    sound = getattr(plain, step)
    setattr(other, step, lambda *args: sound(*args).square())
    query, keys = torch.randn(2, 3), torch.randn(2, 6, 5)
    prepared = plain.prepare(keys)
    scores = plain.score(query, prepared)
    weights = (scores.square() if step == "scores" else scores).softmax(-1)
    weights = weights.square() if step == "weights" else weights
    out = (weights[..., None] * keys).sum(1)
    found = other(query, keys, prepared)
    assert (found - (out.square() if step == "combine" else out)).abs().max() < 1e-6
    assert (found - plain(query, keys, prepared)).abs().max() > 1e-3


CACHED = {
    "plain": {},
    "grouped": {"n_kv_heads": 2},
    "rotary": {"positions": Rotary(6)},
    "interleaved": {"positions": Rotary(6, pairing="interleaved"), "n_kv_heads": 1},
    "alibi": {"positions": Alibi(4)},
    "shaw": {"positions": RelativePositions(6, 3)},
    "normed": {"qk_norm": True, "positions": Rotary(6)},
    "wide": {"d_head": 10, "n_kv_heads": 2, "positions": Rotary(10)},
}
CUTS = [(7,), (1,) * 7, (3, 4), (2, 1, 4), (6, 1)]


def in_pieces(attention, x, cuts, stepwise, mask=None, positions=None, **options):
    """The same tokens, a piece at a time, behind a cache of those before."""
    cache, outs = {}, []
    for begin, end in pairwise([0, *(sum(cuts[: i + 1]) for i in range(len(cuts)))]):
        piece = {
            "mask": None if mask is None else mask[:, begin:end, :end],
            "positions": None if positions is None else positions[:, begin:end],
        }
        out = run(attention, x[:, begin:end], cache=cache, stepwise=stepwise, **piece, **options)
        outs.append(out)
    assert cache[attention][0].shape[2] == x.shape[1]
    return torch.cat(outs, dim=1)


@PATHS
@pytest.mark.parametrize("options", CACHED.values(), ids=CACHED)
def test_pieces_behind_a_cache_are_one_pass(options, stepwise):
    attention, x = MultiHeadAttention(24, 4, **options), torch.randn(3, 7, 24)
    left = torch.arange(7).expand(3, 7) >= torch.tensor([[0], [3], [1]])  # padding on the left
    places = (left.cumsum(1) - 1).clamp(min=0)
    strict = causal_mask(7).tril(-1)[None]  # a key that no query of its own piece sees
    for extra in (
        {"causal": True},
        {"causal": True, "mask": left[:, None].expand(3, 7, 7), "positions": places},
        {"causal": True, "positions": torch.arange(7)[None] + 11},
        {"mask": strict},
    ):
        whole = run(attention, x, stepwise=stepwise, **extra)
        for cuts in CUTS:
            found = in_pieces(attention, x, cuts, stepwise, **extra)
            assert (found - whole)[left].abs().max() < 1e-5
    moved = run(attention, x, causal=True, positions=places, stepwise=stepwise)
    plain = run(attention, x, causal=True, stepwise=stepwise)
    assert (moved - plain)[0].abs().max() < 1e-5
    assert ((moved - plain).abs().max() > 1e-3) == ("positions" in options)


@pytest.mark.parametrize("strange", STRANGE)
def test_a_cache_keeps_what_is_hidden_and_nobody_sees_it(strange):
    attention, x = MultiHeadAttention(24, 4), torch.randn(3, 7, 24)
    mask = torch.arange(7).ne(2).expand(3, 7, 7)
    dirty = x.index_fill(1, torch.tensor([2]), strange)
    whole = attention(x, causal=True, mask=mask)
    for cuts in CUTS:
        found = in_pieces(attention, dirty, cuts, False, mask=mask, causal=True)
        assert (found - whole)[:, [0, 1, 3, 4, 5, 6]].abs().max() < 1e-6


def test_keys_of_a_memory_are_computed_once():
    attention = MultiHeadAttention(24, 4)
    x, memory = torch.randn(3, 5, 24), torch.randn(3, 7, 24)
    mask = torch.arange(7).lt(torch.tensor([[7], [4], [2]]))[:, None]
    whole, cache, calls = attention(x, memory, mask=mask), {}, []
    attention.k.register_forward_hook(lambda *_: calls.append(1))
    for i in range(5):
        found = attention(x[:, i : i + 1], memory, mask=mask, cache=cache)
        assert (found[:, 0] - whole[:, i]).abs().max() < 1e-6
    assert len(calls) == 1


def test_a_cache_serves_many_attentions():
    first, second, cache = MultiHeadAttention(24, 4), MultiHeadAttention(24, 4), {}
    x = torch.randn(2, 5, 24)
    whole = second(first(x, causal=True), causal=True)
    for i in range(5):
        out = first(x[:, i : i + 1], causal=True, cache=cache)
        out = second(out, causal=True, cache=cache)
        assert (out[:, 0] - whole[:, i]).abs().max() < 1e-6
    assert len(cache) == 2


def test_scores_are_as_large_as_heads_are_wide():
    """Divided by the root of d_head, also where it is not d_model / n_heads."""
    attention = MultiHeadAttention(24, 4, d_head=10)
    q, k = torch.randn(2, 4, 5, 10), torch.randn(2, 4, 7, 10)
    expected = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(10)
    assert (attention.scores(q, k) - expected).abs().max() < 1e-5


def test_a_step_that_is_a_module_is_refused_as_pytorch_would_hide_it() -> None:
    attention = MultiHeadAttention(12, 3)
    for step in ("scores", "weights", "combine"):
        with pytest.raises(ValueError, match=f"{step} must be a function"):
            setattr(attention, step, torch.nn.Identity())


def test_watching_under_autocast_changes_nothing() -> None:
    attention = MultiHeadAttention(64, 1)
    for part in (attention.q, attention.k):
        part.weight.data = 150 * torch.eye(64)
    x = torch.randn(2, 5, 64)
    with torch.autocast("cpu", torch.float16), torch.no_grad():
        fused = attention(x)
        with recorded(attention) as weights:
            watched = attention(x)
    assert watched.isfinite().all() and weights[""].dtype == torch.float32
    assert (watched - fused).abs().max() < 0.05


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
def test_whole_weights_do_not_round_values(dtype):
    """Those of `one_hot`: the value itself."""
    values, i = torch.tensor([[2.7], [-0.4], [9.5]]), torch.tensor([2, 0])
    picked = combine(nn.functional.one_hot(i, 3).to(dtype), values)
    assert picked.equal(values[i])
    assert combine(torch.eye(3, dtype=dtype), torch.tensor([[2], [3], [4]])).dtype == torch.int64


@pytest.mark.parametrize("autocast", [False, True])
def test_a_bias_of_more_precision_does_not_stop_the_fused_kernel(monkeypatch, autocast):
    """ALiBi's is in float32, where the vectors may be in bfloat16; far keys stay apart."""
    seen = []

    def spy(q, k, v, mask, **options):
        seen.append((q.dtype, mask.dtype))
        return fused(q, k, v, mask, **options)

    fused = attention_module.scaled_dot_product_attention
    monkeypatch.setattr(attention_module, "scaled_dot_product_attention", spy)
    attention = MultiHeadAttention(24, 4, positions=Alibi(4), n_kv_heads=2)
    x, mask = torch.randn(2, 300, 24), padding_mask(torch.ones(2, 300).long(), 0)[:, None]
    if not autocast:
        attention, x = attention.bfloat16(), x.bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for options in ({}, {"causal": True}, {"mask": mask, "causal": True}):
            out = attention(x, **options)
            assert out.dtype == torch.bfloat16 and seen[-1] == (torch.float32, torch.float32)
            slow = run(attention, x, stepwise=True, **options)
            assert (out - slow).abs().max() < 0.02 * slow.abs().max()
    assert len(seen) == 3
