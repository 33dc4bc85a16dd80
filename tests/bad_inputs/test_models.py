"""Bad input to the block, the Transformer and its configuration: the error says what is wrong."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from attnbook.model.block import Block, FeedForward
from attnbook.model.bugs import patient
from attnbook.model.config import TINY, TransformerConfig
from attnbook.model.seq2seq import Memory
from attnbook.model.transformer import (
    Stack,
    Transformer,
    TransformerDecoder,
    TransformerEncoder,
)
from attnbook.text.vocabulary import Pairs, Vocabulary

SMALL = TransformerConfig(12, 3, 20, 2, max_len=6)
LEARNED = replace(SMALL, positions="learned")
VOCAB = Vocabulary("abcdefgh")  # ids 0 .. 10
X, H = torch.randn(2, 5, 12), torch.randn(2, 7, 12)
TOKENS = torch.randint(3, 11, (2, 5))


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, dtype=torch.bool)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": "before"}, "norm must be one of 'pre', 'post', 'none', got 'before'"),
        ({"normalizer": "batch"}, "normalizer must be one of"),
        ({"activation": "swiglu"}, "activation must be one of"),
        ({"positions": "relative"}, "positions must be one of"),
        ({"rotary_pairing": "thirds"}, "rotary_pairing must be one of"),
        ({"d_model": 0}, "d_model must be a whole number of at least 1, got 0"),
        ({"d_model": 12.0}, "d_model must be a whole number of at least 1, got 12.0"),
        ({"n_heads": 0}, "n_heads must be a whole number of at least 1, got 0"),
        ({"n_heads": 5}, "n_heads must divide d_model, 12, got 5"),
        ({"n_kv_heads": 0}, "n_kv_heads must be a whole number of at least 1, got 0"),
        ({"n_kv_heads": 2}, "n_kv_heads must divide n_heads, 3, got 2"),
        ({"d_head": -4}, "d_head must be a whole number of at least 1, got -4"),
        ({"d_head": 5, "positions": "rotary"}, "d_head must be even for rotary positions, got 5"),
        ({"d_model": 9}, "d_model must be even for sinusoidal positions, got 9"),
        ({"n_layers": 0}, "n_layers must be a whole number of at least 1, got 0"),
        ({"n_layers": True}, "n_layers must be a whole number of at least 1, got True"),
        ({"max_len": 0}, "max_len must be a whole number of at least 1, got 0"),
        ({"d_ff": -1}, "d_ff must be a whole number of at least 0, got -1"),
        ({"norm_eps": 0.0}, "norm_eps must be above 0 and finite, got 0.0"),
        ({"norm_eps": float("nan")}, "norm_eps must be above 0 and finite, got nan"),
        ({"norm_eps": float("inf")}, "norm_eps must be above 0 and finite, got inf"),
        ({"init_std": float("inf")}, "init_std must be above 0 and finite, got inf"),
        ({"rotary_base": -1.0}, "rotary_base must be above 0 and finite, got -1.0"),
        ({"init_std": 0.0}, "init_std must be above 0 and finite, got 0.0"),
        ({"dropout": 1.5}, "dropout must lie in 0..1, got 1.5"),
        ({"dropout": float("nan")}, "dropout must lie in 0..1, got nan"),
    ],
)
def test_configurations(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def decoder() -> TransformerDecoder:
    return TransformerDecoder(VOCAB, SMALL)


def translator() -> Transformer:
    return Transformer(VOCAB, VOCAB, SMALL)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: FeedForward(SMALL)(torch.randn(2, 11)), "x must be .* d_model = 12, got"),
    (lambda: Block(SMALL)(X[0]), r"x must be \[batch query d_model\]"),
    (lambda: Block(SMALL)(X[..., :11]), "x must be .* with d = 12"),
    (lambda: Block(SMALL)(X, H), "memory must be given to a block with cross.* got one"),
    (lambda: Block(SMALL, cross=True)(X), "memory must be given .* got none"),
    (lambda: Block(SMALL, cross=True)(X, H[:1]), r"memory must be .*batch = 2.*got \[1, 7, 12\]"),
    (lambda: Block(SMALL)(X, mask=ones(2, 5)), r"mask must be \[#batch #query key\]"),
    (lambda: Block(SMALL)(X, mask=ones(2, 5, 1)), "mask must be .* key = 5"),
    (lambda: Block(SMALL)(X, mask=torch.ones(2, 1, 5)), "mask must be boolean"),
    (
        lambda: Block(SMALL, cross=True)(X, H, memory_mask=ones(2, 1, 5)),
        "mask must be .* key = 7",
    ),
    (
        lambda: Block(SMALL).load_torch(nn.TransformerEncoderLayer(12, 3, 20)),
        "reference must have this block's parts",
    ),
    (lambda: Stack(0, SMALL), "vocab_size must be a whole number of at least 1, got 0"),
    (lambda: Stack(11, SMALL)(TOKENS[0]), r"tokens must be \[batch token\], got \[5\]"),
    (lambda: Stack(11, SMALL)(TOKENS.float()), "tokens must be token ids, whole numbers"),
    (lambda: Stack(11, SMALL)(TOKENS + 9), "tokens must be token ids in 0..10, got"),
    (lambda: Stack(11, SMALL)(TOKENS - 11), "tokens must be token ids in 0..10, got -"),
    (lambda: Stack(11, LEARNED)(TOKENS.repeat(1, 2)), "x must have at most 6 tokens"),
    (lambda: TransformerEncoder(VOCAB, SMALL)(TOKENS[0]), r"tokens must be \[batch"),
    (lambda: TransformerEncoder(VOCAB, SMALL)(TOKENS[:, :0]), "tokens must hold at least one"),
    (lambda: decoder()(TOKENS, mask=ones(2, 4)), r"mask must be \[batch token\]"),
    (lambda: decoder()(TOKENS, Memory(H, ones(2, 7))), "memory must be given .* got one"),
    (lambda: decoder().step(TOKENS, decoder().start(), ones(2, 4)), "mask must be"),
    (lambda: decoder().step(TOKENS[:, :0], decoder().start()), "tokens must hold at least one"),
    (lambda: decoder().generate(TOKENS[0], 3), r"prompts must be \[batch token\]"),
    (lambda: decoder().generate(TOKENS[:0], 3), "prompts must hold at least one token"),
    (lambda: decoder().generate(TOKENS * torch.tensor([1, 1, 1, 1, 0]), 3), "padding on the left"),
    (lambda: decoder().generate(TOKENS, 0), "max_len must be a whole number of at least 1"),
    (lambda: decoder().generate(TOKENS, 3, beam=0), "beam must be a whole number of at least 1"),
    (lambda: decoder().generate(TOKENS, 3, beam=10), "beam must be at most the 9 words, got 10"),
    (lambda: translator()(TOKENS, TOKENS[:1]), "batch"),
    (lambda: translator()(TOKENS + 9, TOKENS), "source must be token ids in 0..10"),
    (lambda: translator()(TOKENS, TOKENS + 9), "target must be token ids in 0..10"),
    (
        lambda: translator()(TOKENS, TOKENS * torch.tensor([0, 1, 1, 1, 1])),
        "target must have its padding at the end, got padding before a word",
    ),
    (
        lambda: Transformer(VOCAB, VOCAB, LEARNED).translate(TOKENS),
        "max_len must be at most 6, as many as there are learned positions, got 32",
    ),
    (lambda: translator()(TOKENS[:0], TOKENS[:0]), "source must hold at least one"),
    (lambda: translator().translate(TOKENS[0]), r"source must be \[batch token\]"),
    (lambda: translator().translate(TOKENS, max_len=0), "max_len must be"),
    (lambda: translator().loss(Pairs(TOKENS, TOKENS), 1.5), "smoothing must lie in 0..1, got 1.5"),
    (lambda: translator().loss(Pairs(TOKENS, TOKENS[:, :1])), "must hold at least one token"),
    (
        lambda: Transformer(VOCAB, Vocabulary("abc"), SMALL, shared=True),
        "target_vocab must be source_vocab, of 11 tokens, to share, got another, of 6",
    ),
    (lambda: patient("Z", translator()), "letter must be one of"),
    (lambda: patient("A", Transformer(VOCAB, VOCAB, LEARNED)), "model must have a Sinusoidal"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_calls(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_the_sound_calls_beside_them_pass() -> None:
    assert translator().loss(Pairs(TOKENS, TOKENS), 0.1).isfinite()
    assert decoder().generate(TOKENS, 3, beam=9).tokens.shape[0] == 2
    assert Transformer(VOCAB, VOCAB, TINY)(TOKENS, TOKENS).shape == (2, 5, 11)
    assert len(Transformer(VOCAB, VOCAB, LEARNED).translate(TOKENS, max_len=6).tokens) == 2
    one = Vocabulary("abc", pad="<s>", bos="<s>", eos="</s>")  # its start looks like padding
    assert Transformer(one, one, TINY)(TOKENS % 4, torch.tensor([[0, 2], [0, 3]])).isfinite().all()
