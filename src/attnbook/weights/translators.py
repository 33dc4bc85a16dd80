"""Six small translators of number words, trained for the book's pages and stored in 8 bits."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from attnbook.checks import check_choice
from attnbook.model.config import TINY
from attnbook.model.scores import AdditiveScore, DotScore
from attnbook.model.seq2seq import Decoder, Encoder, MultiHeadDecoder, Seq2Seq
from attnbook.model.transformer import Transformer
from attnbook.text.number_words import Numbers
from attnbook.weights.int8 import fill_int8, metadata

FOLDER = Path(__file__).parent
HEADS = {"one_head": 1, "four_heads": 4, "transformer": TINY.n_heads}
TRANSLATORS = ("one_vector", "additive", "dot", *HEADS)


def new_translator(name: str, d_model: int) -> Seq2Seq:
    """An untrained translator.

    All but the Transformer have the same encoder and differ in what their decoder reads of it.

    Args:
        name: "one_vector" (the last state alone), "additive" or "dot" (attention to all states,
            with that score), "one_head" or "four_heads" (multi-head attention), "transformer"
            (`TINY`, as in chapter 6, except for its width).
        d_model: size of all vectors; a Transformer's d_ff is four times that.

    Raises:
        ValueError: if there is no such translator.
    """
    check_choice(TRANSLATORS, name=name)
    task = Numbers()
    source, vocab = task.source_vocab, task.target_vocab
    if name == "transformer":
        return Transformer(source, vocab, replace(TINY, d_model=d_model, d_ff=4 * d_model))
    encoder = Encoder(source, d_model, two_way=True)
    if name in HEADS:
        return Seq2Seq(encoder, MultiHeadDecoder(vocab, d_model, HEADS[name]))
    scores: dict[str, Any] = {"additive": lambda: AdditiveScore(*[d_model] * 3), "dot": DotScore}
    return Seq2Seq(encoder, Decoder(vocab, d_model, scores.get(name, lambda: None)()))


@cache
def translator(name: str) -> Seq2Seq:
    """A trained translator, in evaluation mode, its weights rounded to 8 bits.

    `int8.metadata` of its file has its training settings and, for each number of digits, the share
    of held-out numbers that it translates exactly; `make translators` trains it again.

    Raises:
        ValueError: if there is no such translator.
    """
    check_choice(TRANSLATORS, name=name)
    path = FOLDER / f"{name}.safetensors"
    return fill_int8(path, new_translator(name, metadata(path)["d_model"]))
