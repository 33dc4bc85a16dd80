"""One draw: from the distribution of the next token to the token."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnbook.checks import check_whole
from attnbook.model import sampling
from attnbook.model.decoding import evaluating
from attnbook.model.sampling import Sampling
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import (
    DEEPEST,
    FAINTEST,
    SMALL,
    Box,
    Mark,
    Part,
    Stroke,
    Words,
    arrow,
    bars,
    box,
    cells,
    grid,
    row,
    space,
    text,
)
from attnbook.show.lettering import text_width
from attnbook.text.tokenizers import BytePair
from attnbook.walks._pieces import small
from attnbook.web import Drawing, Step

STRIP = 340  # units: the width of a strip from 0 to 1


class Filter(NamedTuple):
    """A setting that changes the distribution."""

    name: str
    off: float  # the value that turns it off
    change: Callable[[Tensor, Any], Tensor]
    heading: str  # the heading of its column
    says: str


FILTERS = (
    Filter(
        "temperature",
        1.0,
        sampling.temperature,
        "τ = {:g}",
        "Scores are divided by the [temperature](temperature) {:g}. Likely tokens gain, rare lose.",
    ),
    Filter("top_k", 0, sampling.top_k, "k = {:g}", "[Top-k](top_k) keeps the {:g} likeliest."),
    Filter(
        "top_p",
        1.0,
        sampling.top_p,
        "p = {:g}",
        "[Top-p](top_p) goes down the list until the sum is {:g}.",
    ),
    Filter(
        "min_p",
        0.0,
        sampling.min_p,
        "min {:g}",
        "[Min-p](min_p) keeps what has {:g} of the largest chance, or more.",
    ),
)


class Column(NamedTuple):
    """The distribution after a filter."""

    name: str
    heading: str
    says: str  # "" before any filter
    shares: Tensor  # [token]


@dataclass(frozen=True)
class Drawn:
    """A draw; its columns are the distribution before any filter, and after each one."""

    words: list[str]
    columns: list[Column]
    best: Tensor  # ids of the likeliest tokens, which are shown
    names: list[str]  # of these
    shares: Tensor  # of the tokens that are left, the likeliest first
    left: list[str]
    place: int  # index of the drawn token among these
    number: float

    @property
    def token(self) -> str:
        return self.left[self.place]

    @property
    def others(self) -> str:
        return f"{len(self.columns[0].shares) - len(self.best):,} others"

    @property
    def first(self) -> Tensor:
        """The shown tokens' probabilities before any filter."""
        return self.columns[0].shares[self.best]

    @property
    def rest(self) -> float:
        """The other tokens' total probability before any filter."""
        return self.unlisted(self.columns[0].shares)

    def unlisted(self, shares: Tensor) -> float:
        """The sum of all other `shares`; 1 minus the shown ones would leave a rounding error."""
        return float(shares.scatter(0, self.best, 0.0).sum())

    @property
    def surprising(self) -> bool:
        """Whether the drawn token is not the likeliest."""
        return self.place > 0


def one_draw(
    model: TransformerDecoder,
    tokenizer: BytePair,
    words: str,
    how: Sampling,
    *,
    number: float,
    shown: int = 7,
    **options: Any,
) -> Drawing:
    """How the next token is drawn: the distribution, the filters one by one, the draw.

    Args:
        model: its probabilities are shown.
        tokenizer: the model's.
        words: a short prompt, up to six tokens.
        how: at least one of temperature, top-k, top-p and min-p; all other settings off.
        number: the random number, from 0 up to but not including 1.
        shown: how many of the likeliest tokens have a row; the rest share one.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if none of these settings is on, another one is, `number` is out of range, more
            tokens pass the filters than are shown, or the text is too long for the drawing.

    Source: Holtzman et al. 2020, section 3.
    """
    check_whole(2, shown=shown)
    if not 0 <= number < 1:
        raise ValueError(f"number must be from 0 up to 1, without 1, got {number}")
    active = _active(how)
    if not active or how.typical != 1 or how.repetition_penalty != 1:
        names = ", ".join(each.name for each in FILTERS)
        raise ValueError(f"how must have one at least of {names}, and no other, got {how}")
    drawn = _drawn(model, tokenizer, words, how, number=number, shown=shown)
    return Drawing(
        _body(drawn),
        arrow("before", active[0].name, drawn=False),
        arrow("number", "drawn", "weight"),
        alt=f"The tokens {words}, and bars of the likeliest next tokens. Below, a table: a row for"
        " each token, a column for each filter, crossed out where the filter drops the token. At"
        " the bottom a strip from 0 to 1, cut by what is left; a number falls on one piece.",
        steps=[*_reading(drawn), *_filtering(drawn), *_drawing(drawn)],
        **options,
    )


def _active(how: Sampling) -> list[Filter]:
    return [each for each in FILTERS if getattr(how, each.name) != each.off]


def _drawn(
    model: TransformerDecoder,
    tokenizer: BytePair,
    words: str,
    how: Sampling,
    *,
    number: float,
    shown: int,
) -> Drawn:
    ids = tokenizer.encode(words)
    with evaluating(model):
        logits = model(torch.tensor([ids]))[0, -1].double()
    best = logits.argsort(descending=True, stable=True)[:shown]
    columns = [Column("before", "P", "", logits.softmax(-1))]
    for each in _active(how):
        value = getattr(how, each.name)
        logits = each.change(logits, value)
        heading, says = each.heading.format(value), each.says.format(value)
        columns.append(Column(each.name, heading, says, logits.softmax(-1)))
    n_left = int((logits > -torch.inf).sum())
    if n_left > shown:
        raise ValueError(f"how must leave at most shown = {shown} tokens, got {n_left}")
    left = best[:n_left]
    token = sampling.draw(logits[None], torch.tensor([number], dtype=torch.float64)).item()
    return Drawn(
        words=[_seen(tokenizer, i) for i in ids],
        columns=columns,
        best=best,
        names=[_seen(tokenizer, int(i)) for i in best],
        shares=columns[-1].shares[left],
        left=[_seen(tokenizer, int(i)) for i in left],
        place=left.tolist().index(token),
        number=number,
    )


