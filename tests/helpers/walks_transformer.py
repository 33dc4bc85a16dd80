"""A small transformer that translates, to walk through."""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Pairs, Vocabulary, pad_batch
from attnbook.walks import timeline

SOURCE = Vocabulary(["one", "two", "three", "four", "five", "six"])
TARGET = Vocabulary(["un", "deux", "trois", "quatre", "cinq", "sept", "huit", "neuf"])
CONFIG = TransformerConfig(d_model=20, n_heads=2, d_ff=14, n_layers=3)
ENGLISH, FRENCH, PLACE, LAYER, HEAD = "six two four five", "huit deux sept", 2, 1, 1


@torch.no_grad()
def translator(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(SOURCE, TARGET, replace(CONFIG, **changes)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def way(model: Transformer, **options: Any) -> Any:
    return timeline(
        model, ENGLISH, FRENCH, **{"place": PLACE, "layer": LAYER, "head": HEAD, **options}
    )


def pairs(*targets: str) -> Pairs:
    ids = [[TARGET.bos, *TARGET.encode(words.split()), TARGET.eos] for words in targets]
    sources = [SOURCE.encode(words.split()) for words in ("one two", "three", "four six")]
    return Pairs(pad_batch(sources[: len(targets)], SOURCE.pad), pad_batch(ids, TARGET.pad))
