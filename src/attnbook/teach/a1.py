"""Checks of assignment 1: from states to scores, weights, and one step of a decoder with attention.

Each check calls the student's function with seeded random tensors and prints one line.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.teach.a1_step import FILL, OWN, attention_error, context, decoder_step
from attnbook.teach.asking import check, gradient
from attnbook.teach.judging import holds, numbers, right, same

__all__ = [
    "additive_scores",
    "attention_error",
    "attention_weights",
    "context",
    "decoder_step",
    "dot_scores",
    "general_scores",
    "last_states",
]

Answer = Callable[..., Any]


@check({"lengths": (1,)}, own=OWN)
def last_states(answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (2, 5, 3)) -> None:
    """The state at the last word of each sentence, before any padding."""
    n = torch.tensor(lengths)
    states = numbers(seed)(len(lengths), max(lengths), 4)
    rows = torch.arange(len(lengths))
    got = same(
        answer(states, n),
        states[rows, n - 1],
        "last_states",
        {
            "these are the states at the end of the tensor, which for short sentences is padding":
                states[:, -1],
            "these are the first states": states[:, 0],
            "these are the states one word before the last: counting begins at 0":
                states[rows, n - 2],
            "these are the states one place behind the last word: counting begins at 0":
                states[rows, n.clamp(max=max(lengths) - 1)],
            "these are means over all places, padding too": states.mean(1),
            "these are means over the words of a sentence; the last one alone is asked for":
                torch.stack([row[:m].mean(0) for row, m in zip(states, lengths, strict=True)]),
            "these are states of the first sentence": states[0, n - 1],
            "counted from the end of the tensor; lengths count from its start": states[rows, -n],
            "every sentence has the places of all: index both axes, sentence i with length i":
                states[:, n - 1],
        },
        axes="batch d_model",
    )  # fmt: skip
    right("last_states", got, seed, 0)


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (3, 1, 1, 2)}, own=OWN)
def dot_scores(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """How well each query fits each key: their dot product."""
    batch, queries, keys, d = sizes
    some = numbers(seed)
    q, k = some(batch, queries, d), some(batch, keys, d)
    want = torch.einsum("bqd,bkd->bqk", q, k)
    got = same(
        answer(q, k),
        want,
        "dot_scores",
        {
            "rows are keys, columns are queries; it should be the other way round": want.mT,
            "they are divided by the root of d, which this task does not ask for": want / d**0.5,
            "a softmax was taken already, which is a later task": want.softmax(-1),
            "they are cosines: the vectors were made as long as 1":
                want / q.norm(dim=-1)[..., None] / k.norm(dim=-1)[:, None],
            "they are distances, not products": torch.cdist(q, k),
            "they are distances, not products ": -torch.cdist(q, k),
            "they are distances, not products  ": torch.cdist(q, k) ** 2,
            "they are means of products; add the products up": want / d,
            "every sentence of the batch uses the keys of the first":
                torch.einsum("bqd,kd->bqk", q, k[0]),
            "the products of the numbers are not added up": q[:, :, None] * k[:, None],
        },
        axes="batch query key",
    )  # fmt: skip
    right("dot_scores", got, seed, 0, 0)


@check({"sizes": (1, 1, 3, 1, 2)}, {"sizes": (3, 1, 1, 2, 1)}, own=OWN)
def general_scores(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4, 6)) -> None:
    """Luong's general score: query times a matrix times key."""
    batch, queries, keys, d_query, d_key = sizes
    some = numbers(seed)
    q, k, w = some(batch, queries, d_query), some(batch, keys, d_key), some(d_query, d_key)
    want = torch.einsum("bqi,ij,bkj->bqk", q, w, k)
    square = some(d_query, d_query)
    twin = some(batch, keys, d_query)
    got = same(
        answer(q, k, w),
        want,
        "general_scores",
        {
            "rows are keys, columns are queries; it should be the other way round": want.mT,
            "they are divided by a root, which this task does not ask for": want / d_key**0.5,
            "they are divided by a root, which this task does not ask for ": want / d_query**0.5,
            "the matrix is added up: only its sums come in":
                torch.einsum("bqi,ij,bkl->bqk", q, w, k),
            "a tanh was taken, which belongs to the additive score": want.tanh(),
            "a softmax was taken already, which is a later task": want.softmax(-1),
            "every sentence of the batch uses the keys of the first":
                torch.einsum("bqi,ij,kj->bqk", q, w, k[0]),
            "the keys are missing: these are the queries, mapped": q @ w,
        },
        axes="batch query key",
    )  # fmt: skip
    same(
        answer(q, twin, square),
        torch.einsum("bqi,ij,bkj->bqk", q, square, twin),
        "general_scores",
        {
            "W is transposed: the query stands on its left, the key on its right": lambda: (
                torch.einsum("bqi,ji,bkj->bqk", q, square, twin)
            )
        },
        axes="batch query key",
    )
    right("general_scores", got, seed, 0, 0)


