"""A text as training examples of a language model."""

from dataclasses import dataclass
from math import log2
from statistics import fmean
from typing import Any

import torch

from attnbook.model.decoding import evaluating
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, grid, row, space
from attnbook.text.tokenizers import BytePair
from attnbook.walks._pieces import small, written_sum
from attnbook.web import Drawing, Step


@dataclass(frozen=True)
class Exercises:
    """The exercises of a text; number n: given its first n tokens, what is the next?"""

    said: list[str]  # the text's tokens
    guessed: list[str]  # the model's likeliest answer to each exercise
    shares: list[float]  # of the right answers
    bits: list[float]  # what these cost

    @property
    def numbers(self) -> range:
        return range(1, len(self.said))


def next_token(
    model: TransformerDecoder, tokenizer: BytePair, words: str, **options: Any
) -> Drawing:
    """Each token of a text except the first as a training example: predict it from those before.

    Args:
        model: its probabilities are shown.
        tokenizer: the model's.
        words: a short text, four to six tokens.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there are fewer than three tokens, or the text is too long for the drawing.

    Source: Radford et al. 2018, equation 1.
    """
    ids = tokenizer.encode(words)
    if len(ids) < 3:
        raise ValueError(f"words must have at least three tokens, got {len(ids)}")
    with evaluating(model):
        logits = model(torch.tensor([ids[:-1]]))[0]
    shares = logits.softmax(-1)[torch.arange(len(ids) - 1), ids[1:]].tolist()
    said, guessed = (
        [tokenizer.decode([i]).replace(" ", "␣") for i in some]
        for some in (ids, logits.argmax(-1).tolist())
    )
    exercises = Exercises(said, guessed, shares, [-log2(share) for share in shares])
    return Drawing(
        _body(exercises),
        arrow("input", "target", "weight"),
        arrow("shares", "costs", drawn=False),
        alt=f"The tokens {' '.join(said)}. Below, a row for each exercise: the tokens read, the"
        " answer, its probability. At the bottom the text, below it the text one place further.",
        steps=[*_one_by_one(exercises), *_in_one_row(exercises)],
        **options,
    )


def _body(exercises: Exercises) -> Part:
    said, shares, bits = exercises.said, exercises.shares, exercises.bits
    alone = [
        [
            row(*_boxes(said[:n], f"read{n}"), *_boxes([said[n]], f"answer{n}", "weight"), gap=3),
            _number(shares[n - 1], f"share{n}", 3),
        ]
        for n in exercises.numbers
    ]
    together = [
        ["reads", *_boxes(said[:-1], "input")],
        ["answer", *_boxes(said[1:], "target", "weight")],
        ["P", *(_number(p, "shares", 2) for p in shares)],
        ["bits", *(_number(b, "costs", 1, "", max(bits)) for b in bits)],
    ]
    return grid(
        [
            row(*_boxes(said, "text"), gap=3),
            space(6),
            grid(alone, align="lr", gap=(12, 6)),
            space(10),
            small("the same exercises in one row", "input"),
            grid(together, align="rc", gap=(4, 16)),
        ],
        gap=8,
    )


def _boxes(tokens: list[str], name: str, role: str = "") -> list[Part]:
    return [box(token, role, name=name, size=SMALL) for token in tokens]


def _number(x: float, name: str, digits: int, role: str = "weight", high: float = 1) -> Part:
    return cells([x], role, name=name, digits=digits, width=40, span=(0, high))


def _one_by_one(exercises: Exercises) -> list[Step]:
    said, guessed, shares = exercises.said, exercises.guessed, exercises.shares
    steps = [
        Step(
            f"A text of {len(said)} [tokens](text). A ␣ is a space: it belongs to the token.",
            "text",
        ),
        Step(
            f"First exercise: read “{said[0]}”, guess the [next token](answer1). The model gives"
            f" “{said[1]}” a probability of [{shares[0]:.3f}](share1).",
            "read1 answer1 share1",
            ask="How many exercises are there in this text?",
        ),
    ]
    for n in exercises.numbers[1:]:
        told = (
            f"Exercise {n}: the tokens so far are read, the [next](answer{n}) is the answer. It"
            f" gets [{shares[n - 1]:.3f}](share{n})."
        )
        if guessed[n - 1] != said[n]:
            told += f" The model would have said “{guessed[n - 1]}”."
        steps.append(Step(told, f"read{n} answer{n} share{n}"))
    return steps


def _in_one_row(exercises: Exercises) -> list[Step]:
    said, bits = exercises.said, exercises.bits
    return [
        Step(
            f"So {len(said)} tokens are {len(bits)} exercises. A causal mask does all in one pass:"
            " each [place](input) sees itself and what stands to its left.",
            "input",
        ),
        Step(
            "The [answers](target) are the same text, one place on. In code: read tokens[:-1],"
            " answer tokens[1:].",
            "target",
        ),
        Step(
            "Under each answer stands the [probability](shares) that the model gave it.", "shares"
        ),
        Step(
            "[−log₂ P](costs) is what an answer costs, in bits. The loss is the mean:"
            f" {written_sum([fmean(bits)])} bits a token.",
            "costs",
            ask="Which token surprised the model most?",
        ),
    ]
