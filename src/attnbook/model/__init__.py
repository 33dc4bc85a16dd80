"""The models: what computes, from one score to a whole Transformer, and how it is read out."""

from attnbook.model.attention import MultiHeadAttention, attend
from attnbook.model.bert import Bert, mask_tokens, pack
from attnbook.model.block import Block, FeedForward
from attnbook.model.config import BERT, BERT_LARGE, GPT_1, GPT_2, SMOLLM2, TINY, TransformerConfig
from attnbook.model.masks import causal_mask, masked_softmax, padding_mask
from attnbook.model.norms import LayerNorm, RMSNorm
from attnbook.model.positions import (
    Alibi,
    LearnedPositions,
    RelativePositions,
    Rotary,
    SinusoidalPositions,
    sinusoidal,
)
from attnbook.model.recording import calls, recorded
from attnbook.model.sampling import Sampling
from attnbook.model.scores import (
    AdditiveScore,
    BilinearScore,
    ConcatScore,
    DotScore,
    LastKeyScore,
    ScaledDotScore,
)
from attnbook.model.seq2seq import (
    GRU,
    Decoder,
    Encoder,
    GRUCell,
    LuongDecoder,
    Memory,
    MultiHeadDecoder,
    RNNsearchDecoder,
    Seq2Seq,
)
from attnbook.model.transformer import Stack, Transformer, TransformerDecoder, TransformerEncoder

__all__ = [
    "BERT",
    "BERT_LARGE",
    "GPT_1",
    "GPT_2",
    "GRU",
    "SMOLLM2",
    "TINY",
    "AdditiveScore",
    "Alibi",
    "Bert",
    "BilinearScore",
    "Block",
    "ConcatScore",
    "Decoder",
    "DotScore",
    "Encoder",
    "FeedForward",
    "GRUCell",
    "LastKeyScore",
    "LayerNorm",
    "LearnedPositions",
    "LuongDecoder",
    "Memory",
    "MultiHeadAttention",
    "MultiHeadDecoder",
    "RMSNorm",
    "RNNsearchDecoder",
    "RelativePositions",
    "Rotary",
    "Sampling",
    "ScaledDotScore",
    "Seq2Seq",
    "SinusoidalPositions",
    "Stack",
    "Transformer",
    "TransformerConfig",
    "TransformerDecoder",
    "TransformerEncoder",
    "attend",
    "calls",
    "causal_mask",
    "mask_tokens",
    "masked_softmax",
    "pack",
    "padding_mask",
    "recorded",
    "sinusoidal",
]
