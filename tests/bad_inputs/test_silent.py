"""What was once taken in silence for something else: one text for many, a word for a flag."""

# pyright: reportArgumentType=false, reportCallIssue=false

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn

from attnbook.learn.bits import bits_per_byte, nats
from attnbook.learn.token_files import make_tokenizer, write_tokens
from attnbook.model.attention import MultiHeadAttention, attend, combine
from attnbook.model.block import Block
from attnbook.model.config import TINY, TransformerConfig
from attnbook.model.costs import step_cost
from attnbook.model.efficient import linear_attention, window_attention
from attnbook.model.masks import masked_softmax, padding_mask
from attnbook.model.norms import LayerNorm, RMSNorm
from attnbook.model.positions import Rotary
from attnbook.model.seq2seq import GRU, Decoder, Encoder
from attnbook.model.transformer import Stack, Transformer, TransformerDecoder, TransformerEncoder
from attnbook.text.agreement import pairs
from attnbook.text.corpus import join, windows
from attnbook.text.tokenizers import SPECIAL, BytePair, Characters, WordPiece, whole_words
from attnbook.text.vocabulary import Vocabulary
from attnbook.weights.llama import chat

TEXT = "one text, and no list of texts"
BYTES, VOCAB = BytePair([]), Vocabulary("abcdefgh")
PIECES = WordPiece([*SPECIAL, "a"])
DECODER = TransformerDecoder(BYTES.vocab, TINY)
Q = torch.zeros(1, 1, 3, 2)
FLAGS = [field.name for field in fields(TransformerConfig) if bool in
         (get_args(field.type) or [field.type])]  # fmt: skip
NUMBERS = [field.name for field in fields(TransformerConfig) if {int, float} &
           {*(get_args(field.type) or [field.type])}]  # fmt: skip
NEEDED = [field.name for field in fields(TransformerConfig) if NoneType not in
          get_args(field.type)]  # fmt: skip


def test_the_lists_below_are_not_empty() -> None:
    assert {"tied", "final_norm", "qk_norm"} <= {*FLAGS} and len(FLAGS) == 8
    assert {"n_layers", "max_len", "dropout", "init_std"} <= {*NUMBERS} and len(NUMBERS) == 12


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["no", 1, 0.0, "", torch.tensor(True)], ids=repr)
def test_a_flag_of_a_configuration_is_true_or_false(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be True or False, got"):
        replace(TINY, **{name: value})
    assert replace(TINY, **{name: np.bool_(True)})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [True, "8", torch.tensor(8), [8]], ids=repr)