@check({"sizes": (1, 1, 3, 1, 2, 4)}, {"sizes": (3, 1, 1, 2, 3, 1)}, own=OWN)
def additive_scores(
    answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4, 7, 6)
) -> None:
    """Bahdanau's score: a small network reads query and key."""
    batch, queries, keys, d_query, d_key, d_hidden = sizes
    some = numbers(seed)
    q, k = some(batch, queries, d_query), some(batch, keys, d_key)
    w1, w2, v = some(d_hidden, d_key), some(d_hidden, d_query), some(d_hidden)
    asked, offered = (q @ w2.T)[:, :, None], (k @ w1.T)[:, None]
    inner = asked + offered
    got = same(
        answer(q, k, w1, w2, v),
        inner.tanh() @ v,
        "additive_scores",
        {
            "the tanh is missing": inner @ v,
            "the tanh stands outside: it belongs before the product with v": (inner @ v).tanh(),
            "a ReLU stands where the tanh should": inner.relu() @ v,
            "v is missing: the hidden numbers are added up": inner.tanh().sum(-1),
            "v is missing: the hidden numbers are averaged": inner.tanh().mean(-1),
            "v is missing: there is one number for each hidden unit": inner.tanh(),
            "query and key each have a tanh of their own; first add them":
                (asked.tanh() + offered.tanh()) @ v,
            "query and key are multiplied; they should be added": (asked * offered).tanh() @ v,
            "a sigmoid stands where the tanh should": inner.sigmoid() @ v,
            "a softmax was taken already, which is a later task": (inner.tanh() @ v).softmax(-1),
            "rows are keys, columns are queries; it should be the other way round":
                (inner.tanh() @ v).mT,
        },
        axes="batch query key",
    )  # fmt: skip
    twin, turned = some(batch, keys, d_query), some(d_hidden, d_query)  # now both fit both
    same(
        answer(q, twin, turned, w2, v),
        (asked + (twin @ turned.T)[:, None]).tanh() @ v,
        "additive_scores, where query and key are of one size,",
        {
            "W_1 and W_2 are exchanged: W_1 maps the key, W_2 the query": lambda: (
                ((q @ turned.T)[:, :, None] + (twin @ w2.T)[:, None]).tanh() @ v
            )
        },
        axes="batch query key",
    )
    right("additive_scores", got, seed, 0, 0)


def _trainable(answer: Answer, scores: Tensor, may: Tensor, want: Tensor, seed: int) -> None:
    """Check that the gradient at the scores is right, and no NaN where nothing may be seen."""
    arrives = numbers(seed + 1)(*want.shape)
    back = gradient(answer, arrives, scores, may)
    holds(
        not back.isnan().any(),
        "attention_weights: the weights are right, but their gradient is NaN where a query may"
        f" attend to nothing, and one such row ends a training. {FILL}",
    )
    mean = (want * arrives).sum(-1, keepdim=True)
    same(
        back,
        want * (arrives - mean),
        "the gradient that attention_weights passes on to the scores",
        axes="batch query key",
    )


