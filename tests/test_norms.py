"""Layer norm and RMS norm against their equations and PyTorch's modules."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnbook.model.norms import LayerNorm, RMSNorm


def by_hand(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Layer norm of one vector, number by number."""
    d = len(x)
    mean = sum(x.tolist()) / d
    variance = sum((value - mean) ** 2 for value in x.tolist()) / d
    out = [(value - mean) / (variance + eps) ** 0.5 for value in x.tolist()]
    return gain * torch.tensor(out) + bias


def test_layer_norm_is_its_equation_and_pytorchs() -> None:
    torch.manual_seed(0)
    x = 3 * torch.randn(2, 5, 7) + 4
    theirs = nn.LayerNorm(7, eps=0.01)
    nn.init.normal_(theirs.weight)
    nn.init.normal_(theirs.bias)
    ours = LayerNorm(7, eps=0.01)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=0)
    expected = by_hand(x[1, 3], theirs.weight, theirs.bias, 0.01)
    torch.testing.assert_close(ours(x)[1, 3], expected, atol=1e-5, rtol=0)


def test_without_gain_and_bias_there_is_nothing_to_train() -> None:
    x = torch.randn(3, 6)
    plain = LayerNorm(6, affine=False)
    assert not list(plain.parameters())
    torch.testing.assert_close(plain(x), LayerNorm(6)(x))


def test_rms_norm_is_its_equation_and_pytorchs() -> None:
    torch.manual_seed(0)
    x = 3 * torch.randn(2, 5, 7) + 4
    theirs = nn.RMSNorm(7, eps=0.01)
    nn.init.normal_(theirs.weight)
    ours = RMSNorm(7, eps=0.01)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=0)
    row = x[1, 3]
    root = (sum(value**2 for value in row.tolist()) / 7 + 0.01) ** 0.5
    torch.testing.assert_close(ours(x)[1, 3], theirs.weight * row / root, atol=1e-5, rtol=0)


@given(scale=st.floats(0.1, 100), shift=st.floats(-100, 100), d=st.integers(3, 40))
def test_layer_norm_forgets_scale_and_shift_and_rms_norm_only_scale(
    scale: float, shift: float, d: int
) -> None:
    x = torch.randn(4, d, dtype=torch.float64, generator=torch.Generator().manual_seed(d))
    layer = LayerNorm(d, eps=0.0).double()
    out = layer(scale * x + shift)
    torch.testing.assert_close(out, layer(x), atol=1e-6, rtol=0)
    torch.testing.assert_close(out.mean(-1), torch.zeros(4).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(out.var(-1, unbiased=False), torch.ones(4).double())
    rms = RMSNorm(d, eps=0.0).double()
    torch.testing.assert_close(rms(scale * x), rms(x))
    assert (rms(x + 5) - rms(x)).abs().max() > 0.1


def test_a_vector_of_zeros_stays_finite() -> None:
    for norm in (LayerNorm(5), RMSNorm(5)):
        x = torch.zeros(2, 5, requires_grad=True)
        norm(x).sum().backward()
        assert (norm(x) == 0).all() and x.grad is not None and x.grad.isfinite().all()


def test_an_eps_that_half_precision_cannot_hold_keeps_its_work() -> None:
    for norm in (LayerNorm(5, eps=1e-12), RMSNorm(5, eps=1e-12)):
        out = norm.half()(torch.stack([torch.zeros(5), torch.full((5,), 1e-7)]).half())
        assert (out[0] == 0).all() and out.isfinite().all()
