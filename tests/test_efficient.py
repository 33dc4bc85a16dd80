import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from attnbook.model import efficient
from attnbook.model.attention import attend
from attnbook.model.efficient import linear_attention, linear_attention_step, window_attention
from attnbook.model.masks import causal_mask


def vectors(n, *, n_key=None, seed=0, dtype=torch.float64):
    """q, k, v with all sizes distinct: [2 3 n 5], [2 3 n_key 5], [2 3 n_key 4]."""
    generator = torch.Generator().manual_seed(seed)
    sizes = (n, 5), (n_key or n, 5), (n_key or n, 4)
    return [
        torch.randn(2, 3, *size, generator=generator, dtype=dtype).requires_grad_()
        for size in sizes
    ]


def band(n, window, causal):
    """The window as a mask: True where query i may attend to key j."""
    apart = torch.arange(n)[:, None] - torch.arange(n)
    return (apart.abs() <= window) & (apart >= 0 if causal else True)


def full_window(q, k, v, window, *, causal):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return attend(scores, v[:, :, None], band(q.shape[2], window, causal))[0]


def full_linear(q, k, v, allowed):
    """The weights phi(q_i) . phi(k_j) of every pair, normalised: the quadratic form."""
    phi_q, phi_k = (torch.where(x > 0, x + 1, x.exp()) for x in (q, k))
    weights = phi_q @ phi_k.mT * allowed
    return (weights / weights.sum(-1, keepdim=True)) @ v


def assert_same(ours, theirs, inputs, near=1e-10):
    """Equal results and equal gradients of something that depends on every number of them."""
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() < near
    slopes = torch.randn_like(ours)
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, slopes),
        torch.autograd.grad(theirs, inputs, slopes),
        strict=True,
    ):
        assert mine.isfinite().all()
        assert (mine - other).abs().max() < near


