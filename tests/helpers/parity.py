"""Small sizes that all differ, random parameters, and when numbers are the same."""

from typing import Any

import torch
from torch import Tensor, nn

from attnbook.model.config import TransformerConfig

BATCH, SOURCE, TARGET = 2, 7, 5
SMALL = TransformerConfig(12, 3, 20, 2)


def randomise(module: nn.Module) -> Any:
    """Every parameter random: biases and gains start at 0 and 1, which hides slips."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4)
    return module.eval()


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
