"""Softmax over tiles: a running maximum and a running sum, so that no row of scores is kept."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, space, text
from attnbook.walks._pieces import brief, small
from attnbook.web import Drawing, Step


class Tile(NamedTuple):
    """What is known after a tile; the symbols are those in `softmax_tiles`."""

    words: str
    scores: Tensor  # [key] of this tile
    most: Tensor  # m'
    factor: Tensor  # f
    total: Tensor  # l'
    out: Tensor  # [d_value] o'


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
        size: keys per tile, 2 or 3; it must divide the keys into two to five tiles.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if shapes do not match each other, or the number or size of tiles is wrong.

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
        tiles = _tiles(scores, v, names, size)
        whole = scores.softmax(-1) @ v
    return Drawing(
        _body(tiles, scores, whole),
        arrow("s", "max", drawn=False),
        arrow("sum", "o", drawn=False),
        alt=f"A line for each tile of {size} keys: its scores, the largest score so far, a factor,"
        " the sum so far, and the values so far. Below, the values divided by the sum, and the"
        " same numbers from a softmax over all keys at once.",
        steps=[*_first_tile(tiles[0], n), *_next_tiles(tiles), *_result(n, size)],
        **options,
    )


def _tiles(scores: Tensor, v: Tensor, names: Sequence[str], size: int) -> list[Tile]:
    most, total, out = torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(2)
    tiles = []
    for begin in range(0, len(scores), size):
        here = slice(begin, begin + size)
        new = torch.maximum(most, scores[here].max())
        factor, weights = (most - new).exp(), (scores[here] - new).exp()
        most, total, out = new, factor * total + weights.sum(), factor * out + weights @ v[here]
        tiles.append(Tile(" ".join(names[here]), scores[here], most, factor, total, out))
    return tiles


def _body(tiles: Sequence[Tile], scores: Tensor, whole: Tensor) -> Part:
    among = (float(scores.min()) - 1e-6, float(scores.max()) + 1e-6)
    upto = (0.0, float(len(scores)))

    def number(name: str, x: Tensor, role: str, span: tuple[float, float], digits: int = 2) -> Part:
        return cells([x], role, name=name, digits=digits, width=36, span=span)

    def pair(name: str, x: Tensor) -> Part:
        return cells(x, "value", name=name, digits=2, width=34)

    lines = [
        [
            text(tile.words, name="t", size=SMALL),
            cells(tile.scores, "weight", name="s", digits=1, width=30, span=among),
            number("max", tile.most, "state", among, 1),
            number("factor", tile.factor, "weight", upto),
            number("sum", tile.total, "state", upto),
            pair("o", tile.out),
        ]
        for tile in tiles
    ]
    heads = {"s": "scores", "max": "max", "factor": "factor", "sum": "sum", "o": "values"}
    out = tiles[-1].out / tiles[-1].total
    return grid(
        [
            [None, *(small(words, part) for part, words in heads.items())],
            *lines,
            space(6),
            [None] * 4 + [small("o / sum", "out"), pair("out", out)],
            [None] * 4 + [small("all at once", "whole"), pair("whole", whole)],
        ],
        gap=(7, 8),
        align="rc",
    )


def _first_tile(tile: Tile, n: int) -> list[Step]:
    scores, most = [brief(x, 1) for x in tile.scores], brief(tile.most, 1)
    powers = " + ".join(f"e^({x} − {most})" for x in scores)
    listed = f"{', '.join(scores[:-1])} and {scores[-1]}"
    return [
        Step(
            f"One query meets {n} keys. A softmax needs the largest [score](s) and a sum over all."
            f" But only {len(scores)} keys are read at a time, a tile; their scores:"
            f" [{listed}](s.0).",
            "t.0 s.0",
        ),
        Step(
            f"The largest score so far is [{most}](max.0). Relative to it: {powers} ="
            f" [{brief(tile.total)}](sum.0). The values, each times its own power of e, add up to"
            " [two numbers](o.0). The scores of this tile are forgotten.",
            "max.0 factor.0 sum.0 o.0",
        ),
    ]


def _next_tiles(tiles: Sequence[Tile]) -> list[Step]:
    """A step for each tile but the first, with a question at the first new maximum."""
    steps, asked = [], False
    for t, (old, tile) in enumerate(pairwise(tiles), 1):
        rises = bool(tile.most > old.most)
        ask = "The old sum was made with another maximum. What to do with it?"
        steps.append(
            Step(
                f"{_factor(t, old, tile) if rises else _no_factor(t)} The new [sum](sum.{t}):"
                f" {brief(old.total)} × {brief(tile.factor)} +"
                f" {brief(tile.total - tile.factor * old.total)} = {brief(tile.total)}. The"
                f" [values](o.{t}) alike.",
                f"t.{t} s.{t} max.{t} factor.{t} sum.{t} o.{t}",
                ask=ask if rises and not asked else "",
            )
        )
        asked = asked or rises
    return steps


def _factor(t: int, old: Tile, tile: Tile) -> str:
    before, now = brief(old.most, 1), brief(tile.most, 1)
    return (
        f"A larger score: the [maximum](max.{t}) rises from {before} to {now}. All that was added"
        f" counted from the old one. The [factor](factor.{t}) e^({before} − {now}) ="
        f" {brief(tile.factor)} puts it right."
    )


def _no_factor(t: int) -> str:
    return f"No larger score: the [maximum](max.{t}) stays, and the [factor](factor.{t}) is 1."


def _result(n: int, size: int) -> list[Step]:
    return [
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
