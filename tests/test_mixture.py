"""A mixture of experts equals a loop over tokens; its load is counted by hand."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnbook.model.config import TransformerConfig
from attnbook.model.mixture import Mixture, imbalance, load

CONFIG = TransformerConfig(6, 2, 10, 1)


def mixture(top: int = 2) -> Mixture:
    torch.manual_seed(0)
    return Mixture(CONFIG, 5, top)


@pytest.mark.parametrize("top", [1, 2, 5])
def test_a_token_gets_the_sum_of_its_best_networks(top: int) -> None:
    layer, x = mixture(top), torch.randn(2, 7, 6)
    out = layer(x)
    for b in range(2):
        for t in range(7):
            scores = layer.router.weight @ x[b, t]
            best = sorted(range(5), key=lambda e: -scores[e].item())[:top]
            gates = scores[best].softmax(0)
            each = [g * layer.experts[e](x[b, t]) for g, e in zip(gates, best, strict=True)]
            right = torch.stack(each).sum(0)
            assert torch.allclose(out[b, t], right, atol=1e-5)


def test_only_chosen_networks_compute() -> None:
    x = torch.randn(1, 7, 6)
    counted = []
    for top in (1, 2, 3):
        with FlopCounterMode(display=False) as counter:
            mixture(top)(x)
        counted.append(counter.get_total_flops())
    router, each = 2 * 7 * 6 * 5, 2 * 7 * 2 * 6 * 10
    assert counted == [router + top * each for top in (1, 2, 3)]


def test_a_network_that_is_not_chosen_gets_no_gradient_and_the_router_does() -> None:
    layer, x = mixture(2), torch.randn(1, 6)
    layer(x).square().sum().backward()
    chosen = set(layer.router(x).topk(2).indices[0].tolist())
    moved = {
        int(name.split(".")[1])
        for name, p in layer.named_parameters()
        if name.endswith("down.bias") and p.grad is not None and p.grad.abs().sum() > 0
    }
    assert moved == chosen != set(range(5))
    grad = layer.router.weight.grad
    assert grad is not None and grad.abs().sum() > 0


def test_the_gate_of_one_network_teaches_the_router_nothing() -> None:
    layer, x = mixture(1), torch.randn(3, 6)
    layer(x).square().sum().backward()
    assert layer.router.weight.grad is None or not layer.router.weight.grad.any()
    imbalance(layer.router(x), 1).backward()
    grad = layer.router.weight.grad
    assert grad is not None and grad.abs().sum() > 0


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.half])
def test_it_learns_under_autocast(kind: torch.dtype) -> None:
    layer, x = mixture(), torch.randn(2, 7, 6)
    whole = layer(x)
    with torch.autocast("cpu", kind):
        half = layer(x)
    half.square().sum().backward()
    assert torch.allclose(half.float(), whole, atol=0.05)
    assert all(p.grad is not None for p in layer.router.parameters())


def test_load_and_imbalance_by_hand() -> None:
    scores = torch.tensor([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]])
    assert load(scores, 2).tolist() == [0.5, 0.25, 0.25]
    p = scores.softmax(-1).mean(0)
    right = 3 * (0.5 * p[0] + 0.25 * p[1] + 0.25 * p[2])
    assert imbalance(scores, 2).item() == pytest.approx(right.item())
    assert imbalance(torch.eye(4), 1).item() == pytest.approx(1)
    assert imbalance(torch.tensor([20.0, 0, 0, 0]), 1).item() == pytest.approx(4, abs=1e-4)
    assert imbalance(torch.tensor([[20.0, 0, 0, 0]]), 1).item() == pytest.approx(4, abs=1e-4)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"top must lie in 1\.\.5, got 6"):
        Mixture(CONFIG, 5, 6)
    with pytest.raises(ValueError, match="n_experts must be"):
        Mixture(CONFIG, 0)
    with pytest.raises(ValueError, match=r"x must be \[\.\.\. d_model\]"):
        mixture()(torch.randn(7, 5))
