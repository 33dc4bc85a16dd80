"""Walks with real numbers: a GRU, a translator, BERT, GPT, beam search, attention's costs."""

from attnbook.walks._attention import attention_row
from attnbook.walks._beam import beam_tree
from attnbook.walks._cache import cache_growth
from attnbook.walks._decoder_step import decoder_step
from attnbook.walks._draw import one_draw
from attnbook.walks._gru import gru_step
from attnbook.walks._heads import heads_step
from attnbook.walks._input import input_layout
from attnbook.walks._linear import linear_state
from attnbook.walks._mixture import mixture_step
from attnbook.walks._modern import modern_parts
from attnbook.walks._next import next_token
from attnbook.walks._parts import part_walks
from attnbook.walks._prompt import prompt_label
from attnbook.walks._reach import reach
from attnbook.walks._shared import shared_heads
from attnbook.walks._shift import target_shift
from attnbook.walks._states import exchanged_states, two_readers
from attnbook.walks._tiles import softmax_tiles
from attnbook.walks._timeline import timeline
from attnbook.walks._unrolled import unrolled
from attnbook.walks._word import masked_word

__all__ = [
    "attention_row",
    "beam_tree",
    "cache_growth",
    "decoder_step",
    "exchanged_states",
    "gru_step",
    "heads_step",
    "input_layout",
    "linear_state",
    "masked_word",
    "mixture_step",
    "modern_parts",
    "next_token",
    "one_draw",
    "part_walks",
    "prompt_label",
    "reach",
    "shared_heads",
    "softmax_tiles",
    "target_shift",
    "timeline",
    "two_readers",
    "unrolled",
]
