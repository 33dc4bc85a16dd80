"""A text as training examples of a language model."""

from math import log2
from statistics import fmean
from typing import Any

import torch

from attnbook.model.decoding import evaluating
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, grid, row, space, text
from attnbook.text.tokenizers import BytePair
from attnbook.walks._input import written_sum
from attnbook.web import Drawing, Step


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
    bits = [-log2(share) for share in shares]
    numbers = range(1, len(ids))
    said = [tokenizer.decode([i]).replace(" ", "␣") for i in ids]
    guessed = [tokenizer.decode([i]).replace(" ", "␣") for i in logits.argmax(-1).tolist()]

    def boxes(tokens: list[str], name: str, role: str = "") -> list[Any]:
        return [box(token, role, name=name, size=SMALL) for token in tokens]

    def number(x: float, name: str, digits: int, role: str = "weight", high: float = 1) -> Part:
        return cells([x], role, name=name, digits=digits, width=40, span=(0, high))

    exercises = [
        [
            row(*boxes(said[:n], f"read{n}"), *boxes([said[n]], f"answer{n}", "weight"), gap=3),
            number(shares[n - 1], f"share{n}", 3),
        ]
        for n in numbers
    ]
    body = grid(
        [
            row(*boxes(said, "text"), gap=3),
            space(6),
            grid(exercises, align="lr", gap=(12, 6)),
            space(10),
            text("the same exercises in one row", size=SMALL, beside="input"),
            grid(
                [
                    ["reads", *boxes(said[:-1], "input")],
                    ["answer", *boxes(said[1:], "target", "weight")],
                    ["P", *(number(p, "shares", 2) for p in shares)],
                    ["bits", *(number(b, "costs", 1, "", max(bits)) for b in bits)],
                ],
                align="rc",
                gap=(4, 16),
            ),
        ],
        gap=8,
    )
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
        *(
            Step(
                f"Exercise {n}: the tokens so far are read, the [next](answer{n}) is the answer."
                f" It gets [{shares[n - 1]:.3f}](share{n})."
                + f" The model would have said “{guessed[n - 1]}”."
                * (guessed[n - 1] != said[n]),
                f"read{n} answer{n} share{n}",
            )
            for n in numbers[1:]
        ),
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
            f"[−log₂ P](costs) is what an answer costs, in bits. The loss is the mean: "
            f"{written_sum([fmean(bits)])} bits a token.",
            "costs",
            ask="Which token surprised the model most?",
        ),
    ]
    return Drawing(
        body,
        arrow("input", "target", "weight"),
        arrow("shares", "costs", drawn=False),
        alt=f"The tokens {' '.join(said)}. Below, a row for each exercise: the tokens read, the"
        " answer, its probability. At the bottom the text, below it the text one place further.",
        steps=steps,
        **options,
    )
