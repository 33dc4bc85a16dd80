"""A small Transformer of each configuration, and its sentences."""

from dataclasses import replace

import torch
from torch import Tensor

from attnbook.model.config import QWEN_3, TransformerConfig
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Vocabulary
from tests.helpers.parity import BATCH, SMALL, SOURCE, TARGET

ENGLISH, GERMAN = Vocabulary("abcdefghij"), Vocabulary("ABCDEFGH")  # 13 and 11 tokens
PAD, BOS, EOS = GERMAN.pad, GERMAN.bos, GERMAN.eos
VOCAB, WORDS = len(ENGLISH), len(GERMAN)
EVERY = [
    SMALL,
    replace(SMALL, norm="post", activation="gelu", positions="learned", dropout=0.3),
    replace(SMALL, norm="none", positions="none", bias=False),
    replace(SMALL, residual=False, d_ff=0, final_norm=False),
    replace(SMALL, positions="alibi", embedding_norm=True, embedding_scale=False),
    replace(QWEN_3, d_model=12, n_heads=3, n_kv_heads=1, d_head=6, d_ff=20, n_layers=2, tied=False),
]
NAMES = ["classic", "post", "bare", "no-feed-forward", "alibi", "modern"]


def sources() -> Tensor:
    """Two sentences, the second with padding."""
    rows = torch.randint(3, VOCAB, (BATCH, SOURCE))
    rows[1, 4:] = PAD
    return rows


def model(config: TransformerConfig = SMALL) -> Transformer:
    return Transformer(ENGLISH, GERMAN, config).eval()


def targets() -> Tensor:
    return torch.cat([torch.full((BATCH, 1), BOS), torch.randint(3, WORDS, (BATCH, TARGET - 1))], 1)


def prompts() -> Tensor:
    """Four prompts of unequal length, padded on the left."""
    rows = torch.randint(3, WORDS, (4, 6))
    for row, missing in zip(rows, (0, 2, 5, 1), strict=True):
        row[:missing] = PAD
    return rows


LAYOUTS = [
    replace(SMALL, positions="learned", norm="post", activation="gelu_tanh"),
    replace(SMALL, positions="alibi"),
    EVERY[-1],
]
ONE = Vocabulary("abcdefgh", pad="<e>", bos="<e>", eos="<e>")  # as in GPT-2's vocabulary
