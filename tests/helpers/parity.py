"""Small sizes that all differ, random parameters, and tolerances."""

from typing import Any

import torch
from torch import Tensor, nn

from attnbook.model.config import TransformerConfig

BATCH, SOURCE, TARGET = 2, 7, 5
SMALL = TransformerConfig(12, 3, 20, 2)


def randomise(module: nn.Module) -> Any:
    """Randomise every parameter: biases of 0 and gains of 1 would hide errors."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
