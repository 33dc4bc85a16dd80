"""A small BERT with random weights, in the page's file format."""

import atexit
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from attnbook.model.bert import Bert
from attnbook.model.config import BERT
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import WordPiece
from attnbook.weights.int8 import save_int8

NAME = "tiny"
WORDS = "we must ask the people of this country to keep the peace and its cats ."
CONFIG = replace(BERT, d_model=24, n_heads=3, d_ff=20, n_layers=2, max_len=24)


@cache
def tiny_bert() -> Path:
    """The file; it knows the words of `WORDS` and, of others, the letters."""
    tokenizer = WordPiece.train([WORDS] * 2, 160)
    return kept(Bert(tokenizer.vocab, CONFIG), tokenizer, NAME, 0.3)


def kept(
    model: Bert | TransformerDecoder, tokenizer: Any, name: str, std: float, **more: Any
) -> Path:
    """A file with the model with random weights; it is deleted when Python ends."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    generator = torch.Generator().manual_seed(3)
    for path, parameter in model.named_parameters():
        norm = "norm" in path and path.endswith("weight")
        torch.nn.init.normal_(parameter, float(norm), std, generator=generator)
    file = Path(folder.name) / f"{name}.safetensors"
    save_int8(file, model, tokenizer, more)
    return file
