"""Checks of assignment 1, last part: the context, one decoder step, and alignment errors."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.model.masks import padding_mask
from attnbook.teach.asking import check
from attnbook.teach.judging import number, numbers, parts, right, same

Answer = Callable[..., Any]


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (3, 1, 1, 2)})
def context(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """The weighted mean of the values."""
    batch, queries, keys, d = sizes
    some = numbers(seed)
    weights, values = some(batch, queries, keys).softmax(-1), some(batch, keys, d)
    best = weights.argmax(-1)
    got = same(
        answer(weights, values),
        torch.einsum("bqk,bkd->bqd", weights, values),
        "context",
        {
            "all values count alike; they should count by their weights":
                values.mean(1, keepdim=True).expand(-1, queries, -1),
            "all values count alike; they should count by their weights ":
                values.sum(1, keepdim=True).expand(-1, queries, -1),
            "values are weighted, but not added up": weights[..., None] * values[:, None],
            "only the value of the largest weight is taken; all should count":
                values.take_along_dim(best[..., None], 1),
            "it is divided by the number of keys; the weights sum to 1 already":
                torch.einsum("bqk,bkd->bqd", weights, values) / keys,
            "a softmax was taken of weights that are weights already":
                torch.einsum("bqk,bkd->bqd", weights.softmax(-1), values),
            "every sentence of the batch uses the values of the first":
                torch.einsum("bqk,kd->bqd", weights, values[0]),
        },
        axes="batch query d_value",
    )  # fmt: skip
    weights[:, 0] = 0
    want = torch.einsum("bqk,bkd->bqd", weights, values)
    same(
        answer(weights, values),
        want,
        "context, where all weights of a query are 0,",
        {"0 divided by 0: weights are not divided by their sum":
            want.masked_fill((weights == 0).all(-1, keepdim=True), torch.nan)},
        axes="batch query d_value",
    )  # fmt: skip
    right("context", got, seed, 0, 0)


def _extreme(answer: Answer, state: Tensor, memory: Tensor, mask: Tensor) -> None:
    """Check scores of about -200 for words, and of about -200 or 1,000 for padding."""
    root = state.shape[-1] ** 0.5
    c = (200 * root) ** 0.5
    state, memory = state.clone(), memory.clone()
    state[:, 0] = c
    for case, padding in {"scores are far below 0": -c, "padding is far above 0": 5 * c}.items():
        memory[..., 0] = torch.where(mask, -c, padding)
        scores = torch.einsum("bd,bkd->bk", state, memory) / root
        powers = (scores - scores.amax(-1, keepdim=True)).exp() * mask
        _, weights = parts(answer(state, memory, mask), 2, "decoder_step must return two tensors")
        same(
            weights,
            scores.masked_fill(~mask, -torch.inf).softmax(-1),
            f"the weights of decoder_step, where {case},",
            {
                "scores of padding need minus infinity; a number like -100 may be larger than"
                " others": scores.masked_fill(~mask, -20).softmax(-1),
                "the largest score was taken among padding, too; hide it first":
                    powers / powers.sum(-1, keepdim=True),
            },
            axes="batch source",
        )  # fmt: skip


@check({"lengths": (3,), "d": 2}, {"lengths": (1, 1), "d": 1})
def decoder_step(
    answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (3, 5), d: int = 4
) -> None:
    """One attention step of a decoder: from state and memory to context and weights."""
    some = numbers(seed)
    source = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, n in enumerate(lengths):
        source[row, :n] = 1
    state, memory, mask = (
        some(len(lengths), d),
        some(len(lengths), max(lengths), d),
        padding_mask(source, 0),
    )
    scores = torch.einsum("bd,bkd->bk", state, memory)

    def looked(scores: Tensor) -> Tensor:
        return torch.einsum("bk,bkd->bd", scores.softmax(-1), memory)

    hidden = scores.masked_fill(~mask, -torch.inf)
    found = answer(state, memory, mask)
    parts(found, 2, "decoder_step must return two tensors: the context, and the weights")
    got = same(
        found[0],
        looked(hidden / d**0.5),
        "the context of decoder_step",
        {
            "scores are not divided by the root of d": looked(hidden),
            "scores are divided by d, not by its root": looked(hidden / d),
            "padding is attended to: the mask is not used": looked(scores / d**0.5),
            "padding is attended to, and scores are not divided": looked(scores),
            "the softmax is divided by the root of d; its scores should be":
                looked(hidden) / d**0.5,
            "context and weights are exchanged": lambda: (hidden / d**0.5).softmax(-1),
            "the mask is turned round: it is True at words":
                looked(scores.masked_fill(mask, -torch.inf) / d**0.5),
            "the mask is turned round: it is True at words ":
                looked(scores.masked_fill(mask, -1e9) / d**0.5),
            "weights were set to 0 after the softmax; set scores to minus infinity before it":
                torch.einsum("bk,bkd->bd", (scores / d**0.5).softmax(-1) * mask, memory),
            "scores were set to 0 where the mask is False; a score of 0 still gets weight":
                looked(scores * mask / d**0.5),
            "scores are divided by the root of the number of words, not of d":
                looked(hidden / max(lengths) ** 0.5),
            "it is a mean over the places; the weights sum to 1 already":
                looked(hidden / d**0.5) / max(lengths),
            "the softmax runs over the sentences; it should run over the words": torch.einsum(
                "bk,bkd->bd", (hidden / d**0.5).softmax(0), memory
            ),
            "the state is added; only what was read is asked for":
                state + looked(hidden / d**0.5),
        },
        axes="batch d_model",
    )  # fmt: skip
    same(
        found[1],
        (hidden / d**0.5).softmax(-1),
        "the weights of decoder_step",
        {
            "these are scores; take the softmax": hidden / d**0.5,
            "these are scores; take the softmax ": scores / d**0.5,
        },
        axes="batch source",
    )
    _extreme(answer, state, memory, mask)
    right("decoder_step", got, seed, 0)


@check({"sizes": (6, 1)}, {"sizes": (11, 2)})
def attention_error(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (50, 7)) -> None:
    """The share of target words whose largest weight is on a wrong word."""
    words, keys = sizes
    some = numbers(seed)
    weights = some(words, keys).softmax(-1)
    gold = some(words, keys).argmax(-1)
    gold[: words // 3] = weights[: words // 3].argmax(-1)
    counts = torch.arange(words) % 5 < 3  # True: the word counts
    wrong = weights.argmax(-1) != gold
    mass = 1 - weights.gather(1, gold[:, None])[:, 0]
    got = number(
        answer(weights, gold, counts),
        wrong[counts].double().mean().item(),
        "attention_error",
        {
            "this is the share that is right; the error is asked for":
                1 - wrong[counts].double().mean().item(),
            "words that do not count were counted": wrong.double().mean().item(),
            "only words that do not count were counted": wrong[~counts].double().mean().item(),
            "this is in percent; a share lies between 0 and 1":
                100 * wrong[counts].double().mean().item(),
            "the smallest weight was taken; take the largest":
                (weights.argmin(-1) != gold)[counts].double().mean().item(),
            "only a weight above one half counts as right; the largest is enough":
                (mass > 0.5)[counts].double().mean().item(),
            "divided by all words, not by those that count":
                (wrong & counts).double().mean().item(),
            "this is a number of words; a share is asked for": float((wrong & counts).sum()),
            "this is the weight on other words; only the largest weight decides":
                mass[counts].mean().item(),
        },
    )  # fmt: skip
    right("attention_error", got, seed)
