"""A small translator with a GRU, to walk through."""

from typing import Any

import torch
from torch import nn

from attnbook.model.scores import AdditiveScore, DotScore
from attnbook.model.seq2seq import (
    Decoder,
    Encoder,
    LuongDecoder,
    RNNsearchDecoder,
    Seq2Seq,
)
from attnbook.text.vocabulary import Vocabulary

SOURCE = Vocabulary(["one", "two", "three", "four", "five", "six"])
TARGET = Vocabulary(["un", "deux", "trois", "quatre", "cinq", "sept", "huit", "neuf"])
WORDS, D = "two four five", 10


@torch.no_grad()
def translator(decoder: str = "plain", *, two_way: bool = False) -> Seq2Seq:
    """A model with random parameters that writes three to six tokens, the last an end."""
    makers: dict[str, Any] = {
        "plain": lambda: Decoder(TARGET, D),
        "look": lambda: Decoder(TARGET, D, AdditiveScore(D, D, 7)),
        "move": lambda: LuongDecoder(TARGET, D, DotScore()),
        "search": lambda: RNNsearchDecoder(TARGET, D, DotScore()),
    }
    for seed in range(200):
        torch.manual_seed(seed)
        model = Seq2Seq(Encoder(SOURCE, D, two_way=two_way), makers[decoder]())
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=0.8)
        if 3 <= len(greedy(model)) <= 6:
            return model
    raise AssertionError(decoder)


def greedy(model: Seq2Seq) -> list[int]:
    return model.translate(torch.tensor([SOURCE.encode(WORDS.split())])).tokens[0].tolist()
