"""Walks through models with their own numbers: BERT's input, GPT's exercises, a draw, a beam."""

from attnbook.walks._beam import beam_tree
from attnbook.walks._draw import one_draw
from attnbook.walks._input import input_layout
from attnbook.walks._next import next_token
from attnbook.walks._prompt import prompt_label
from attnbook.walks._word import masked_word

__all__ = ["beam_tree", "input_layout", "masked_word", "next_token", "one_draw", "prompt_label"]
