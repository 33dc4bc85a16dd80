"""One draw: from the distribution of the next token to the token."""

from collections.abc import Callable
from typing import Any

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
from attnbook.web import Drawing, Step

STRIP = 340  # units: the width of 0 to 1
Filter = Callable[[Tensor, Any], Tensor]
# Setting, value that turns it off, filter, heading of its column, description.
FILTERS: tuple[tuple[str, float, Filter, str, str], ...] = (
    (
        "temperature",
        1.0,
        sampling.temperature,
        "τ = {:g}",
        "Scores are divided by the [temperature](temperature) {:g}. Likely tokens gain, rare lose.",
    ),
    ("top_k", 0, sampling.top_k, "k = {:g}", "[Top-k](top_k) keeps the {:g} likeliest."),
    (
        "top_p",
        1.0,
        sampling.top_p,
        "p = {:g}",
        "[Top-p](top_p) goes down the list until the sum is {:g}.",
    ),
    (
        "min_p",
        0.0,
        sampling.min_p,
        "min {:g}",
        "[Min-p](min_p) keeps what has {:g} of the largest chance, or more.",
    ),
)


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
        number: the random number in 0..1.
        shown: how many of the likeliest tokens have a row; the rest share one.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if none of these settings is on, another one is, `number` is outside of 0..1,
            more tokens pass the filters than are shown, or the text is too long for the drawing.

    Source: Holtzman et al. 2020, section 3.
    """
    check_whole(2, shown=shown)
    if not 0 <= number < 1:
        raise ValueError(f"number must be from 0 up to 1, without 1, got {number}")
    active = [each for each in FILTERS if getattr(how, each[0]) != each[1]]
    if not active or how.typical != 1 or how.repetition_penalty != 1:
        names = ", ".join(each[0] for each in FILTERS)
        raise ValueError(f"how must have one at least of {names}, and no other, got {how}")
    ids = tokenizer.encode(words)
    with evaluating(model):
        logits = model(torch.tensor([ids]))[0, -1].double()
    best = logits.argsort(descending=True, stable=True)[:shown]
    unlisted = torch.ones(len(logits), dtype=torch.bool).scatter(0, best, False)
    names = [_seen(tokenizer, int(i)) for i in best]
    others = f"{len(logits) - shown:,} others"
    columns = {"chances": logits.softmax(-1)}
    for name, _, change, _, _ in active:
        logits = change(logits, getattr(how, name))
        columns[name] = logits.softmax(-1)
    left = int((logits > -torch.inf).sum())
    if left > shown:
        raise ValueError(f"how must leave at most shown = {shown} tokens, got {left}")
    order = best[:left]
    shares = logits.softmax(-1)[order]
    token = sampling.draw(logits[None], torch.tensor([number], dtype=torch.float64)).item()
    place, drawn = order.tolist().index(token), _seen(tokenizer, int(token))

    def listed(shares: Tensor) -> list[float]:
        """The shares of the shown tokens, and of all others together; NaN in place of 0."""
        some = [*shares[best].tolist(), shares[unlisted].sum().item()]
        return [share if share > 0 else float("nan") for share in some]

    first = columns["chances"]
    rest = float(first[unlisted].sum())
    table: list[Any] = [
        [None, text("P", size=SMALL, beside="before")]
        + [
            text(head.format(getattr(how, name)), size=SMALL, beside=name)
            for name, _, _, head, _ in active
        ]
    ]
    listing = {name: listed(shares) for name, shares in columns.items()}
    for n, label in enumerate([*names, others]):
        line: list[Any] = [text(label, beside="before")]
        for name in columns:
            shown_name = "before" if name == "chances" else name
            line.append(
                cells(
                    [listing[name][n]], "weight", name=shown_name, digits=2, width=46, span=(0, 1)
                )
            )
        table.append(line)
    body = grid(
        [
            row(*(box(_seen(tokenizer, i), name="words") for i in ids), gap=4),
            space(4),
            bars([*names, others], [*first[best].tolist(), rest], name="bars", width=340),
            space(8),
            grid(table, align="rc", gap=(6, 2)),
            space(8),
            text("what is left, side by side from 0 to 1", size=SMALL, beside="strip"),
            _strip([_seen(tokenizer, int(i)) for i in order], shares, "strip"),
            _mark(number, f"the draw: {number:.2f}", "number"),
            box(drawn, "weight", name="drawn"),
        ],
        gap=4,
    )
    told = f"The next token is [“{drawn}”](drawn)."
    if token != int(best[0]):
        told = f"“{names[0]}” has the widest piece, but the number fell beside it. {told}"
    steps = [
        Step(
            f"The model has read [{len(ids)} tokens](words). It gives each of its"
            f" {len(first):,} tokens a chance. The {shown} likeliest have a [bar](bars) each.",
            "words bars",
        ),
        Step(
            f"All [others](bars.{shown}) together have"
            f" {rest:.2f}, and each of them less than “{names[-1]}”.",
            "words bars",
        ),
        Step(
            "The same chances as [numbers](before). Now each filter makes a new column.", "before"
        ),
    ]
    for name, _, _, _, says in active:
        before = [*columns][[*columns].index(name) - 1]
        gone = int((columns[before] > 0).sum() - (columns[name] > 0).sum())
        more = ""
        if gone:
            more = f" {gone:,} token{'s' * (gone > 1)} left out: the rest is divided by its sum."
        ask = "Which rows will be crossed out?" if name == active[-1][0] and gone else ""
        steps.append(Step(says.format(getattr(how, name)) + more, name, ask=ask))
    steps += [
        Step(
            f"{left} tokens are left. Laid [side by side](strip), the likeliest first, each as wide"
            " as its chance, they fill 0 to 1.",
            "strip",
            ask=f"“{names[0]}” is the likeliest. Must it be the next token?",
        ),
        Step(
            f"A random number falls between 0 and 1: [{number:.2f}](number). It lands on"
            f" [“{drawn}”](strip.{place}).",
            "number",
        ),
        Step(
            told + " The token joins the text, and all begins anew.",
            "drawn",
            ask=f"Why was “{names[0]}” not taken?" if token != int(best[0]) else "",
        ),
    ]
    return Drawing(
        body,
        arrow("before", active[0][0], drawn=False),
        arrow("number", "drawn", "weight"),
        alt=f"The tokens {words}, and bars of the likeliest next tokens. Below, a table: a row for"
        " each token, a column for each filter, crossed out where the filter drops the token. At"
        " the bottom a strip from 0 to 1, cut by what is left; a number falls on one piece.",
        steps=steps,
        **options,
    )


def _seen(tokenizer: BytePair, token: int) -> str:
    return tokenizer.decode([token]).replace(" ", "␣").replace("\n", "↵")


def _strip(names: list[str], shares: Tensor, name: str) -> Part:
    """Shares side by side from 0 to 1, with a name where there is room."""
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
    """A line up to the position of a number in 0..1, with words below it."""
    x, half = STRIP * number, text_width(words, SMALL) / 2
    middle = min(max(x, half), STRIP - half)
    marks = (Stroke(((x, 16), (x, -38)), "brace", width=2.5), Words(middle, 24, words, SMALL))
    return Part(STRIP, 32, marks, name)
