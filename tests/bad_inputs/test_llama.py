"""Bad input to the loaders of Llama's family and to its tokenizer: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable

import pytest
import torch

from attnbook.text.tokenizers import BytePair
from attnbook.text.tokenizers.bytepair import LETTERS
from attnbook.weights.pretrained import chat, load_llama, load_smollm2

LETTERS_BUT_ONE = [*LETTERS.values()][1:]  # all but "!"
BAD = [
    (lambda: load_smollm2(torch.int8), "dtype must be of floating point, got torch.int8"),
    (lambda: load_smollm2("float32"), "dtype must be of floating point, got 'float32'"),
    (lambda: load_llama("nowhere", torch.bool), "dtype must be of floating point, got torch.bool"),
    (lambda: load_llama("nowhere"), "folder must hold config.json, got nowhere"),
    (lambda: chat(), "turns must end with one of the user, got ()"),
    (
        lambda: chat(("user", "a"), ("assistant", "b")),
        "turns must end with one of the user, got (('assistant', 'b'),)",
    ),
    (
        lambda: chat(("you", "a"), ("user", "b")),
        "turns must be one of 'user', 'assistant', got 'you'",
    ),
    (
        lambda: BytePair([], tokens=[*LETTERS_BUT_ONE, "<|endoftext|>"]),
        "tokens must hold every byte unless lossy, got no '!'",
    ),
    (
        lambda: BytePair([], tokens=[*LETTERS_BUT_ONE, "x!", "<|endoftext|>"], lossy=True),
        "tokens must be bytes, merged and special ones, got 'x!'",
    ),
    (
        lambda: BytePair([("!", "a")], tokens=[*LETTERS_BUT_ONE, "<|endoftext|>"], lossy=True),
        "merges must join tokens, got '!' in '!' 'a'",
    ),
    (lambda: BytePair([], ("<a>",), eos="<b>"), "eos must be one of '<a>', None, got '<b>'"),
    (lambda: BytePair([], ("<a>",), pad="x"), "pad must be one of '<a>', None, got 'x'"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
