"""Softmax over tiles: a running maximum and a running sum, so that no row of scores is kept."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, space, text
from attnbook.walks._attention import _brief
from attnbook.web import Drawing, Step


def softmax_tiles(
    q: Tensor, k: Tensor, v: Tensor, names: Sequence[str], *, size: int = 2, **options: Any
) -> Drawing:
    """One query's attention, a tile of keys at a time, as fused attention computes it.

        m' = max(m, scores of the tile),  f = exp(m - m')
        l' = f l + sum_j exp(s_j - m'),   o' = f o + sum_j exp(s_j - m') v_j
        at the end out = o / l

    Args:
        q: `[d_head]` the query.
        k: `[key d_head]` keys.
        v: `[key d_value]` values of two numbers.
        names: a short text for each key.
        size: keys of a tile, 2 or 3; it divides the keys into two to five tiles.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if shapes do not fit each other, or the tiles are of another number or size.

    Source: Milakov and Gimelshein 2018, section 3; Dao et al. 2022, section 3.1.
    """
    n = len(names)
    check_shapes(q=(q, "d_head"), k=(k, "key d_head"), v=(v, "key d_value"), key=n, d_value=2)
    check_whole(2, size=size)
    check_range(2, 3, size=size)
    if n % size:
        raise ValueError(f"size must divide the {n} keys, got {size}")
    check_range(2, 5, tiles=n // size)
    with torch.no_grad():
        scores = k @ q / q.shape[0] ** 0.5
        most, total, out = torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(2)
        rows = []
        for begin in range(0, n, size):
            here = slice(begin, begin + size)
            new = torch.maximum(most, scores[here].max())
            factor = (most - new).exp()
            weights = (scores[here] - new).exp()
            total, out = factor * total + weights.sum(), factor * out + weights @ v[here]
            most = new
            rows.append((scores[here], new, factor, total, out))
        out, whole = out / total, scores.softmax(-1) @ v

    def number(name: str, x: Tensor, role: str, digits: int = 2) -> Part:
        span = (float(scores.min()) - 1e-6, float(scores.max()) + 1e-6) if name == "max" else (0, n)
        return cells([x], role, name=name, digits=digits, width=36, span=span)

    def pair(name: str, x: Tensor, role: str, digits: int = 2) -> Part:
        return cells(x, role, name=name, digits=digits, width=34)

    def small(words: str, beside: str) -> Part:
        return text(words, size=SMALL, beside=beside)

    span = (float(scores.min()) - 1e-6, float(scores.max()) + 1e-6)
    table = [
        [
            text(" ".join(names[t * size : (t + 1) * size]), name="t", size=SMALL),
            cells(s, "weight", name="s", digits=1, width=30, span=span),
            number("max", new, "state", 1),
            number("factor", factor, "weight"),
            number("sum", total, "state"),
            pair("o", out, "value"),
        ]
        for t, (s, new, factor, total, out) in enumerate(rows)
    ]
    heads = {"s": "scores", "max": "max", "factor": "factor", "sum": "sum", "o": "values"}
    body = grid(
        [
            [None, *(small(words, part) for part, words in heads.items())],
            *table,
            space(6),
            [None] * 4 + [small("o / sum", "out"), pair("out", out, "value")],
            [None] * 4 + [small("all at once", "whole"), pair("whole", whole, "value")],
        ],
        gap=(7, 8),
        align="rc",
    )
    s, new, _, total, _ = rows[0]
    exps = " + ".join(f"e^({_brief(x, 1)} − {_brief(new, 1)})" for x in s)
    steps = [
        Step(
            f"One query meets {n} keys. A softmax needs the largest [score](s) and a sum over all."
            f" But only {size} keys are read at a time, a tile; their scores:"
            f" [{_brief(s[0], 1)}](s.0) …",
            "t.0 s.0",
        ),
        Step(
            f"The largest score so far is [{_brief(new, 1)}](max.0). Relative to it: {exps} ="
            f" [{_brief(total)}](sum.0). The values, each times its own power of e, add up to"
            " [two numbers](o.0). The scores of this tile are forgotten.",
            "max.0 factor.0 sum.0 o.0",
        ),
    ]
    for t in range(1, len(rows)):
        _, new, factor, total, _ = rows[t]
        old = rows[t - 1][1]
        if new > old:
            told = (
                f"A larger score: the [maximum](max.{t}) rises from {_brief(old, 1)} to"
                f" {_brief(new, 1)}. All that was added counted from the old one. The"
                f" [factor](factor.{t}) e^({_brief(old, 1)} − {_brief(new, 1)}) ="
                f" {_brief(factor)} puts it right."
            )
        else:
            told = (
                f"No larger score: the [maximum](max.{t}) stays, and the [factor](factor.{t}) is 1."
            )
        steps.append(
            Step(
                f"{told} The new [sum](sum.{t}): {_brief(rows[t - 1][3])} × {_brief(factor)} +"
                f" {_brief(total - factor * rows[t - 1][3])} = {_brief(total)}. The"
                f" [values](o.{t}) alike.",
                f"t.{t} s.{t} max.{t} factor.{t} sum.{t} o.{t}",
                ask="The old sum was made with another maximum. What to do with it?"
                if t == next((i for i in range(1, len(rows)) if rows[i][1] > rows[i - 1][1]), 0)
                else "",
            )
        )
    steps += [
        Step(
            "At the end the values are divided by the sum: the [output](out). A softmax over"
            f" [all {n} keys at once](whole) gives the same.",
            "out whole",
        ),
        Step(
            f"At no time were there more than {size} scores. Kept from tile to tile: one maximum,"
            " one sum, the values' numbers. So n queries need no n × n numbers of memory, though"
            " all n × n scores are computed."
        ),
    ]
    return Drawing(
        body,
        arrow("s", "max", drawn=False),
        arrow("sum", "o", drawn=False),
        alt=f"A line for each tile of {size} keys: its scores, the largest score so far, a factor,"
        " the sum so far, and the values so far. Below, the values divided by the sum, and the"
        " same numbers from a softmax over all keys at once.",
        steps=steps,
        **options,
    )
