"""Walks through a BERT with its own numbers: what it reads, and a masked word's way to its bars."""

from attnbook.walks._input import input_layout
from attnbook.walks._word import masked_word

__all__ = ["input_layout", "masked_word"]
