"""A task as next-word prediction: from a sentence through its prompt to a label."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch

from attnbook.checks import check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.prompting import Wording
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Part, arrow, bars, box, cells, grid, row, space, text
from attnbook.text.tokenizers import BytePair
from attnbook.web import Drawing, Step

ROOM = 340  # units: the width of the prompt


def prompt_label(
    model: TransformerDecoder,
    tokenizer: BytePair,
    wording: Wording,
    sentence: str,
    *,
    top: int = 4,
    **options: Any,
) -> Drawing:
    """From a sentence to a label: its prompt, the next token, and a comparison of label words.

    Args:
        model: its probabilities are shown.
        tokenizer: the model's.
        wording: the prompt's wording; each label word is one token.
        sentence: a short sentence.
        top: number of most likely tokens that are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if a label word is not one token, or the sentence or a label is too long for the
            drawing.

    Source: Radford et al. 2019, section 3; Brown et al. 2020, section 2.
    """
    check_whole(1, top=top)
    words = [tokenizer.encode(label) for label in wording.labels]
    for label, each in zip(wording.labels, words, strict=True):
        if len(each) != 1:
            raise ValueError(f"labels must be one token each, got {len(each)} for {label!r}")
    ids = tokenizer.encode(wording.ask(sentence))
    with evaluating(model):
        logits = model(torch.tensor([ids]))[0, -1].float()
    shares, order = logits.softmax(-1), logits.argsort(descending=True, stable=True)
    labels = torch.tensor([each[0] for each in words])
    ranks = [int((shares > share).sum()) + 1 for share in shares[labels]]
    between = logits[labels].softmax(-1)
    best = int(between.argmax())

    def seen(i: int) -> str:
        return tokenizer.decode([i]).replace(" ", "␣").replace("\n", "↵")

    said = [seen(int(i)) for i in labels]
    likeliest = [seen(int(i)) for i in order[:top]]
    begin = len(wording.text.partition("{}")[0])
    ends = [*accumulate(len(tokenizer.decode([i])) for i in ids)]
    inside = [begin < end and start < begin + len(sentence) for start, end in pairwise([0, *ends])]
    boxes = [
        box(seen(i), "state" * its, name="inside" if its else "around", size=SMALL)
        for i, its in zip(ids, inside, strict=True)
    ]
    chances = [
        [
            word,
            cells([share], "weight", name="labels", width=70, height=20, span=(0, 1)),
            text(_small(share), name="chances", size=SMALL),
            text(f"place {rank:,}", name="ranks", size=SMALL),
        ]
        for word, share, rank in zip(said, shares[labels].tolist(), ranks, strict=True)
    ]
    body = grid(
        [
            box(sentence, "state", name="sentence", size=SMALL),
            space(8),
            *(row(*line, gap=3) for line in _lines(boxes)),
            space(8),
            box(f"model: {_count(model)} parameters", name="model", width=220, size=SMALL),
            space(8),
            text("the likeliest next tokens", size=SMALL, beside="bars"),
            bars(likeliest, shares[order[:top]], name="bars"),
            space(8),
            text("our two words" if len(said) == 2 else "our words", size=SMALL, beside="labels"),
            grid(chances, align="rlll", gap=(8, 3)),
            space(8),
            text("between these alone", size=SMALL, beside="between"),
            bars(said, between, name="between"),
            space(8),
            box(said[best].strip("␣"), "weight", name="answer"),
        ],
        gap=5,
    )
    first, second = between.sort(descending=True).values[:2].tolist()
    steps = [
        Step("A [sentence](sentence) is to get a label. Nothing will be trained.", "sentence"),
        Step(
            f"[Words around it](around) turn the task into a text that goes on: a prompt of"
            f" {len(ids)} tokens.",
            "inside around",
        ),
        Step(
            "The [model](model) reads the prompt. It does what it always does: it gives each of"
            f" {len(shares):,} tokens a probability to come next.",
            "model",
            ask="Which word would you write next?",
        ),
        Step(
            f"[These](bars) are the likeliest. The first, “{likeliest[0]}”, gets"
            f" {_small(float(shares.max()))}.",
            "bars",
            ask="Will one of our two words be among them?" if len(said) == 2 else "",
        ),
        Step(
            f"We look only at our words. [“{said[best]}”](labels.{best}) gets"
            f" {_small(float(shares[labels[best]]))}, which is [place](ranks.{best})"
            f" {ranks[best]:,} of all tokens.",
            "labels chances ranks",
        ),
        Step(
            f"A softmax [between these alone](between) gives “{said[best]}” {first:.2f}, the next"
            f" {second:.2f}.",
            "between",
        ),
        Step("The likeliest is the [label](answer).", "answer"),
    ]
    return Drawing(
        body,
        arrow("sentence", "inside", "state", drawn=False),
        arrow("labels", "between.*", "weight", drawn=False),
        arrow("between", "answer", "weight", drawn=False),
        alt=f"A sentence, its prompt as tokens, bars of the likeliest next tokens, the"
        f" probabilities of {' and '.join(said)}, and the one of them that is likelier.",
        steps=steps,
        **options,
    )


def _lines(boxes: Sequence[Part]) -> list[list[Part]]:
    """Boxes arranged in as many lines as they need."""
    lines: list[list[Part]] = [[]]
    for each in boxes:
        if lines[-1] and sum(part.width + 3 for part in lines[-1]) + each.width > ROOM:
            lines.append([])
        lines[-1].append(each)
    return lines


def _small(share: float) -> str:
    """A probability with two significant digits."""
    return f"{share:.2f}" if share >= 0.095 else f"{share:.2g}"


def _count(model: TransformerDecoder) -> str:
    """The number of parameters, in words."""
    n = sum(parameter.numel() for parameter in model.parameters())
    return f"{n / 1e6:.0f} million" if n >= 1e6 else f"{n:,}"
