"""Checks of assignment 2: self-attention, scaling, masks, leaks and positions.

Each check calls the student's function with seeded random tensors and prints one line.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.teach.a1_step import FILL, OWN
from attnbook.teach.a2_leaks import influences
from attnbook.teach.a2_positions import distance_bias, position_vectors, rotate
from attnbook.teach.asking import check, gradient
from attnbook.teach.judging import holds, numbers, parts, right, same

__all__ = [
    "causal_mask",
    "decoder_mask",
    "distance_bias",
    "influences",
    "position_vectors",
    "project",
    "rotate",
    "scaled_scores",
    "self_attention",
]

Answer = Callable[..., Any]


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
        got = same(got, x @ w, f"the {name} of project", wrong, axes="batch word d")
        right(f"project, {name}", got, seed, 0, 0)


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (3, 1, 1, 2)}, own=OWN)
def scaled_scores(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """Dot products divided by sqrt(d_k)."""
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
    """True where a word may attend: to itself and to its left."""
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
    """The causal mask and the padding mask combined."""
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
        axes="batch query key",
    )  # fmt: skip
    right("decoder_mask", got.float(), seed, 0, -1)


def _loud(answer: Answer, x: Tensor, matrices: tuple[Tensor, ...], mask: Tensor) -> None:
    """Check that a hidden word has no effect, although its score is far above all others."""
    w_q, w_k, w_v = matrices
    d_k = w_k.shape[1]
    high, q_high, k_high = x.clone(), w_q.clone(), w_k.clone()
    high[..., 0], q_high[0], k_high[0], q_high[:, 0], k_high[:, 0] = 1, 0, 0, 0, 0
    high[:, -1, 0] = 10**6  # the last word's key, which the others must not see
    q_high[0, 0], k_high[0, 0] = 1, d_k**0.5
    loud = (high @ q_high @ (high @ k_high).mT / d_k**0.5).masked_fill(~mask, -torch.inf)
    same(
        answer(high, q_high, k_high, w_v, mask),
        loud.softmax(-1) @ (high @ w_v),
        "self_attention, where a hidden score is far above all others,",
        {},
        axes="batch word d_v",
    )


def _low(answer: Answer, x: Tensor, matrices: tuple[Tensor, ...], mask: Tensor) -> None:
    """Check scores of -1,000,000, equal to the last bit, so that rounding changes no weight."""
    w_q, w_k, w_v = matrices
    alike, q_low = x.clone(), torch.zeros_like(w_q)
    alike[..., 0], q_low[0, 0] = 1, (10**6 * w_k.shape[1] ** 0.5) ** 0.5
    same(
        answer(alike, q_low, -q_low, w_v, mask),
        mask / mask.sum(-1, keepdim=True) @ (alike @ w_v),
        "self_attention, where all scores are -1,000,000,",
        {"hidden scores need minus infinity; a number like -1,000 may be larger than others":
            alike.new_zeros(mask.shape).masked_fill(~mask, 4000).softmax(-1) @ (alike @ w_v)},
        axes="batch word d_v",
    )  # fmt: skip


def _holes(answer: Answer, x: Tensor, matrices: tuple[Tensor, ...], may: Tensor) -> None:
    """Check masks of holes, another for each sentence, and a word that may look at nothing."""
    w_q, w_k, w_v = matrices
    may = may.clone()
    may[0, -1] = False
    x = x.clone().requires_grad_()
    plain, v = x @ w_q @ (x @ w_k).mT / w_k.shape[1] ** 0.5, x @ w_v

    def read(may: Tensor, least: float = -torch.inf) -> Tensor:
        return plain.masked_fill(~may, least).softmax(-1) @ v

    first = torch.arange(may.shape[-1]) < may.sum(-1, keepdim=True)
    want = plain.masked_fill(~may, -torch.inf).softmax(-1).masked_fill(~may, 0) @ v
    same(
        answer(x.detach(), w_q, w_k, w_v, may),
        want,
        "self_attention with a mask of holes",
        {
            "a word that may look at nothing gives NaN; it should read zeros": read(may),
            "a word that may look at nothing reads all; it should read zeros": read(may, -1e9),
            "only the number of words was read off the mask, not which":
                read(first).nan_to_num(),
            "only the number of words was read off the mask, not which ": read(first),
        },
        axes="batch word d_v",
    )  # fmt: skip
    arrives = want.detach().cos()
    (wanted,) = torch.autograd.grad((want * arrives).sum(), x)
    back = gradient(answer, arrives, x.detach(), w_q, w_k, w_v, may)
    holds(
        not back.isnan().any(),
        "self_attention: what is read is right, but its gradient is NaN where a word may look at"
        f" nothing. {FILL}",
    )
    same(back, wanted, "the gradient that self_attention passes on to x", axes="batch word d_model")


@check({"sizes": (1, 2, 3, 1, 1)}, {"sizes": (2, 3, 1, 2, 1)}, own=OWN)
def self_attention(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 5, 4, 3, 6)) -> None:
    """Self-attention as a whole: from word vectors to outputs."""
    batch, n, d_model, d_k, d_v = sizes
    some = numbers(seed)
    x = some(batch, n, d_model)
    w_q, w_k, w_v = some(d_model, d_k), some(d_model, d_k), some(d_model, d_v)
    mask = torch.ones(batch, n, n, dtype=torch.bool).tril()
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
                (plain / d_k**0.5).masked_fill(~mask.mT, -torch.inf).softmax(-1) @ v,
        },
        axes="batch word d_v",
    )  # fmt: skip
    open_ = answer(x, w_q, w_k, w_v, torch.ones_like(mask))
    same(
        open_,
        (plain / d_k**0.5).softmax(-1) @ v,
        "self_attention with a mask that hides nothing",
        {"the mask was not asked: it is causal although nothing should be hidden":
            read(plain / d_k**0.5)},
        axes="batch word d_v",
    )  # fmt: skip
    may = some(batch, n, n) > 0
    some_order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    may[:, torch.arange(n), some_order] = True
    low, q_low, k_low = x.clone(), w_q.clone(), w_k.clone()
    low[..., 0], q_low[0], k_low[0], q_low[:, 0], k_low[:, 0] = 1, 0, 0, 0, 0
    q_low[0, 0] = (200 * d_k**0.5) ** 0.5
    k_low[0, 0] = -q_low[0, 0]
    far = low @ q_low @ (low @ k_low).mT / d_k**0.5  # about -200
    same(
        answer(low, q_low, k_low, w_v, may),
        far.masked_fill(~may, -torch.inf).softmax(-1) @ (low @ w_v),
        "self_attention, where scores are far below 0,",
        {
            "hidden scores need minus infinity; a number like -100 may be larger than others":
                far.masked_fill(~may, -100).softmax(-1) @ (low @ w_v),
            "every sentence has the mask of the first":
                far.masked_fill(~may[:1], -torch.inf).softmax(-1) @ (low @ w_v),
            "only the number of words was read off the mask, not which":
                far.masked_fill(
                    torch.arange(n) >= may.sum(-1, keepdim=True), -torch.inf
                ).softmax(-1) @ (low @ w_v),
        },
        axes="batch word d_v",
    )  # fmt: skip
    _loud(answer, x, (w_q, w_k, w_v), mask)
    _low(answer, x, (w_q, w_k, w_v), mask)
    _holes(answer, x, (w_q, w_k, w_v), may)
    right("self_attention", got, seed, 0, -1)
