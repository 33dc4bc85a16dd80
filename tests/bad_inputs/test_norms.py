"""Bad input to norms: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.model.norms import LayerNorm, RMSNorm

NAN, INF = float("nan"), float("inf")

BAD = [
    (lambda: LayerNorm(0), "d must be a whole number of at least 1, got 0"),
    (lambda: LayerNorm(5.0), "d must be a whole number of at least 1, got 5.0"),
    (lambda: LayerNorm(5, eps=-1e-5), "eps must be finite, at least 0, got -1e-05"),
    (lambda: LayerNorm(5, eps=NAN), "eps must be finite, at least 0, got nan"),
    (lambda: LayerNorm(5, eps=INF), "eps must be finite, at least 0, got inf"),
    (lambda: LayerNorm(5)(torch.randn(5, 1)), "x must be [... d] with d = 5, got [5, 1]"),
    (lambda: LayerNorm(5)(torch.randn(3, 4)), "x must be [... d] with d = 5, got [3, 4]"),
    (lambda: LayerNorm(1)(torch.tensor(2.0)), "x must be [... d] with d = 1, got []"),
    (lambda: RMSNorm(0), "d must be a whole number of at least 1, got 0"),
    (lambda: RMSNorm(5.0), "d must be a whole number of at least 1, got 5.0"),
    (lambda: RMSNorm(5, eps=-1e-5), "eps must be finite, at least 0, got -1e-05"),
    (lambda: RMSNorm(5, eps=NAN), "eps must be finite, at least 0, got nan"),
    (lambda: RMSNorm(5, eps=INF), "eps must be finite, at least 0, got inf"),
    (lambda: RMSNorm(5)(torch.randn(5, 1)), "x must be [... d] with d = 5, got [5, 1]"),
    (lambda: RMSNorm(5)(torch.randn(3, 4)), "x must be [... d] with d = 5, got [3, 4]"),
    (lambda: RMSNorm(1)(torch.tensor(2.0)), "x must be [... d] with d = 1, got []"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
