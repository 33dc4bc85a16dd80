"""Checks of assignment 2, last part: positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.model.positions import sinusoidal
from attnbook.teach.a1_step import OWN
from attnbook.teach.asking import check
from attnbook.teach.judging import constant, numbers, right, same

Answer = Callable[..., Any]


@check({"sizes": (1, 1), "d": 2}, {"sizes": (3, 20), "d": 12}, own=OWN)
def position_vectors(
    answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 5), d: int = 6
) -> None:
    """Sinusoidal position vectors of any places."""
    places = torch.randint(150, sizes, generator=torch.Generator().manual_seed(seed))
    steps, pairs = places[..., None], torch.arange(d // 2)
    angles = steps / 10000 ** (2 * pairs / d)
    counted = torch.arange(sizes[1]).expand(sizes)[..., None]

    def waves(angles: Tensor) -> Tensor:
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)

    got = same(
        answer(places, d),
        sinusoidal(150, d)[places],
        "position_vectors",
        {
            "sines and cosines are exchanged: the sine comes first":
                torch.stack([angles.cos(), angles.sin()], -1).flatten(-2),
            "all sines come before all cosines; they should take turns":
                torch.cat([angles.sin(), angles.cos()], -1),
            "it counts 0, 1, 2, ...; the positions are those of places":
                waves(counted / 10000 ** (2 * pairs / d)),
            "every sentence has the places of the first": waves(angles[:1].expand_as(angles)),
            "1 is added to every place": waves((steps + 1) / 10000 ** (2 * pairs / d)),
            "the exponent is m / d; it should be 2m / d": waves(steps / 10000 ** (pairs / d)),
            "waves get faster, not slower: the power belongs below the line":
                waves(steps * 10000 ** (2 * pairs / d)),
            "each number has an angle of its own; a sine and its cosine share one":
                waves_apart(steps, d),
            "the base is not 10,000": waves(steps / 1000 ** (2 * pairs / d)),
            "there are only sines": torch.stack([angles.sin()] * 2, -1).flatten(-2),
            "the exponent is 4m / d; it should be 2m / d, where m counts pairs":
                waves(steps / 10000 ** (4 * pairs / d)),
            "m begins at 1; it should begin at 0": waves(steps / 10000 ** (2 * (pairs + 1) / d)),
            "all pairs have the same wave: is 2m / d rounded to a whole number?":
                waves(steps.expand(*sizes, d // 2)),
            "angles are taken for degrees; sine and cosine expect radians":
                waves(angles * torch.pi / 180),
            "sine and cosine have an axis of their own; put them side by side":
                torch.stack([angles.sin(), angles.cos()], -1),
            "places and numbers have become one axis; join the last two alone":
                torch.stack([angles.sin(), angles.cos()], -1).flatten(1),
        },
        axes="batch place d",
    )  # fmt: skip
    right("position_vectors", got, seed, 0, 2)


def waves_apart(steps: Tensor, d: int) -> Tensor:
    """The mistaken result of one angle per component instead of one per pair."""
    i = torch.arange(d)
    angles = steps / 10000 ** (i / d)
    return torch.where(i % 2 == 0, angles.sin(), angles.cos())


@check(
    {"sizes": (1, 3, 2)},
    {"sizes": (2, 1, 6)},
    {"sizes": (5, 4, 4)},
    {"sizes": (3, 9, 8)},
    own=OWN,
)
def rotate(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 5, 4)) -> None:
    """Rotary positions: each pair of numbers of a head turned, from the position `start` on."""
    batch, n, d = sizes
    x, pairs = numbers(seed)(*sizes), torch.arange(d // 2)
    start, base = constant(seed, 3, 6, 0, 11), constant(seed, 100.0, 7.0, 10000.0, 30.0, 500.0)
    speeds = base ** (-2 * pairs / d)
    places = torch.arange(start, start + n)[:, None]

    def turned(turns: Tensor, side: int = 1, first: int = -1) -> Tensor:
        cos, sin, (a, b) = turns.cos(), turns.sin(), (x[..., ::2], x[..., 1::2])
        return torch.stack([a * cos + first * b * sin, side * a * sin + b * cos], -1).flatten(-2)

    turns = places * speeds
    want = turned(turns)
    half, other = x.chunk(2, -1)
    cos, sin = turns.cos(), turns.sin()
    got = same(
        answer(x, start, base),
        want,
        "rotate",
        {
            "it turns clockwise: the sign of the sine is wrong": turned(turns, -1, 1),
            "start is not used: the first word is turned as if it stood at 0":
                turned((places - start) * speeds),
            "counting begins at start + 1; the first word stands at start":
                turned((places + 1) * speeds),
            "all words turn by the same angle": turned((start * speeds).expand(n, -1)),
            "nothing is turned": x,
            "number m is paired with number m + d/2, as in the chapter; here neighbours are a pair":
                torch.cat([half * cos - other * sin, half * sin + other * cos], -1),
            "the first numbers of all pairs come before the second; a pair stays side by side":
                torch.cat([want[..., ::2], want[..., 1::2]], -1),
            "all pairs turn at the same speed": turned(places.expand(n, d // 2)),
            "base is not used: it is always 10,000": turned(places * 10000 ** (-2 * pairs / d)),
            "the exponent is m / d; it should be 2m / d": turned(places * base ** (-pairs / d)),
            "pairs get faster, not slower: the exponent is negative":
                turned(places * base ** (2 * pairs / d)),
            "vectors change their length: the sine has the same sign in both numbers":
                turned(turns, 1, 1),
            "the two numbers of a pair are exchanged":
                want.unflatten(-1, (-1, 2)).flip(-1).flatten(-2),
            "angles are taken for degrees; sine and cosine expect radians":
                turned(turns * torch.pi / 180),
            "the second number is made of the new first one; it should be made of the old one":
                torch.stack([want[..., ::2], want[..., ::2] * sin + x[..., 1::2] * cos],
                            -1).flatten(-2),
            "the two numbers of a pair have an axis of their own; put all side by side":
                want.unflatten(-1, (-1, 2)),
            "the angle runs over the sentences; it should run over the words":
                turned((torch.arange(batch)[:, None, None] + start) * speeds),
        },
        axes="batch word d",
    )  # fmt: skip
    right("rotate", got, seed, 0, 2)


@check({"n": 1, "slope": 2.0}, {"n": 6, "slope": 1.5}, own=OWN)
def distance_bias(answer: Answer, seed: int = 0, n: int = 5, slope: float = 0.5) -> None:
    """The ALiBi bias: a penalty proportional to the distance of the key."""
    i, j = torch.arange(n)[:, None], torch.arange(n)
    back = (i - j).float()
    hidden = torch.where(j <= i, slope * -back + 0.0, -torch.inf)
    got = same(
        answer(n, slope),
        hidden,
        "distance_bias",
        {
            "far keys get more; they should get less":
                torch.where(j <= i, slope * back, -torch.inf),
            "keys on the right are not hidden: they must be minus infinity": -slope * back,
            "keys on the right get a penalty; they must be minus infinity": -slope * back.abs(),
            "keys on the right get 0; they must be minus infinity":
                torch.where(j <= i, -slope * back, torch.zeros(())),
            "a key next door counts as two away: counting begins at 0":
                torch.where(j <= i, -slope * (back + 1), -torch.inf),
            "the slope is not used": torch.where(j <= i, -back, -torch.inf),
            "it is divided by the slope; it should be multiplied":
                torch.where(j <= i, -back / slope, -torch.inf),
            "a word is hidden from itself; its bias is 0":
                torch.where(j < i, -slope * back, -torch.inf),
            "a large negative number stands where minus infinity should":
                torch.where(j <= i, -slope * back, -1e9),
            "keys on the right get plus infinity; they must be minus infinity":
                torch.where(j <= i, -slope * back, torch.inf),
            "0 times infinity is NaN: fill minus infinity in, do not multiply by it":
                torch.where(j <= i, torch.nan, -torch.inf),
            "rows are keys, columns are queries; it should be the other way round": hidden.mT,
            "keys on the left are hidden, those on the right are not":
                torch.where(j >= i, slope * back, -torch.inf),
        },
        axes="query key",
    )  # fmt: skip
    right("distance_bias", got.clamp(min=-99), seed, 2)
