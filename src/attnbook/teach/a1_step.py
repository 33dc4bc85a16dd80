"""Checks of assignment 1, last part: the context, a decoder's step, and alignment errors."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attnbook.teach.asking import check
from attnbook.teach.judging import number, numbers, parts, right, same

Answer = Callable[..., Any]
# In the names of what no answer of assignments 1 and 2 may call: PyTorch's ready-made attentions.
OWN = ("attention",)
FILL = (
    "Fill minus infinity in, before the softmax or the exponential: do not add it, multiply by it,"
    " or repair with `where` what an exponential has made infinite"
)


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (3, 1, 1, 2)}, own=OWN)
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


def _extreme(answer: Answer, memory: Tensor, mask: Tensor, seed: int) -> None:
    """Check scores of -1,000,000 for words, equal to the last bit, and far above for padding."""
    some, (batch, _, d) = numbers(seed), memory.shape
    state, memory = torch.zeros(batch, d), memory.clone()
    state[:, 0] = 1000
    stay: Callable[[Tensor, Tensor], Tensor] = lambda y, state: state  # noqa: E731
    for case, padding in {"scores are far below 0": -1000, "padding is far above 0": 1000}.items():
        memory[..., 0] = torch.where(mask, -1000, padding)
        scores = 1000 * memory[..., 0]
        powers = (scores - scores.amax(-1, keepdim=True)).exp() * mask
        found = answer(some(batch, 1), state, memory, mask, stay, some(d, 2 * d))
        parts(found, 3, "decoder_step must return three tensors")
        same(
            found[2],
            mask / mask.sum(-1, keepdim=True),
            f"the weights of decoder_step, where {case},",
            {
                "scores of padding need minus infinity, filled in; a number like -100 may be larger"
                " than others": scores.masked_fill(~mask, -100).softmax(-1),
                "the largest score was taken among padding, too; hide it first":
                    powers / powers.sum(-1, keepdim=True),
            },
            axes="batch source",
        )  # fmt: skip


@check({"lengths": (3,), "sizes": (1, 2)}, {"lengths": (1, 1), "sizes": (2, 1)}, own=OWN)
def decoder_step(
    answer: Answer,
    seed: int = 0,
    lengths: tuple[int, ...] = (3, 5),
    sizes: tuple[int, ...] = (6, 4),
) -> None:
    """A step of Luong's decoder: from word and state to what the next word is predicted from."""
    some, batch, n, (d_y, d) = numbers(seed), len(lengths), max(lengths), sizes
    y, old, memory = some(batch, d_y), some(batch, d), some(batch, n, d)
    mask = torch.arange(n) < torch.tensor(lengths)[:, None]
    reads, keeps, w_c = some(d_y, d), some(d, d), some(d, 2 * d)
    move: Callable[[Tensor, Tensor], Tensor] = lambda y, state: (  # noqa: E731
        y @ reads + state @ keeps
    ).tanh()
    new = move(y, old)

    def hidden(state: Tensor, mask: Tensor = mask) -> Tensor:
        return torch.einsum("bd,bkd->bk", state, memory).masked_fill(~mask, -torch.inf)

    def read(weights: Tensor) -> Tensor:
        return torch.einsum("bk,bkd->bd", weights, memory)

    def joined(weights: Tensor, state: Tensor = new) -> Tensor:
        return (torch.cat([read(weights), state], -1) @ w_c.T).tanh()

    scores, weights = hidden(new), hidden(new).softmax(-1)
    plain = torch.einsum("bd,bkd->bk", new, memory)
    found = answer(y, old, memory, mask, move, w_c)
    parts(
        found,
        3,
        "decoder_step must return three tensors: the joined vector, the new state, the weights",
    )
    got = same(
        found[0],
        joined(weights),
        "the joined vector of decoder_step",
        {
            "the old state asks; move first, then the new state asks":
                joined(hidden(old).softmax(-1)),
            "the old state asks, and is joined; the new one should":
                joined(hidden(old).softmax(-1), old),
            "the old state is joined; the new one should be": joined(weights, old),
            "state and context are exchanged: the context comes first":
                (torch.cat([new, read(weights)], -1) @ w_c.T).tanh(),
            "the tanh is missing": torch.cat([read(weights), new], -1) @ w_c.T,
            "this is the context; join it with the state": read(weights),
            "this is the new state, which comes second": new,
            "these are the weights, which come last": weights,
            "scores are divided by a root, which this task does not ask for":
                joined((scores / d**0.5).softmax(-1)),
            "padding is attended to: the mask is not used": joined(plain.softmax(-1)),
            "the mask is turned round: it is True at words":
                joined(hidden(new, ~mask).softmax(-1)),
            "the mask is turned round: it is True at words ":
                joined(plain.masked_fill(mask, -1e9).softmax(-1)),
            "weights were set to 0 after the softmax; set scores to minus infinity before it":
                joined(plain.softmax(-1) * mask),
            "scores were set to 0 where the mask is False; a score of 0 still gets weight":
                joined((plain * mask).softmax(-1)),
            "the context is a mean over the places; the weights sum to 1 already":
                joined(weights / n),
            "the softmax runs over the sentences; it should run over the words":
                joined(scores.softmax(0)),
            "the state moved twice": joined(hidden(move(y, new)).softmax(-1), move(y, new)),
        },
        axes="batch d_model",
    )  # fmt: skip
    same(
        found[1],
        new,
        "the state of decoder_step",
        {
            "this is the old state": old,
            "this is the joined vector, which comes first": joined(weights),
            "this is the context, which nobody asked for": read(weights),
        },
        axes="batch d_model",
    )
    same(
        found[2],
        weights,
        "the weights of decoder_step",
        {
            "these are scores; take the softmax": scores,
            "these are scores; take the softmax ": plain,
            "this is the context, which nobody asked for": read(weights),
        },
        axes="batch source",
    )
    _extreme(answer, memory, mask, seed)
    right("decoder_step", got, seed, 0)


@check({"sizes": (6, 1)}, {"sizes": (11, 2)}, own=OWN)
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
