"""The decoder's input and target in training: the same words, shifted by one."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range
from attnbook.model.decoding import evaluating
from attnbook.model.seq2seq import Seq2Seq
from attnbook.show.drawing import SMALL, Arrow, Number, Part, arrow, box, cells, column, grid, space
from attnbook.text.vocabulary import Pairs
from attnbook.walks._pieces import small
from attnbook.walks._unrolled import spelled
from attnbook.web import Drawing, Step


@dataclass(frozen=True)
class Answers:
    """The targets of a batch, and the probabilities that the model gives their tokens."""

    said: list[list[str]]  # each target's tokens, start and padding included
    counts: Tensor  # [target place] whether a token is wanted there
    shares: Tensor  # [target place] its probability, NaN where none is wanted
    costs: Tensor  # [target place] in nats

    def every(self, name: str) -> str:
        """The names of such parts of all targets, as in "reads0 reads1"."""
        return " ".join(f"{name}{n}" for n in range(len(self.said)))


def target_shift(model: Seq2Seq, batch: Pairs, **options: Any) -> Drawing:
    """How a batch of targets becomes the decoder's input and the tokens that it should predict.

    Args:
        model: its probabilities of the target tokens are shown.
        batch: two or three pairs, with targets of about five tokens; the first has at least two
            words.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there are fewer or more pairs, the first target has fewer words, or one is
            too long for the drawing.

    Source: Sutskever et al. 2014, section 3; Vaswani et al. 2017, section 3.1 ("offset by one").
    """
    target, vocab = batch.target, model.decoder.vocab
    check_range(2, 3, pairs=len(target))
    wanted, counts = target[:, 1:], vocab.written(target[:, 1:])
    if (first := int(counts[0].sum()) - 1) < 2:
        raise ValueError(f"batch must have two words or more in its first target, got {first}")
    said = [
        ["(pad)" if i == vocab.pad else spelled(vocab, i) for i in row] for row in target.tolist()
    ]
    with evaluating(model):
        logits = model(batch.source, target[:, :-1])
    shares = logits.softmax(-1).gather(-1, wanted[..., None])[..., 0]
    shares = shares.masked_fill(~counts, torch.nan)
    answers = Answers(said, counts, shares, -shares.log())
    return Drawing(
        _body(answers),
        *(link for n, words in enumerate(said) for link in _links(n, len(words))),
        alt=f"{len(said)} targets, one a row. Below, for each, the tokens that the decoder reads,"
        " and under each the token that is wanted there, which stands one place further in the"
        " target; then the probability of the wanted token and what it costs. Where padding is"
        " wanted, both are crossed out.",
        steps=[*_shifting(answers), *_padding(answers), *_costs(answers)],
        **options,
    )


def _body(answers: Answers) -> Part:
    high, table = float(answers.costs[answers.counts].max()), []
    for n, words in enumerate(answers.said):
        table += [
            ["reads", *_boxes(words[:-1], f"reads{n}")],
            ["wanted", *_boxes(words[1:], f"wanted{n}", "weight")],
            ["P", *_numbers(answers.shares[n], f"shares{n}", "weight", digits=3, high=1)],
            ["−ln P", *_numbers(answers.costs[n], f"costs{n}", "", digits=2, high=high)],
            space(4),
        ]
    targets = [_boxes(words, f"targets{n}") for n, words in enumerate(answers.said)]
    return column(
        small("targets", "targets0"),
        grid(targets, gap=(4, 6)),
        space(8),
        grid(table[:-1], align="rc", gap=(4, 14)),
        gap=6,
    )


def _boxes(words: list[str], name: str, role: str = "") -> list[Part]:
    return [box(word, role, name=name, size=SMALL, width=46) for word in words]


def _numbers(values: Tensor, name: str, role: str, *, digits: int, high: Number) -> list[Part]:
    look = {"name": name, "digits": digits, "width": 46, "span": (0, high)}
    return [cells([x], role, **look) for x in values]


def _links(n: int, length: int) -> list[Arrow]:
    """The arrows of target n, which has `length` tokens."""
    links = []
    for k in range(length - 1):
        links += [
            arrow(f"targets{n}.{k}", f"reads{n}.{k}", drawn=False),
            arrow(f"targets{n}.{k + 1}", f"wanted{n}.{k}", drawn=False),
            arrow(f"reads{n}.{k}", f"wanted{n}.{k}", "weight"),
        ]
    return links


def _shifting(answers: Answers) -> list[Step]:
    one, two = answers.said[0][1:3]
    return [
        Step(
            f"{len(answers.said)} [targets](targets0) in one batch. Each begins with a start token"
            " and ends with an end token"
            + ("." if answers.counts.all() else "; shorter ones are filled up with padding."),
            answers.every("targets"),
        ),
        Step(
            "The decoder [reads](reads0) all columns but the last: target[:, :-1].",
            answers.every("reads"),
        ),
        Step(
            f"At (start) it should answer “{one}”, at “{one}” it should answer “{two}”."
            " [Wanted](wanted0) are all columns but the first: target[:, 1:].",
            answers.every("wanted"),
            ask="What should the decoder answer at the place where it reads (start)?",
        ),
        Step(
            f"“{two}” is read one place [further on](reads0.2). So the causal mask hides every"
            " place to the right: the answer stands there.",
        ),
    ]


def _padding(answers: Answers) -> list[Step]:
    """A step about the positions that do not count, if there are any."""
    counts = answers.counts
    if counts.all():
        return []
    short = int(counts.sum(1).argmin())
    end = int(counts[short].sum())
    return [
        Step(
            f"After the end token, [padding](wanted{short}.{end}) would be wanted. Those places do"
            " not count: below they are crossed out.",
            ask=f"How many of the {counts.numel()} places count?",
        )
    ]


def _costs(answers: Answers) -> list[Step]:
    costs, counts = answers.costs, answers.counts
    return [
        Step(
            "The decoder gives each wanted token a [probability](shares0.0), all in one pass.",
            answers.every("shares"),
        ),
        Step(
            f"−ln P is what an answer [costs](costs0.0), in nats: here {float(costs[0, 0]):.2f}.",
            answers.every("costs"),
        ),
        Step(
            f"The loss is the mean over the {int(counts.sum())} places that count:"
            f" {float(costs[counts].mean()):.2f} nats."
        ),
    ]
