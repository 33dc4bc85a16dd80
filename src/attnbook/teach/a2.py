"""Checks of assignment 2: self-attention, its masks and its root, and where a word stands.

Each takes the student's function, tries it on numbers of a seed, and prints one line.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.positions import sinusoidal
from attnbook.teach.asking import check
from attnbook.teach.judging import numbers, parts, pick, right, same

Answer = Callable[..., Any]
OWN = ("scaled_dot_product_attention", "multi_head_attention_forward")


@check({"sizes": (1, 1, 3, 1, 2)}, {"sizes": (2, 3, 1, 2, 1)}, own=OWN)
def project(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 4, 5, 6)) -> None:
    """Queries, keys and values of the same words."""
    batch, n, d_model, d_k, d_v = sizes
    some = numbers(seed)
    x = some(batch, n, d_model)
    w_q, w_k, w_v = some(d_model, d_k), some(d_model, d_k), some(d_model, d_v)
    found = answer(x, w_q, w_k, w_v)
    parts(found, 3, "project must return three tensors: queries, keys, values")
    maps = {"queries": w_q, "keys": w_k, "values": w_v}
    for (name, w), got in zip(maps.items(), found, strict=True):
        wrong = {
            f"these are the {other}: the order is queries, keys, values":
                torch.einsum("bnd,de->bne", x, m)
            for other, m in maps.items()
            if other != name
        }  # fmt: skip
        wrong |= {
            "these are the words themselves: nothing was mapped": x,
            "only the first sentence was mapped": torch.einsum("nd,de->ne", x[0], w).expand(
                batch, -1, -1
            ),
            "they are divided by a root; that belongs to the scores": x @ w / w.shape[1] ** 0.5,
            "a softmax was taken; that belongs to the scores": (x @ w).softmax(-1),
        }
        got = same(got, x @ w, f"the {name} of project", wrong, axes="batch token d")
        right(f"project, {name}", got, seed, 0, 0)


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (3, 1, 1, 2)}, own=OWN)
def scaled_scores(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """Dot products, divided by the root of the keys' size."""
    batch, n, keys, d = sizes
    some = numbers(seed)
    q, k = some(batch, n, d), some(batch, keys, d)
    plain = torch.einsum("bqd,bkd->bqk", q, k)
    got = same(
        answer(q, k),
        plain / d**0.5,
        "scaled_scores",
        {
            "they are not divided by the root of d": plain,
            "they are divided by d, not by its root": plain / d,
            "they are multiplied by the root of d; they should be divided": plain * d**0.5,
            "they are divided by the root of the number of keys, not of d": plain / keys**0.5,
            "they are divided by the root of the number of queries, not of d": plain / n**0.5,
            "the softmax was taken already, which is a later task": (plain / d**0.5).softmax(-1),
            "the softmax was divided by the root; the scores should be": plain.softmax(-1) / d**0.5,
            "they are divided by d squared, not by the root of d": plain / d**2,
            "they are cosines: divide by the root of d, not by the vectors' lengths":
                plain / q.norm(dim=-1)[..., None] / k.norm(dim=-1)[:, None],
            "rows are keys, columns are queries; it should be the other way round":
                plain.mT / d**0.5,
        },
        axes="batch query key",
    )  # fmt: skip
    right("scaled_scores", got, seed, 0, 0)


@check({"n": 1}, {"n": 9}, own=OWN)
def causal_mask(answer: Answer, seed: int = 0, n: int = 4) -> None:
    """True where a word may look: at itself and to its left."""
    ones = torch.ones(n, n, dtype=torch.bool)
    got = same(
        answer(n),
        ones.tril(),
        "causal_mask",
        {
            "True and False are exchanged: True means may be looked at": ~ones.tril(),
            "it looks to the right: row i is the word that asks, column j the word it looks at":
                ones.triu(),
            "a word may look at itself, too": ones.tril(-1),
            "a word may not look at the word behind it": ones.tril(1),
            "everybody may look at everybody": ones,
            "a word may look at itself only": torch.eye(n, dtype=torch.bool),
            "it holds what is added to the scores; it should hold True and False ":
                torch.zeros(n, n).masked_fill(~ones.tril(), -1e9),
            "it holds numbers; it should hold True and False": ones.tril().float(),
            "it holds what is added to the scores; it should hold True and False":
                torch.zeros(n, n).masked_fill(~ones.tril(), -torch.inf),
        },
        axes="query key",
    )  # fmt: skip
    right("causal_mask", got.float(), seed, 1)


