"""A small GPT with random weights, in the page's file format."""

from functools import cache
from pathlib import Path

from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from tests.helpers.tiny_bert import kept

NAME = "tiny_gpt"
WORDS = "We must ask the people of this country to keep the peace, and its cats."
CONFIG = TransformerConfig(
    d_model=24,
    n_heads=3,
    d_ff=20,
    n_layers=2,
    normalizer="rms",
    positions="rotary",
    n_kv_heads=1,
    qk_norm=True,
    bias=False,
    embedding_scale=False,
    max_len=40,
)


@cache
def tiny_gpt() -> Path:
    """The file; it knows the words of `WORDS` and, of others, the bytes."""
    tokenizer = BytePair.train([WORDS] * 2, 300)
    return kept(TransformerDecoder(tokenizer.vocab, CONFIG), tokenizer, NAME, 0.4)


@cache
def early_gpt() -> Path:
    """A file with other weights, as after 3 steps."""
    tokenizer = BytePair.train([WORDS] * 2, 300)
    return kept(TransformerDecoder(tokenizer.vocab, CONFIG), tokenizer, "early", 0.2, step=3)