def test_a_number_of_a_configuration_is_a_number(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must .*, got"):
        replace(TINY, **{name: value})


@pytest.mark.parametrize("name", NEEDED)
def test_what_a_configuration_needs_is_not_none(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must .*, got None"):
        replace(TINY, **{name: None})


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: MultiHeadAttention(8, 2, bias=x), "bias"),
        (lambda x: MultiHeadAttention(8, 2, qk_norm=x), "qk_norm"),
        (lambda x: MultiHeadAttention(8, 2)(torch.zeros(1, 2, 8), causal=x), "causal"),
        (lambda x: Block(TINY, cross=x), "cross"),
        (lambda x: Stack(9, TINY, cross=x), "cross"),
        (lambda x: TransformerDecoder(VOCAB, TINY, cross=x), "cross"),
        (lambda x: Transformer(VOCAB, VOCAB, TINY, shared=x), "shared"),
        (lambda x: Encoder(VOCAB, 4, two_way=x), "two_way"),
        (lambda x: GRU(2, 3).load_torch(nn.GRU(2, 3), backward=x), "backward"),
        (lambda x: LayerNorm(4, affine=x), "affine"),
        (lambda x: window_attention(Q, Q, Q, 1, causal=x), "causal"),
        (lambda x: linear_attention(Q, Q, Q, causal=x), "causal"),
        (lambda x: BytePair([], digits=x), "digits"),
        (lambda x: BytePair([], lossy=x), "lossy"),
        (lambda x: BYTES.encode("a", special=x), "special"),
        (lambda x: BYTES.decode([1], special=x), "special"),
        (lambda x: BytePair.train(["a"], 300, digits=x), "digits"),
        (lambda x: Characters("ab").encode("a", special=x), "special"),
        (lambda x: Characters("ab").decode([1], special=x), "special"),
        (lambda x: PIECES.decode([1], special=x), "special"),
        (lambda x: WordPiece([*SPECIAL, "a"], lowercase=x), "lowercase"),
        (lambda x: WordPiece.train(["a"], 300, lowercase=x), "lowercase"),
        (lambda x: pairs("simple", 1, 0, attracted=x), "attracted"),
        (lambda x: step_cost(4, 8, 2, 2, 2, cache=x), "cache"),
    ],
)
def test_a_flag_is_true_or_false(call: Callable[[object], object], name: str) -> None:
    for value in ("no", 1, None, 1e-5):
        with pytest.raises(ValueError, match=f"{name} must be True or False, got"):
            call(value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LayerNorm(8, True), "eps must be finite, at least 0, got True"),
        (lambda: RMSNorm(8, True), "eps must be finite, at least 0, got True"),
        (lambda: RMSNorm(8, "1"), "eps must be finite, at least 0, got '1'"),
        (lambda: Rotary(8, True), "base must be above 0 and finite, got True"),
        (lambda: TransformerDecoder("abc", TINY), "vocab must be a Vocabulary, got 'abc'"),
        (lambda: TransformerEncoder("abc", TINY), "vocab must be a Vocabulary, got 'abc'"),
        (lambda: Transformer(["abc"], VOCAB, TINY), "vocab must be a Vocabulary, got ['abc']"),
        (lambda: Encoder("abc", 4), "vocab must be a Vocabulary, got 'abc'"),
        (lambda: Decoder("abc", 4), "vocab must be a Vocabulary, got 'abc'"),
        (lambda: TransformerDecoder(VOCAB, "tiny"), "config must be a TransformerConfig"),
        (lambda: Stack(9, {}), "config must be a TransformerConfig, got {}"),
        (lambda: chat(("user", None)), "turns must be a string, got None"),
        (lambda: chat(("user", "Hi"), system=None), "system must be a string, got None"),
        (lambda: BYTES.encode(None), "text must be a string, got None"),
        (lambda: BYTES.encode(["a"]), "text must be a string, got ['a']"),
        (lambda: Characters("a").encode(["a"]), "text must be a string, got ['a']"),
        (lambda: PIECES.encode(None), "text must be a string, got None"),
        (lambda: BYTES.decode("abc"), "ids must be token ids, whole numbers, got 'abc'"),
        (lambda: PIECES.decode("abc"), "ids must be token ids, whole numbers, got"),
        (lambda: VOCAB.decode("abc"), "ids must be token ids, whole numbers, got"),
        (lambda: windows("abc", 2, 0), "stream must be [token], at least 3, got str"),
        (lambda: nats(DECODER, [1, 2, 3], 2), "stream must be [token], at least 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: BytePair.train(x, 300), "texts"),
        (lambda x: BytePair.train(["a"], 300, special=x), "special"),
        (lambda x: BytePair(x), "merges"),
        (lambda x: BytePair([], special=x), "special"),
        (lambda x: BytePair([], tokens=x), "tokens"),
        (lambda x: WordPiece.train(x, 600), "texts"),
        (lambda x: WordPiece(x), "tokens"),
        (lambda x: Characters.train(x), "texts"),
        (lambda x: join(BYTES, x), "texts"),
        (lambda x: bits_per_byte(DECODER, BYTES, x, 8), "texts"),
        (lambda x: make_tokenizer("characters", x, 300), "texts"),
        (lambda x: make_tokenizer("bpe", x, 300), "texts"),
        (lambda x: write_tokens(x, BYTES, "text", Path("no folder")), "texts"),
        (lambda x: list(whole_words(["a"], x)), "special"),
    ],
)
def test_one_string_is_not_several(call: Callable[[object], object], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must hold several strings, as .* got '{TEXT}'"):
        call(TEXT)
    with pytest.raises(ValueError, match=f"{name} must hold several strings, as .* got a str"):
        call(9 * TEXT)
    with pytest.raises(ValueError, match=f"{name} must hold several strings, as .* got 5"):
        call(5)


@pytest.mark.parametrize("thing", [None, [[0.0, 1.0]], np.zeros((2, 3)), "abc", 1.0], ids=repr)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: attend(x, Q), "scores"),
        (lambda x: attend(Q, x), "values"),
        (lambda x: combine(x, Q), "weights"),
        (lambda x: masked_softmax(x), "scores"),
        (lambda x: MultiHeadAttention(8, 2)(x), "x"),
        (lambda x: LayerNorm(8)(x), "x"),
        (lambda x: Rotary(8)(x), "x"),
        (lambda x: padding_mask(x, 0), "tokens"),
        (lambda x: linear_attention(x, Q, Q), "q"),
        (lambda x: window_attention(Q, Q, x, 1), "v"),
        (lambda x: DECODER(x), "tokens"),
        (lambda x: Encoder(VOCAB, 4)(x), "source"),
        (lambda x: Transformer(VOCAB, VOCAB, TINY)(x, torch.tensor([[1]])), "source"),
    ],
)
def test_a_tensor_is_a_tensor(call: Callable[[object], object], name: str, thing: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a [tT]ensor.*, got"):
        call(thing)


def test_a_mask_is_a_tensor() -> None:
    for call in (
        lambda mask: masked_softmax(torch.zeros(2, 2), mask),
        lambda mask: MultiHeadAttention(8, 2)(torch.zeros(1, 2, 8), mask=mask),
        lambda mask: linear_attention(Q, Q, Q, mask=mask),
    ):
        with pytest.raises(ValueError, match=r"mask must be boolean, .*, got"):
            call([[True, False], [True, True]])


def test_dropout_makes_no_number_that_counts() -> None:
    """A model that trains is asked as one that does not, and goes on training."""
    model = TransformerDecoder(BYTES.vocab, replace(TINY, dropout=0.5))
    texts, stream = ["a text"], join(BYTES, ["a text"])
    trains = nats(model, stream, 8), bits_per_byte(model, BYTES, texts, 8)
    assert model.training
    model.eval()
    torch.testing.assert_close(trains[0], nats(model, stream, 8))
    assert trains[1] == bits_per_byte(model, BYTES, texts, 8)
