"""Checks of assignment 5, middle part: sampling the next token."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.model import sampling
from attnbook.teach.asking import check
from attnbook.teach.judging import constant, numbers, right, same

Answer = Callable[..., Any]
HIDDEN = -torch.inf


@check({"sizes": (1, 4)}, {"sizes": (3, 1)})
def warm(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 6)) -> None:
    """Probabilities at a temperature; at 0 the most likely token is certain."""
    logits = 2 * numbers(seed)(*sizes)
    t = 0.4 + seed % 3
    p = logits.softmax(-1)
    got = same(
        answer(logits, t),
        (logits / t).softmax(-1),
        "warm",
        {
            "it is multiplied by t; it should be divided": (logits * t).softmax(-1),
            "probabilities were divided; the logits should be": p / t,
            "the softmax was taken twice: t belongs on the logits": (p / t).softmax(-1),
            "t is not used": p,
            "it runs over the rows; each row is a distribution": (logits / t).softmax(0),
            "these are logits; take the softmax": logits / t,
            "t + 1 divides; it should be t": (logits / (t + 1)).softmax(-1),
            "these are logarithms of probabilities": (logits / t).log_softmax(-1),
            "probabilities have the power 1 / t, but do not sum to 1": p ** (1 / t),
            "the root of t divides; it should be t": (logits / t**0.5).softmax(-1),
        },
        axes="row token",
    )
    cold = torch.nn.functional.one_hot(logits.argmax(-1), sizes[-1]).float()
    same(
        answer(logits, 0),
        cold,
        "warm at t = 0",
        {
            "0 divided by 0: treat t = 0 apart": torch.full(sizes, torch.nan),
            "at 0 the likeliest should be certain, not all alike": torch.full(sizes, 1 / sizes[-1]),
            "at 0 it should be as cold as can be, not as it was": p,
            "at 0 the likeliest should have probability 1": torch.zeros(sizes),
            "each row has a likeliest token; here the whole batch has one": (
                logits == logits.max()
            ).float(),
            "these are the likeliest ids; probabilities are asked for": logits.argmax(-1),
        },
        axes="row token",
    )
    same(answer(logits, 1e-4), cold, "warm at t = 0.0001", axes="row token")
    right("warm", got, seed, 0)


@check(
    {"sizes": (1, 4), "k": 1},
    {"sizes": (2, 5), "k": 5},
    {"sizes": (2, 3), "k": 6},
    leaves={0: "logits"},
)
def keep_k(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 7), k: int = 3) -> None:
    """Top-k: all but the k most likely tokens get probability 0."""
    logits = numbers(seed)(*sizes)
    order = logits.argsort(-1, descending=True)
    best = logits.topk(min(k, sizes[1])).values

    def kept(which: Tensor) -> Tensor:
        return torch.full_like(logits, HIDDEN).scatter(-1, which, logits.gather(-1, which))

    got = same(
        answer(logits, k),
        kept(order[:, :k]),
        "keep_k",
        {
            "the least likely are kept": kept(order[:, -k:]),
            "one too few is kept": kept(order[:, : k - 1]),
            "one too many is kept": kept(order[:, : k + 1]),
            "what is left out gets 0, which is a logit like others: it needs minus infinity":
                kept(order[:, :k]).masked_fill(kept(order[:, :k]).isinf(), 0),
            "the first k tokens are kept, not the likeliest":
                kept(torch.arange(min(k, sizes[1])).expand(sizes[0], -1)),
            "the likeliest are left out; all others should be": kept(order[:, k:]),
            "only the likeliest one is kept": kept(order[:, :1]),
            "the rows share one limit; each has its own":
                logits.masked_fill(logits < best[:, -1:].min(), HIDDEN),
            "the k likeliest of the whole batch are kept; each row has its own":
                logits.masked_fill(logits < logits.flatten().topk(k).values[-1], HIDDEN),
            "the k likeliest rows of each token are kept; tokens are columns":
                logits.masked_fill(logits < logits.topk(min(k, sizes[0]), 0).values[-1:], HIDDEN),
            "a large negative number stands where minus infinity should":
                logits.masked_fill(logits < best[:, -1:], -1e9),
            "tokens are sorted; each should keep its place":
                torch.cat([best, torch.full_like(logits[:, k:], HIDDEN)], -1),
            "nothing is left out": logits,
            "these are ids; logits are asked for": order[:, :k],
            "these are True and False; logits are asked for": logits >= best[:, -1:],
            "1 stands where the logit should":
                torch.where(logits >= best[:, -1:], 1.0, HIDDEN),
            "these are probabilities; logits are asked for": kept(order[:, :k]).softmax(-1),
            "only the k numbers are returned; all tokens should keep their place":
                logits.gather(-1, order[:, :k]),
        },
        axes="row token",
    )  # fmt: skip
    right("keep_k", got.clamp(min=-99), seed, 0)


@check({"sizes": (1, 6), "p": 0.1}, {"sizes": (3, 5), "p": 0.99}, leaves={0: "logits"})
def keep_p(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (4, 9), p: float = 0.7) -> None:
    """Top-p: the fewest tokens whose probabilities sum to at least p."""
    logits = 2 * numbers(seed)(*sizes)
    want = sampling.top_p(logits, p)
    shares, order = logits.softmax(-1).sort(-1, descending=True)
    sums = shares.cumsum(-1)

    def kept(left: Tensor) -> Tensor:
        keep = torch.zeros_like(left).scatter(-1, order, left)
        return logits.masked_fill(~keep, HIDDEN)

    up, rising = logits.softmax(-1).sort(-1)
    tail = torch.zeros_like(up, dtype=torch.bool).scatter(-1, rising, up.cumsum(-1) <= p)

    def kept_up(left: Tensor) -> Tensor:
        return logits.masked_fill(~torch.zeros_like(left).scatter(-1, rising, left), HIDDEN)

    got = same(
        answer(logits, p),
        want,
        "keep_p",
        {
            "the token that passes p is left out: those that stay must reach p": kept(sums <= p),
            "the unlikely tokens are kept": logits.masked_fill(~tail, HIDDEN),
            "tokens are kept whose own probability is above p":
                logits.masked_fill(logits.softmax(-1) < p, HIDDEN),
            "tokens are kept whose own probability is above 1 - p":
                logits.masked_fill(logits.softmax(-1) < 1 - p, HIDDEN),
            "the sum runs in the order of the ids; begin with the likeliest":
                logits.masked_fill(logits.softmax(-1).cumsum(-1) - logits.softmax(-1) >= p, HIDDEN),
            "the mask was not brought back to the order of the ids":
                logits.masked_fill(~(sums - shares < p), HIDDEN),
            "one token too many stays":
                kept(torch.cat([torch.ones(sizes[0], 1, dtype=torch.bool),
                                (sums - shares < p)[:, :-1]], -1)),
            "what is left out gets 0; it needs minus infinity":
                want.masked_fill(want.isinf(), 0),
            "a large negative number stands where minus infinity should":
                want.masked_fill(want.isinf(), -1e9),
            "these are probabilities; logits are asked for": want.softmax(-1),
            "these are probabilities; logits are asked for ": logits.softmax(-1).where(
                ~want.isinf(), torch.tensor(HIDDEN)
            ),
            "what should stay is left out": kept(sums > p),
            "what should stay is left out ": kept(sums >= p),
            "what should stay is left out  ": logits.masked_fill(~want.isinf(), HIDDEN),
            "the unlikely tokens are kept; begin with the likeliest":
                kept_up(up.cumsum(-1) - up < p),
            "the tokens that reach 1 - p are kept; it should be p": kept(sums - shares < 1 - p),
            "the token that passes p is left out: those that stay must reach p ":
                kept((sums < p) | (torch.arange(sizes[1]) == 0)),
            "the limit is a share of the largest probability (min-p); add probabilities up":
                logits.masked_fill(logits.softmax(-1) < p * shares[:, :1], HIDDEN),
            "logits are added up; take the softmax first":
                kept(logits.sort(-1, descending=True).values.cumsum(-1) <= p),
            "tokens are sorted; each should keep its place":
                logits.gather(-1, order).masked_fill(sums - shares >= p, HIDDEN),
            "the mask was brought back the wrong way: use scatter, or gather with order.argsort()":
                logits.masked_fill(~(sums - shares < p).gather(-1, order), HIDDEN),
            "nothing is left out": logits,
        },
        axes="row token",
    )  # fmt: skip
    # Their sums are exactly 0.5 and 0.75 in float32, and in float64 a little more: reached in both.
    exact = torch.tensor([1 / 2, 1 / 4, 3 / 16, 1 / 16 - 2**-26])
    limit = constant(seed, 0.5, 0.75)
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed))
    logits = exact.log()[order][None]
    sums = logits.softmax(-1).sort(descending=True).values.cumsum(-1)[0]
    if sums[:2].tolist() == [0.5, 0.75]:  # some processors may round otherwise
        same(
            answer(logits, limit),
            logits.masked_fill(exact[order] < (0.5 if limit == 0.5 else 0.25), HIDDEN),
            "keep_p, where a sum is exactly p,",
            {
                "a sum that is p has reached it: one token too many stays":
                    logits.masked_fill(exact[order] < (0.25 if limit == 0.5 else 0.1), HIDDEN),
                "a sum that is p has reached it: its last token stays, too":
                    logits.masked_fill(exact[order] < (1 if limit == 0.5 else 0.5), HIDDEN),
            },
            axes="row token",
        )  # fmt: skip
    right("keep_p", got.clamp(min=-99), seed, 0)


@check({"n": 1}, {"n": 2})
def draw(answer: Answer, seed: int = 0, n: int = 6) -> None:
    """The tokens whose parts of the interval 0 .. 1 contain numbers."""
    shares = (2 * numbers(seed)(n)).softmax(-1).double()
    sums = shares.cumsum(-1)
    u = [*(sums[:-1] - 0.3 * shares[:-1]).tolist(), *(sums[:-1] + 0.3 * shares[1:]).tolist(), 0.0]
    want = torch.tensor([int((sums <= x).sum()) for x in u])
    best, ranks = shares.sort(descending=True)
    by_rank = torch.tensor([int(ranks[int((best.cumsum(-1) <= x).sum())]) for x in u])
    back = shares.flip(0).cumsum(-1)
    backwards = torch.tensor([n - 1 - min(int((back <= x).sum()), n - 1) for x in u])
    got = same(
        answer(shares, torch.tensor(u, dtype=torch.float64)),
        want,
        "draw",
        {
            "each token has a number; each u should have one":
                torch.tensor([sum(float(s) <= x for x in u) for s in sums]),
            "there is one id; each u should have one": want[:1],
            "the likeliest is always taken": shares.argmax().expand(len(u)),
            "it is one token too far": (want + 1).clamp(max=n - 1),
            "it is the token before": (want - 1).clamp(min=0),
            "it is one token too far ": want + 1,
            "it is the token before ": want - 1,
            "it counts the borders above u; count those at or below it":
                torch.tensor([int((sums > x).sum()) for x in u]),
            "it is a rank among the sorted probabilities, not an id":
                torch.tensor([int((best.cumsum(-1) <= x).sum()) for x in u]),
            "a softmax was taken of what are probabilities already":
                torch.tensor([int((shares.softmax(-1).cumsum(-1) <= x).sum()) for x in u]),
            "probabilities are compared with u; their sums should be":
                torch.tensor([int((shares <= x).sum()) for x in u]),
            "it is the border next to u; take the piece on which u falls":
                torch.tensor([int((sums - x).abs().argmin()) for x in u]),
            "pieces lie in the order of the probabilities; take that of the ids": by_rank,
            "pieces begin at the last token; begin at the first": backwards,
            "u is counted in tokens: all tokens are as likely":
                torch.tensor([int(x * n) for x in u]),
            "it is the token whose probability is next to u":
                torch.tensor([int((shares - x).abs().argmin()) for x in u]),
        },
        axes="draw",
    )  # fmt: skip
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed)).tolist()
    some = [(0.5, 0.0, 0.25, 0.25)[i] for i in order]
    shares = torch.tensor([0.0, *some, 0.0], dtype=torch.float64)  # their sums are exact
    sums = shares.cumsum(-1)
    borders = sorted({0.0, *sums[:-2].tolist()} - {1.0})
    want = torch.tensor([int((sums <= x).sum()) for x in borders])
    same(
        answer(shares, torch.tensor(borders, dtype=torch.float64)),
        want,
        "draw, on the borders between pieces,",
        {"a border belongs to the piece behind it: a token of probability 0 is never drawn":
            torch.tensor([int((sums < x).sum()) for x in borders])},
        axes="draw",
    )  # fmt: skip
    right("draw", got.float(), seed)
