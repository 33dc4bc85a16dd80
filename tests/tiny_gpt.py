"""A small GPT with weights that no one trained, in the file that the page reads."""

import atexit
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from attnbook.config import TransformerConfig
from attnbook.int8 import save_int8
from attnbook.tokenizers import BytePair
from attnbook.transformer import TransformerDecoder

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
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    tokenizer = BytePair.train([WORDS] * 2, 300)
    model = TransformerDecoder(tokenizer.vocab, CONFIG)
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        norm = "norm" in name and name.endswith("weight")
        torch.nn.init.normal_(parameter, float(norm), 0.4, generator=generator)
    file = Path(folder.name) / f"{NAME}.safetensors"
    save_int8(file, model, tokenizer)
    return file
