"""Checks of assignment 2, last part: positions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.model.positions import sinusoidal
from attnbook.teach.asking import check
from attnbook.teach.judging import constant, numbers, right, same

Answer = Callable[..., Any]
# Functions that this assignment's answers must not call: PyTorch's ready-made attention.
OWN = ("scaled_dot_product_attention", "multi_head_attention_forward")


@check({"n": 1, "d": 2}, {"n": 30, "d": 12}, own=OWN)
def position_vectors(answer: Answer, seed: int = 0, n: int = 7, d: int = 6) -> None:
    """Sinusoidal position vectors."""
    want = sinusoidal(n, d)
    steps, pairs = torch.arange(n)[:, None], torch.arange(d // 2)
    angles = steps / 10000 ** (2 * pairs / d)

    def waves(angles: Tensor) -> Tensor:
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    got = same(
        answer(n, d),
        want,
        "position_vectors",
        {
            "sines and cosines are exchanged: the sine comes first":
                torch.stack([angles.cos(), angles.sin()], -1).flatten(1),
            "all sines come before all cosines; they should take turns":
                torch.cat([angles.sin(), angles.cos()], -1),
            "positions begin at 1; they should begin at 0":
                waves((steps + 1) / 10000 ** (2 * pairs / d)),
            "the exponent is i / d; it should be 2i / d": waves(steps / 10000 ** (pairs / d)),
            "waves get faster, not slower: the power belongs below the line":
                waves(steps * 10000 ** (2 * pairs / d)),
            "each number has an angle of its own; a sine and its cosine share one":
                waves_apart(steps, d),
            "the base is not 10,000": waves(steps / 1000 ** (2 * pairs / d)),
            "there are only sines": torch.stack([angles.sin()] * 2, -1).flatten(1),
            "the exponent is 4i / d; it should be 2i / d, where i counts pairs":
                waves(steps / 10000 ** (4 * pairs / d)),
            "i begins at 1; it should begin at 0": waves(steps / 10000 ** (2 * (pairs + 1) / d)),
            "all pairs have the same wave: is 2i / d rounded to a whole number?":
                waves(steps.expand(n, d // 2)),
            "angles are taken for degrees; sine and cosine expect radians":
                waves(angles * torch.pi / 180),
            "sine and cosine have an axis of their own; put them side by side":
                torch.stack([angles.sin(), angles.cos()], -1),
        },
        axes="position d",
    )  # fmt: skip
    right("position_vectors", got, seed, 2)


def waves_apart(steps: Tensor, d: int) -> Tensor:
    """The mistaken result of one angle per component instead of one per pair."""
    i = torch.arange(d)
    angles = steps / 10000 ** (i / d)
    return torch.where(i % 2 == 0, angles.sin(), angles.cos())


@check({"sizes": (1, 3)}, {"sizes": (2, 1)}, {"sizes": (5, 4)}, {"sizes": (3, 9)}, own=OWN)
def rotate(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 5)) -> None:
    """Each pair of components rotated by an angle proportional to the position."""
    batch, n = sizes
    some = numbers(seed)
    x, angle = some(batch, n, 2), constant(seed, 0.7, -1.1, 0.3, 2.0)
    turns = torch.arange(n) * angle
    a, b = x.unbind(-1)

    def turned(turns: Tensor, side: int = 1, first: int = -1) -> Tensor:
        cos, sin = turns.cos(), turns.sin()
        return torch.stack([a * cos + first * b * sin, side * a * sin + b * cos], -1)

    got = same(
        answer(x, angle),
        turned(turns),
        "rotate",
        {
            "a negative theta turns clockwise": turned(turns.abs()),
            "it turns clockwise: the sign of the sine is wrong": turned(turns, -1, 1),
            "position 0 is turned, too: positions begin at 0": turned(turns + angle),
            "all positions turn by the same angle": turned(torch.full((n,), angle)),
            "nothing is turned": x,
            "theta is not used: it always turns by 0.7": turned(torch.arange(n) * 0.7),
            "vectors change their length: the sine has the same sign in both numbers":
                turned(turns, 1, 1),
            "the two numbers are exchanged": turned(turns).flip(-1),
            "the angle is theta to the power of the position; it should be their product":
                turned(angle ** torch.arange(n)),
            "theta is taken for degrees; sine and cosine expect radians":
                turned(turns * torch.pi / 180),
            "the second number is made of the new first one; it should be made of the old one":
                torch.stack([turned(turns)[..., 0],
                             turned(turns)[..., 0] * turns.sin() + b * turns.cos()], -1),
            "the two numbers come first; they should be the last axis":
                turned(turns).movedim(-1, 0),
            "the angle runs over the sentences; it should run over the positions":
                turned(torch.arange(batch)[:, None] * angle),
        },
        axes="batch position number",
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
