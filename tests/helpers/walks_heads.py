"""An attention of two heads, to walk through."""

from typing import Any

import torch
from torch import Tensor, nn

from attnbook.model.attention import MultiHeadAttention
from attnbook.walks import heads_step
from attnbook.web import Drawing

N, D, D_HEAD, AT = 9, 14, 7, 6
TOKENS = [*"abcdefghi"]


def setting(seed: int = 0) -> tuple[MultiHeadAttention, Tensor]:
    torch.manual_seed(seed)
    attention = MultiHeadAttention(D, 2)
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention, torch.randn(N, D)


def walk(at: int = AT, **options: Any) -> Drawing:
    attention, x = setting()
    return heads_step(attention, x, TOKENS, at=at, **options)