def _body(drawn: Drawn) -> Part:
    labels = [*drawn.names, drawn.others]
    return grid(
        [
            row(*(box(word, name="words") for word in drawn.words), gap=4),
            space(4),
            bars(labels, [*drawn.first.tolist(), drawn.rest], name="bars", width=340),
            space(8),
            _table(drawn, labels),
            space(8),
            small("what is left, side by side from 0 to 1", "strip"),
            _strip(drawn.left, drawn.shares, "strip"),
            _mark(drawn.number, f"the draw: {drawn.number:.2f}", "number"),
            box(drawn.token, "weight", name="drawn"),
        ],
        gap=4,
    )


def _table(drawn: Drawn, labels: list[str]) -> Part:
    """A row for each shown token and one for all others, a column for P and each filter."""
    headings = [None, *(small(each.heading, each.name) for each in drawn.columns)]
    shares = [_listed(each.shares, drawn) for each in drawn.columns]
    look = {"digits": 2, "width": 46, "span": (0, 1)}
    lines = [
        [
            text(label, beside="before"),
            *(
                cells([share], "weight", name=each.name, **look)
                for each, share in zip(drawn.columns, line, strict=True)
            ),
        ]
        for label, line in zip(labels, zip(*shares, strict=True), strict=True)
    ]
    return grid([headings, *lines], align="rc", gap=(6, 2))


def _listed(shares: Tensor, drawn: Drawn) -> list[float]:
    """The shares of the shown tokens, and of all others together; NaN instead of 0."""
    some = [*shares[drawn.best].tolist(), drawn.unlisted(shares)]
    return [share if share > 0 else float("nan") for share in some]


def _reading(drawn: Drawn) -> list[Step]:
    """The distribution before any filter."""
    n_shown = len(drawn.names)
    return [
        Step(
            f"The model has read [{len(drawn.words)} tokens](words). It gives each of its"
            f" {len(drawn.columns[0].shares):,} tokens a chance. The {n_shown} likeliest have a"
            " [bar](bars) each.",
            "words bars",
        ),
        Step(
            f"All [others](bars.{n_shown}) together have {drawn.rest:.2f}, and each of them less"
            f" than “{drawn.names[-1]}”.",
            "words bars",
        ),
        Step(
            "The same chances as [numbers](before). Now each filter makes a new column.", "before"
        ),
    ]


def _filtering(drawn: Drawn) -> list[Step]:
    """A step for each filter."""
    steps = []
    for before, column in pairwise(drawn.columns):
        gone = int((before.shares > 0).sum() - (column.shares > 0).sum())
        more = ""
        if gone:
            more = f" {gone:,} token{'s' * (gone > 1)} left out: the rest is divided by its sum."
        last = column is drawn.columns[-1]
        ask = "Which rows will be crossed out?" if last and gone else ""
        steps.append(Step(column.says + more, column.name, ask=ask))
    return steps


def _drawing(drawn: Drawn) -> list[Step]:
    likeliest, token = drawn.names[0], drawn.token
    told = f"The next token is [“{token}”](drawn)."
    if drawn.surprising:
        told = f"“{likeliest}” has the widest piece, but the number fell beside it. {told}"
    return [
        Step(
            f"{len(drawn.left)} tokens are left. Laid [side by side](strip), the likeliest first,"
            " each as wide as its chance, they fill 0 to 1.",
            "strip",
            ask=f"“{likeliest}” is the likeliest. Must it be the next token?",
        ),
        Step(
            f"A random number falls between 0 and 1: [{drawn.number:.2f}](number). It lands on"
            f" [“{token}”](strip.{drawn.place}).",
            "number",
        ),
        Step(
            told + " The token joins the text, and all begins anew.",
            "drawn",
            ask=f"Why was “{likeliest}” not taken?" if drawn.surprising else "",
        ),
    ]


def _seen(tokenizer: BytePair, token: int) -> str:
    return tokenizer.decode([token]).replace(" ", "␣").replace("\n", "↵")


def _strip(names: list[str], shares: Tensor, name: str) -> Part:
    """Shares side by side from 0 to 1, each with its name if there is room."""
    inside: list[Mark | tuple[float, float, Part]] = []
    x = 0.0
    for label, share in zip(names, shares.tolist(), strict=True):
        width = STRIP * share
        shade = FAINTEST + (DEEPEST - FAINTEST) * share
        marks: list[Any] = [Box(0, 0, width, 30, "cell", shade)]
        if text_width(label, SMALL) + 4 < width:
            marks.append(Words(width / 2, 15, label, SMALL))
        inside.append((x, 0.0, Part(width, 30, tuple(marks), cell=True)))
        x += width
    return Part(STRIP, 30, tuple(inside), name, "weight", shares.double().numpy())


def _mark(number: float, words: str, name: str) -> Part:
    """A line up to a number's position on a strip from 0 to 1, with words below it."""
    x, half = STRIP * number, text_width(words, SMALL) / 2
    middle = min(max(x, half), STRIP - half)
    marks = (Stroke(((x, 16), (x, -38)), "brace", width=2.5), Words(middle, 24, words, SMALL))
    return Part(STRIP, 32, marks, name)
