"""Bad input to the walk through a mixture of experts: the error says what is wrong."""

import pytest
import torch
from torch import Tensor

from attnbook.model.config import TransformerConfig
from attnbook.model.mixture import Mixture
from attnbook.walks import mixture_step

CONFIG = TransformerConfig(10, 2, 7, 1)
MIXTURE, X = Mixture(CONFIG, 5), torch.randn(10)


@pytest.mark.parametrize(
    ("mixture", "x", "says"),
    [
        (Mixture(CONFIG, 2), X, r"networks must lie in 3\.\.8, got 2"),
        (Mixture(CONFIG, 9), X, r"networks must lie in 3\.\.8, got 9"),
        (Mixture(CONFIG, 5, top=1), X, "top must be one of 2, got 1"),
        (Mixture(CONFIG, 5, top=3), X, "top must be one of 2, got 3"),
        (MIXTURE, X[:9], r"x must be \[d_model\] with d_model = 10, got \[9\]"),
        (MIXTURE, X[None], r"x must be \[d_model\] with d_model = 10, got \[1, 10\]"),
        (MIXTURE, X / 0 * 0, "x must be finite, got nan"),
    ],
)
def test_a_walk_through_a_mixture(mixture: Mixture, x: Tensor, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        mixture_step(mixture, x, word="G")
