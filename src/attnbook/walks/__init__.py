"""Walks through models with their own numbers: BERT's input, a masked word, GPT's exercises."""

from attnbook.walks._input import input_layout
from attnbook.walks._next import next_token
from attnbook.walks._word import masked_word

__all__ = ["input_layout", "masked_word", "next_token"]
