"""A small modern decoder to walk through, and a text."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

CONFIG = TransformerConfig(
    24, 4, 18, 3, normalizer="rms", activation="silu", gated=True, positions="rotary",
    n_kv_heads=2, bias=False,
)  # fmt: skip
TOKENS, WORDS = torch.tensor([3, 5, 4, 7]), ["our", "cats"]


@torch.no_grad()
def decoder(**changes: Any) -> TransformerDecoder:
    torch.manual_seed(0)
    vocabulary = Vocabulary([f"w{n}" for n in range(6)])
    model = TransformerDecoder(vocabulary, replace(CONFIG, **changes)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model
