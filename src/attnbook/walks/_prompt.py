"""A task as next-word prediction: from a sentence through its prompt to a label."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.prompting import Wording
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Part, arrow, bars, box, cells, grid, row, space, text
from attnbook.text.tokenizers import BytePair
from attnbook.walks._pieces import small
from attnbook.web import Drawing, Step

ROOM = 340  # units: the width of the prompt


@dataclass(frozen=True)
class Read:
    """A prompt, and the model's predictions for it."""

    sentence: str
    tokens: list[str]
    inside: list[bool]  # whether each token belongs to the sentence
    n_tokens: int  # size of the vocabulary
    likeliest: list[str]
    likeliest_shares: Tensor
    labels: list[str]
    shares: Tensor  # [label]
    ranks: list[int]  # of each label, among all tokens
    between: Tensor  # [label] shares among the labels alone

    @property
    def best(self) -> int:
        """Index of the likeliest label."""
        return int(self.between.argmax())


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
        top: how many of the most likely tokens are shown.
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
    read = _read(model, tokenizer, wording, sentence, torch.tensor(words)[:, 0], top)
    return Drawing(
        _body(read, _count(model)),
        arrow("sentence", "inside", "state", drawn=False),
        arrow("labels", "between.*", "weight", drawn=False),
        arrow("between", "answer", "weight", drawn=False),
        alt="A sentence, its prompt as tokens, bars of the likeliest next tokens, the"
        f" probabilities of {' and '.join(read.labels)}, and the one of them that is likelier.",
        steps=[*_reading(read), *_comparing(read)],
        **options,
    )


def _read(
    model: TransformerDecoder,
    tokenizer: BytePair,
    wording: Wording,
    sentence: str,
    labels: Tensor,
    top: int,
) -> Read:
    ids = tokenizer.encode(wording.ask(sentence))
    with evaluating(model):
        logits = model(torch.tensor([ids]))[0, -1].float()
    shares, order = logits.softmax(-1), logits.argsort(descending=True, stable=True)
    begin = len(wording.text.partition("{}")[0])
    ends = [*accumulate(len(tokenizer.decode([i])) for i in ids)]

    def seen(some: Iterable[int]) -> list[str]:
        return [tokenizer.decode([i]).replace(" ", "␣").replace("\n", "↵") for i in some]

    return Read(
        sentence,
        tokens=seen(ids),
        inside=[
            begin < end and start < begin + len(sentence) for start, end in pairwise([0, *ends])
        ],
        n_tokens=len(shares),
        likeliest=seen(order[:top].tolist()),
        likeliest_shares=shares[order[:top]],
        labels=seen(labels.tolist()),
        shares=shares[labels],
        ranks=[int((shares > share).sum()) + 1 for share in shares[labels]],
        between=logits[labels].softmax(-1),
    )


def _body(read: Read, size: str) -> Part:
    boxes = [
        box(token, "state" * its, name="inside" if its else "around", size=SMALL)
        for token, its in zip(read.tokens, read.inside, strict=True)
    ]
    return grid(
        [
            box(read.sentence, "state", name="sentence", size=SMALL),
            space(8),
            *(row(*line, gap=3) for line in _lines(boxes)),
            space(8),
            box(f"model: {size} parameters", name="model", width=220, size=SMALL),
            space(8),
            small("the likeliest next tokens", "bars"),
            bars(read.likeliest, read.likeliest_shares, name="bars"),
            space(8),
            small("our two words" if len(read.labels) == 2 else "our words", "labels"),
            _chances(read),
            space(8),
            small("between these alone", "between"),
            bars(read.labels, read.between, name="between"),
            space(8),
            box(read.labels[read.best].strip("␣"), "weight", name="answer"),
        ],
        gap=5,
    )


def _chances(read: Read) -> Part:
    """Each label's probability, and its rank among all tokens."""
    rows = [
        [
            word,
            cells([share], "weight", name="labels", width=70, height=20, span=(0, 1)),
            text(_small(share), name="chances", size=SMALL),
            text(f"place {rank:,}", name="ranks", size=SMALL),
        ]
        for word, share, rank in zip(read.labels, read.shares.tolist(), read.ranks, strict=True)
    ]
    return grid(rows, align="rlll", gap=(8, 3))


def _reading(read: Read) -> list[Step]:
    """From the sentence to the likeliest next tokens."""
    return [
        Step("A [sentence](sentence) is to get a label. Nothing will be trained.", "sentence"),
        Step(
            "[Words around it](around) turn the task into a text that goes on: a prompt of"
            f" {len(read.tokens)} tokens.",
            "inside around",
        ),
        Step(
            "The [model](model) reads the prompt. It does what it always does: it gives each of"
            f" {read.n_tokens:,} tokens a probability to come next.",
            "model",
            ask="Which word would you write next?",
        ),
        Step(
            f"[These](bars) are the likeliest. The first, “{read.likeliest[0]}”, gets"
            f" {_small(float(read.likeliest_shares[0]))}.",
            "bars",
            ask="Will one of our two words be among them?" if len(read.labels) == 2 else "",
        ),
    ]


def _comparing(read: Read) -> list[Step]:
    """From the likeliest next tokens to the label."""
    best, said = read.best, read.labels[read.best]
    first, second = read.between.sort(descending=True).values[:2].tolist()
    return [
        Step(
            f"We look only at our words. [“{said}”](labels.{best}) gets"
            f" {_small(float(read.shares[best]))}, which is [place](ranks.{best})"
            f" {read.ranks[best]:,} of all tokens.",
            "labels chances ranks",
        ),
        Step(
            f"A softmax [between these alone](between) gives “{said}” {first:.2f}, the next"
            f" {second:.2f}.",
            "between",
        ),
        Step("The likeliest is the [label](answer).", "answer"),
    ]


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
    """The number of parameters, as text."""
    n = sum(parameter.numel() for parameter in model.parameters())
    return f"{n / 1e6:.0f} million" if n >= 1e6 else f"{n:,}"