@check({"lengths": (1,), "n": 1}, {"lengths": (2, 3), "n": 3}, own=OWN)
def decoder_mask(
    answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (2, 4, 3), n: int = 5
) -> None:
    """Both masks at once: nobody looks to the right, nobody looks at padding."""
    words = torch.arange(n) < torch.tensor(lengths)[:, None]
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    want = words[:, None] & causal
    every = want.shape
    got = same(
        answer(torch.tensor(lengths), n),
        want,
        "decoder_mask",
        {
            "padding may be looked at: only the causal mask is there": causal.expand(every),
            "words may look to the right: only padding is hidden": words[:, None].expand(every),
            "either mask is enough for True; both are needed": words[:, None] | causal,
            "padding may not look, but may be looked at: the mask belongs on the keys":
                words[..., None] & causal,
            "True and False are exchanged: True means may be looked at": ~want,
            "padding may be looked at, and words may not: is `<` turned round?":
                ~words[:, None] & causal,
            "a word may look at itself, too":
                words[:, None] & torch.ones(n, n, dtype=torch.bool).tril(-1),
            "it holds numbers; it should hold True and False": want.float(),
            "it says where words are; a mask says it for each query": words,
            "the last word of each sentence is hidden: counting begins at 0":
                (torch.arange(n) < torch.tensor(lengths)[:, None] - 1)[:, None] & causal,
            "one word of padding may be looked at: counting begins at 0":
                (torch.arange(n) <= torch.tensor(lengths)[:, None])[:, None] & causal,
            "it looks to the right: row i is the word that asks, column j the word it looks at":
                words[:, None] & causal.mT,
        },
        axes="sentence query key",
    )  # fmt: skip
    right("decoder_mask", got.float(), seed, 0, -1)