@given(st.integers(1, 90), st.integers(0, 40), st.booleans(), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_window_is_full_attention_with_a_band(n, window, causal, seed):
    q, k, v = vectors(n, seed=seed)
    ours = window_attention(q, k, v, window, causal=causal)
    assert_same(ours, full_window(q, k, v, window, causal=causal), (q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_in_single_precision(causal):
    q, k, v = vectors(200, dtype=torch.float32)
    ours = window_attention(q, k, v, 33, causal=causal)
    assert_same(ours, full_window(q, k, v, 33, causal=causal), (q, k, v), near=2e-6)


def test_a_window_beyond_the_text_is_full_attention_and_none_is_the_value():
    q, k, v = vectors(23)
    everywhere = torch.ones(23, 23, dtype=torch.bool)
    full = attend(q @ k.mT / 5**0.5, v[:, :, None], everywhere)[0]
    assert (window_attention(q, k, v, 10**9) - full).abs().max() < 1e-12
    assert (window_attention(q, k, v, 0) - v).abs().max() < 1e-12


@pytest.mark.parametrize(("causal", "seen"), [(False, range(33, 48)), (True, range(33, 41))])
def test_a_query_sees_its_window_and_nothing_else(causal, seen):
    q, k, v = vectors(70)
    out = window_attention(q, k, v, 7, causal=causal)[:, :, 40].square().sum()
    for asked in torch.autograd.grad(out, (k, v)):
        found = asked.abs().sum((0, 1, 3)).nonzero().flatten()
        assert found.tolist() == list(seen)


@pytest.mark.parametrize("n", [1, 17, 65])
def test_no_query_of_a_block_sees_nothing(n, monkeypatch):
    """Not even those that only fill the last block: some kernels give NaN there, and the gradients
    of the others would be lost."""
    masks = []

    def spy(q, k, v, mask):
        masks.append(mask)
        return scaled_dot_product_attention(q, k, v, mask)

    monkeypatch.setattr(efficient, "scaled_dot_product_attention", spy)
    q, k, v = vectors(n)
    for causal in (False, True):
        window_attention(q, k, v, 3, causal=causal)
    assert len(masks) == 2
    assert all(mask.any(-1).all() for mask in masks)


ATTENTIONS = pytest.mark.parametrize(
    "attention",
    [lambda q, k, v: window_attention(q, k, v, 9, causal=True),
     lambda q, k, v: linear_attention(q, k, v, causal=True)],
    ids=["window", "linear"],
)  # fmt: skip


@ATTENTIONS
@pytest.mark.parametrize("at", [1, 63, 64, 100, 129])
def test_causal_attention_does_not_see_ahead(attention, at):
    """To the last bit, whatever comes later, inside a block or in the next."""
    inputs = vectors(130, dtype=torch.float32)
    changed = [t.detach().clone() for t in inputs]
    for t in changed:
        t[:, :, at:] = 100 * torch.randn_like(t[:, :, at:])
    before, after = attention(*inputs), attention(*changed)
    assert before[:, :, :at].equal(after[:, :, :at])
    assert (before[:, :, at:] != after[:, :, at:]).any(-1).all()


@ATTENTIONS
def test_a_longer_text_changes_nothing_before_its_end(attention):
    q, k, v = vectors(150)
    short = attention(q[:, :, :70], k[:, :, :70], v[:, :, :70])
    assert (attention(q, k, v)[:, :, :70] - short).abs().max() < 1e-12


@given(st.integers(1, 200), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_causal_linear_attention_is_its_quadratic_form(n, seed):
    q, k, v = vectors(n, seed=seed)
    ours = linear_attention(q, k, v, causal=True)
    assert_same(ours, full_linear(q, k, v, causal_mask(n)), (q, k, v))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_linear_attention_to_a_memory_is_its_quadratic_form(n_query, n_key, seed):
    q, k, v = vectors(n_query, n_key=n_key, seed=seed)
    ones = torch.ones(n_query, n_key)
    assert_same(linear_attention(q, k, v), full_linear(q, k, v, ones), (q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_in_single_precision(causal):
    q, k, v = vectors(300, dtype=torch.float32)
    allowed = causal_mask(300) if causal else torch.ones(300, 300)
    ours = linear_attention(q, k, v, causal=causal)
    assert_same(ours, full_linear(q, k, v, allowed), (q, k, v), near=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_gets_no_weight_and_no_gradient(causal):
    q, k, v = vectors(90)
    mask = torch.ones(2, 90, dtype=torch.bool)
    mask[0, 70:] = mask[1, 40:43] = False
    allowed = mask[:, None, None] & (causal_mask(90) if causal else torch.ones(1, 1).bool())
    ours = linear_attention(q, k, v, causal=causal, mask=mask)
    assert_same(ours, full_linear(q, k, v, allowed), (q, k, v))
    for t in torch.autograd.grad(linear_attention(q, k, v, causal=causal, mask=mask).sum(), (k, v)):
        assert t.transpose(1, 2)[~mask].eq(0).all()
        assert t.transpose(1, 2)[mask].ne(0).any()


@pytest.mark.parametrize("causal", [False, True])
def test_nothing_to_attend_to_gives_zeros_and_no_nan_gradient(causal):
    q, k, v = vectors(6)
    mask = torch.tensor([[False] * 6, [False] * 2 + [True] * 4])
    out = linear_attention(q, k, v, causal=causal, mask=mask)
    assert out[0].eq(0).all()
    assert out[1, :, :2].eq(0).all() == causal
    assert out[1, :, 2:].ne(0).all()
    for slope in torch.autograd.grad(out.square().sum(), (q, k, v)):
        assert slope.isfinite().all()


def test_weights_of_large_negative_vectors_are_not_rounded_away():
    q, k, v = vectors(6, dtype=torch.float32)
    out = linear_attention(q - 20, k - 18, v)
    expected = full_linear((q - 20).double(), (k - 18).double(), v.double(), torch.ones(6, 6))
    assert (out - expected).abs().max() < 1e-5


def test_linear_attention_is_a_recurrent_network():
    q, k, v = vectors(150)
    whole, state = linear_attention(q, k, v, causal=True), None
    for i in range(150):
        out, state = linear_attention_step(q[:, :, i], k[:, :, i], v[:, :, i], state)
        assert state.shape == (2, 3, 5, 5)  # d_head, d_value and one
        assert (out - whole[:, :, i]).abs().max() < 1e-12


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest result of any operation has."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in out if isinstance(out, tuple) else (out,):
            if isinstance(t, torch.Tensor):
                self.numbers = max(self.numbers, t.numel())
        return out


def largest(attention, n):
    q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for _ in range(3))
    with Largest() as found:
        attention(q, k, v).sum().backward()
    return found.numbers


@pytest.mark.parametrize("causal", [False, True])
def test_nothing_grows_with_the_square_of_the_text(causal):
    """Forward and backward; the control is full attention, where the scores do."""
    for attention in (
        lambda q, k, v: window_attention(q, k, v, 20, causal=causal),
        lambda q, k, v: linear_attention(q, k, v, causal=causal),
    ):
        assert largest(attention, 1280) <= 2.2 * largest(attention, 640)
    assert largest(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, 1280) == 2 * 1280**2


def test_they_work_where_the_vectors_are():
    q, k, v = (torch.randn(2, 3, 70, 5, device="meta") for _ in range(3))
    for causal in (False, True):
        assert window_attention(q, k, v, 9, causal=causal).is_meta
        assert linear_attention(q, k, v, causal=causal).is_meta


STRANGE = (torch.nan, torch.inf, -torch.inf)


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("causal", [False, True])
def test_padding_is_not_seen_whatever_it_holds(causal, strange):
    """Gradients are those that the padding has no part in."""
    q, k, v = vectors(90)
    mask = torch.ones(2, 90, dtype=torch.bool)
    mask[0, 70:] = mask[1, 40:43] = False
    dirty = [t.masked_fill(~mask[:, None, :, None], strange) for t in (k, v)]
    expected = linear_attention(q, k, v, causal=causal, mask=mask)
    assert_same(linear_attention(q, *dirty, causal=causal, mask=mask), expected, (q, k, v))


@ATTENTIONS
@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("at", [1, 63, 64, 100, 129])
def test_causal_attention_does_not_see_ahead_whatever_comes(attention, at, strange):
    q, k, v = vectors(130)
    k_dirty, v_dirty = (t.detach().clone() for t in (k, v))
    k_dirty[:, :, at] = v_dirty[:, :, at] = strange
    clean, dirty = attention(q, k, v), attention(q, k_dirty, v_dirty)
    assert (clean - dirty)[:, :, :at].abs().max() < 1e-12
    assert not dirty[:, :, at].equal(clean[:, :, at])


@pytest.mark.parametrize("strange", STRANGE)
def test_a_window_does_not_see_beyond_it_whatever_is_there(strange):
    q, k, v = vectors(70)
    k_dirty, v_dirty = (t.detach().clone() for t in (k, v))
    k_dirty[:, :, 40] = v_dirty[:, :, 40] = strange
    near = torch.arange(70).sub(40).abs() <= 7
    clean = window_attention(q, k, v, 7)
    for strangers in ((k_dirty, v_dirty), (k_dirty, v), (k, v_dirty)):
        dirty = window_attention(q, *strangers, 7)
        assert (clean - dirty)[:, :, ~near].abs().max() < 1e-12
        assert not dirty[:, :, near].equal(clean[:, :, near])


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_of_large_queries_in_half_precision(causal):
    """Also where a strange value elsewhere asks for the way that sees it only in its window."""
    q, k, v = (t.detach() for t in vectors(40))
    q, k = 300 * q, 300 * k
    q, k, v = q.half(), k.half(), v.half()
    expected = window_attention(q.double(), k.double(), v.double(), 4, causal=causal)
    for last in (0.0, torch.nan):
        v[:, :, 39] = last
        ours = window_attention(q, k, v, 4, causal=causal)
        assert ours.dtype == torch.float16
        assert (ours - expected)[:, :, :35].abs().max() < 0.01


def exact_linear(q, k, v, causal):
    """The quadratic form in double precision, of queries that may be far below zero."""
    q, k, v = (t.double() for t in (q, k, v))
    n_query, n_key = q.shape[2], k.shape[2]
    allowed = causal_mask(n_query) if causal else torch.ones(n_query, n_key)
    low = q.amax(-1, keepdim=True).clamp(max=0)  # a factor of all weights of the query
    return full_linear(q - low, k, v, allowed)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    ("middle_q", "middle_k"), [(-10, -10), (40, 40), (-1000, 0), (-1000, -60), (0, 0), (300, 300)]
)
def test_sums_are_neither_too_large_nor_too_small_for_half_precision(
    causal, dtype, middle_q, middle_k
):
    """Weights of 1e-9 and sums of 1e5 and more do not fit into float16."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 70, 64, generator=generator) for _ in range(3))
    q, k, v = ((t + at).to(dtype) for t, at in ((q, middle_q), (k, middle_k), (v, 1)))
    ours, theirs = linear_attention(q, k, v, causal=causal), exact_linear(q, k, v, causal)
    assert ours.dtype == dtype
    near = 16 * torch.finfo(dtype).eps * theirs.abs().max()
    assert (ours - theirs).abs().max() < near
    state = None
    for i in range(70 * causal):
        out, state = linear_attention_step(q[:, :, i], k[:, :, i], v[:, :, i], state)
        assert out.dtype == dtype and state.dtype == torch.float32
        assert (out - theirs[:, :, i]).abs().max() < near


def test_autocast_does_not_round_the_sums():
    q, k, v = (t.detach() - 10 for t in vectors(70, dtype=torch.float32))
    for causal in (False, True):
        expected = linear_attention(q, k, v, causal=causal)
        with torch.autocast("cpu", torch.bfloat16):
            assert linear_attention(q, k, v, causal=causal).equal(expected)
            step = linear_attention_step(q[:, :, 0], k[:, :, 0], v[:, :, 0])[0]
        assert (step - v[:, :, 0]).abs().max() < 1e-5


def test_gradients_of_queries_far_below_zero():
    q, k, v = vectors(6)
    theirs = full_linear(q - 3, k, v, torch.ones(6, 6))
    assert_same(linear_attention(q - 3, k, v), theirs, (q, k, v))