@check({"sizes": (1, 2, 3)}, {"sizes": (2, 3, 1)}, own=OWN)
def attention_weights(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 4, 5)) -> None:
    """A softmax over the keys that the mask allows; True means that a key may be attended to."""
    batch, queries, keys = sizes
    some = numbers(seed)
    scores = some(batch, queries, keys)
    may = some(batch, queries, keys) > -0.3
    may[..., 0], may[0, 1] = True, False  # one query may attend to nothing
    hidden = scores.masked_fill(~may, -torch.inf)
    want = hidden.softmax(-1).nan_to_num()
    open_ = scores.softmax(-1)

    def sums(got: Tensor) -> str:
        found = got.sum(-1)[may.any(-1)]
        worst = found[(found - 1).abs().argmax()].item()
        words = f"a row sums to {worst:.2f}, not to 1. Did you take the softmax over the keys?"
        return words if abs(worst - 1) > 1e-3 else ""

    got = same(
        answer(scores, may),
        want,
        "attention_weights",
        {
            "the softmax runs over the queries; it should run over the keys": scores.softmax(-2),
            "the softmax runs over the queries; it should run over the keys ":
                scores.softmax(-2) * may,
            "the mask is not used": open_,
            "weights were set to 0 after the softmax: rows no longer sum to 1, hidden scores still "
            "count. Set the scores to minus infinity before": open_ * may,
            "the mask is turned round: True means that a query may attend":
                scores.masked_fill(may, -torch.inf).softmax(-1).nan_to_num(),
            "the mask is turned round: True means that a query may attend ":
                scores.masked_fill(may, -1e9).softmax(-1),
            "the mask is turned round: True means that a query may attend  ":
                scores.masked_fill(may, -torch.inf).softmax(-1),
            "the mask was added as 1 and 0; hidden scores need minus infinity":
                (scores + may).softmax(-1),
            "the softmax was taken twice": want.softmax(-1),
            "scores are divided by a root, which this task does not ask for":
                (hidden / keys**0.5).softmax(-1).nan_to_num(),
            "these are logarithms of weights": hidden.log_softmax(-1),
            "scores were set to 0 where the mask is False; a score of 0 still gets weight":
                (scores * may).softmax(-1),
            "a query that may attend to nothing gives NaN; it should give zeros":
                hidden.softmax(-1),
            "a query that may attend to nothing attends to all; it should give zeros":
                scores.masked_fill(~may, -1e9).softmax(-1),
        },
        otherwise=sums,
        axes="batch query key",
    )  # fmt: skip
    holds(
        not got[~may].any(),
        "attention_weights: hidden keys have small weights; they must be exactly 0. Set their"
        " scores to minus infinity",
    )
    for size in (200, 1000, -1000, 10**6, -(10**6)):
        large = answer(scores + size, may)
        holds(
            not (isinstance(large, Tensor) and large.isnan().any()),
            "attention_weights of large scores must hold numbers, got NaN: the exponential of a"
            f" score like {size:,} is {'infinite' if size > 0 else 0}. PyTorch's softmax takes care"
            " of that",
        )
        same(
            large,
            (scores + size).masked_fill(~may, -torch.inf).softmax(-1).nan_to_num(),
            f"attention_weights of large scores, like {size:,},",
            {
                "hidden scores need minus infinity; a number like -100 may be larger than others":
                    (scores + size).masked_fill(~may, -100).softmax(-1) * may,
            },
            axes="batch query key",
        )  # fmt: skip
    for size in (200, 10**6):
        loud = scores.masked_fill(~may, size)
        powers = (loud - loud.amax(-1, keepdim=True)).exp() * may
        same(
            answer(loud, may),
            want,
            f"attention_weights, with hidden scores of {size:,},",
            {
                "a hidden score, the largest, still counts; hide them first: fill minus infinity"
                " in": powers / powers.sum(-1, keepdim=True).clamp(min=1e-20),
                "the largest score was taken among hidden ones, too; hide them first":
                    powers / powers.sum(-1, keepdim=True),
            },
            axes="batch query key",
        )  # fmt: skip
    _trainable(answer, scores, may, want, seed)
    right("attention_weights", got, seed, -1, 0)