@check({"sizes": (1, 2, 3, 1, 1)}, {"sizes": (2, 3, 1, 2, 1)}, own=OWN)
def self_attention(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 5, 4, 3, 6)) -> None:
    """The whole: from words to what each has read."""
    batch, n, d_model, d_k, d_v = sizes
    some = numbers(seed)
    x = some(batch, n, d_model)
    w_q, w_k, w_v = some(d_model, d_k), some(d_model, d_k), some(d_model, d_v)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    plain = q @ k.mT

    def read(scores: Tensor, values: Tensor = v) -> Tensor:
        return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ values

    got = same(
        answer(x, w_q, w_k, w_v, mask),
        read(plain / d_k**0.5),
        "self_attention",
        {
            "scores are not divided by the root of d_k": read(plain),
            "scores are divided by the root of d_model, not of d_k": read(plain / d_model**0.5),
            "scores are divided by the root of d_v, not of d_k": read(plain / d_v**0.5),
            "scores are divided by d_k, not by its root": read(plain / d_k),
            "the mask is not used": (plain / d_k**0.5).softmax(-1) @ v,
            "weights were set to 0 after the softmax; set scores to minus infinity before it":
                ((plain / d_k**0.5).softmax(-1) * mask) @ v,
            "the mask is turned round: True means may be looked at":
                (plain / d_k**0.5).masked_fill(mask, -torch.inf).softmax(-1).nan_to_num() @ v,
            "the softmax runs over the queries; it should run over the keys":
                (plain / d_k**0.5).masked_fill(~mask, -torch.inf).softmax(-2) @ v,
            "keys ask and queries answer: q and k are exchanged": read(plain.mT / d_k**0.5),
            "the words themselves are summed, not their values": read(plain / d_k**0.5, x),
            "scores are divided by the root of the number of words, not of d_k":
                read(plain / n**0.5),
            "what was read is divided by the root; the scores should be": read(plain) / d_k**0.5,
            "the softmax is missing": plain / d_k**0.5 @ v,
            "the softmax is missing ": plain @ v,
            "these are the weights; multiply them by the values":
                (plain / d_k**0.5).masked_fill(~mask, -torch.inf).softmax(-1),
            "hidden scores were set to 0; a score of 0 still gets weight":
                (plain / d_k**0.5 * mask).softmax(-1) @ v,
            "the mask was added as 1 and 0; hidden scores need minus infinity":
                (plain / d_k**0.5 + mask).softmax(-1) @ v,
            "the mask is turned round: True means may be looked at ":
                (plain / d_k**0.5).masked_fill(mask, -torch.inf).softmax(-1) @ v,
            "the mask is turned round: True means may be looked at  ":
                (plain / d_k**0.5).masked_fill(mask, -1e9).softmax(-1) @ v,
            "the mask's rows and columns are exchanged: rows are the words that look":
                (plain / d_k**0.5).masked_fill(~mask.T, -torch.inf).softmax(-1) @ v,
        },
        axes="batch token d_v",
    )  # fmt: skip
    open_ = answer(x, w_q, w_k, w_v, torch.ones_like(mask))
    same(
        open_,
        (plain / d_k**0.5).softmax(-1) @ v,
        "self_attention with a mask that hides nothing",
        {"the mask was not asked: it is causal although nothing should be hidden":
            read(plain / d_k**0.5)},
        axes="batch token d_v",
    )  # fmt: skip
    may = some(n, n) > 0
    may[torch.arange(n), torch.randperm(n, generator=torch.Generator().manual_seed(seed))] = True
    low, q_low, k_low = x.clone(), w_q.clone(), w_k.clone()
    low[..., 0], q_low[0], k_low[0], q_low[:, 0], k_low[:, 0] = 1, 0, 0, 0, 0
    q_low[0, 0] = (200 * d_k**0.5) ** 0.5
    k_low[0, 0] = -q_low[0, 0]
    far = low @ q_low @ (low @ k_low).mT / d_k**0.5  # -200, more or less
    same(
        answer(low, q_low, k_low, w_v, may),
        far.masked_fill(~may, -torch.inf).softmax(-1) @ (low @ w_v),
        "self_attention, where scores are far below 0,",
        {
            "hidden scores need minus infinity; a number like -100 may be larger than others":
                far.masked_fill(~may, -100).softmax(-1) @ (low @ w_v),
            "only the number of words was read off the mask, not which":
                far.masked_fill(torch.arange(n) >= may.sum(1, keepdim=True), -torch.inf).softmax(-1)
                @ (low @ w_v),
        },
        axes="batch token d_v",
    )  # fmt: skip
    same(
        answer(x, w_q, w_k, w_v, may),
        (plain / d_k**0.5).masked_fill(~may, -torch.inf).softmax(-1) @ v,
        "self_attention with a mask of holes",
        {
            "only the number of words was read off the mask, not which":
                (plain / d_k**0.5).masked_fill(
                    torch.arange(n) >= may.sum(1, keepdim=True), -torch.inf
                ).softmax(-1) @ v,
        },
        axes="batch token d_v",
    )  # fmt: skip
    right("self_attention", got, seed, 0, -1)


@check({"n": 1, "d": 2}, {"n": 30, "d": 12}, own=OWN)
def position_vectors(answer: Answer, seed: int = 0, n: int = 7, d: int = 6) -> None:
    """Sines and cosines of slower and slower waves."""
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
    """The mistake of an angle for each number instead of one for each pair."""
    i = torch.arange(d)
    angles = steps / 10000 ** (i / d)
    return torch.where(i % 2 == 0, angles.sin(), angles.cos())


@check({"sizes": (1, 3)}, {"sizes": (2, 1)}, {"sizes": (5, 4)}, {"sizes": (3, 9)}, own=OWN)
def rotate(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 5)) -> None:
    """Each pair of numbers turned by an angle that grows with the position."""
    batch, n = sizes
    some = numbers(seed)
    x, angle = some(batch, n, 2), pick(seed, 0.7, -1.1, 0.3, 2.0)
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
    """What ALiBi adds to a score: less, the further back a key lies."""
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
