"""What the checks let pass; what they say of the rest is in bad_inputs."""

from contextlib import nullcontext
from math import inf
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook import checks
from attnbook.checks import (
    check_choice,
    check_ids,
    check_mask,
    check_range,
    check_shapes,
    check_whole,
)

T = torch.zeros


@pytest.mark.parametrize(
    ("shapes", "sizes"),
    [
        ({"q": (T(2, 3, 5), "batch query d"), "d": 5}, {"batch": 2, "query": 3, "d": 5}),
        ({"q": (T(2, 3), "batch n"), "k": (T(3, 2), "n batch")}, {"batch": 2, "n": 3}),
        ({"m": (T(1, 1, 4), "#batch #query key"), "batch": 2, "query": 3}, {"key": 4}),
        ({"m": (T(1, 4), "#batch key"), "v": (T(2, 4), "batch key")}, {"batch": 2, "key": 4}),
        ({"x": (T(7, 6, 5), "... d")}, {"d": 5}),
        ({"x": (T(5), "... d")}, {"d": 5}),
        ({"x": (T(2, 3, 5), "... d"), "m": (T(3, 5), "#... d")}, {"d": 5}),
        ({"x": (T(2, 3, 5), "... d"), "m": (T(2, 1, 5), "#... d")}, {"d": 5}),
        ({"x": (T(2, 3, 5), "... d"), "m": (T(5), "#... d")}, {"d": 5}),
        ({"x": (T(2, 0), "batch n")}, {"batch": 2, "n": 0}),
    ],
)
def test_shapes_that_fit_give_their_sizes(shapes: dict[str, Any], sizes: dict[str, int]) -> None:
    found = check_shapes(**shapes)
    assert sizes.items() <= found.items()


def test_masks_ids_and_numbers_that_fit() -> None:
    check_mask(T(2, 3).bool(), mask=(T(2, 3).bool(), "batch key"), key=3)
    check_whole(1, d=1, n=np.int64(7))
    check_whole(-3, n=-3)
    check_range(0, 1, share=0, other=1.0, third=np.float32(0.5))
    check_range(0, inf, eps=1e30)
    check_choice(("left", "right"), side="right")
    check_choice({"a": 1}, letter="a")
    check_ids("tokens", torch.tensor([[0, 4]]), 5)
    check_ids("tokens", torch.tensor([0, 4], dtype=torch.int8), 5, "token")
    check_ids("tokens", torch.tensor([[-1, 99]]))  # of any vocabulary


def _unmasked(q, k, v, mask=None, *more, _function=scaled_dot_product_attention):
    return _function(q, k, v, None, *more)


FAULTS = {
    "nothing": ("torch.nn.Linear.extra_repr", lambda self: ""),
    "steps that do nothing": ("torch.optim.Adam.step", lambda self: None),
    "a mask that is lost": ("torch.nn.functional.scaled_dot_product_attention", _unmasked),
    "a norm that is none": ("torch.nn.functional.layer_norm", lambda x, *_: x),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_device_that_computes_wrongly_is_not_trained_on(fault, monkeypatch):
    """The device is this processor, with a fault."""
    three_steps = checks._three_steps

    def run(device):
        with pytest.MonkeyPatch.context() as patch:
            if device.type != "cpu":
                patch.setattr(*FAULTS[fault])
            return three_steps(torch.device("cpu"))

    monkeypatch.setattr(checks, "_three_steps", run)
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError) if fault != "nothing" else nullcontext() as caught:
        checks.check_device.__wrapped__(torch.device("mps"))
    assert torch.equal(before, torch.get_rng_state())
    if caught:
        assert "device mps must compute as the processor does" in str(caught.value)


def test_the_check_of_a_device_moves_a_gru_that_cudnn_takes(monkeypatch):
    """cuDNN joins a GRU's weights when it is moved, and refuses columns that lie in a row."""
    met = []

    def flatten(gru):
        met.append([weight.is_contiguous() for weight in gru.parameters()])

    monkeypatch.setattr(torch.nn.GRU, "flatten_parameters", flatten)
    checks._three_steps(torch.device("cpu"))
    assert met and all(met[-1])
