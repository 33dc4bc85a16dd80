"""Walks through models with their own numbers: BERT's input, a word, GPT's exercises, a draw."""

from attnbook.walks._draw import one_draw
from attnbook.walks._input import input_layout
from attnbook.walks._next import next_token
from attnbook.walks._word import masked_word

__all__ = ["input_layout", "masked_word", "next_token", "one_draw"]
