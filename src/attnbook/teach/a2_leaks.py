"""Checks of assignment 2, a diagnosis: which words the outputs of a model depend on."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, softshrink

from attnbook.teach.asking import check
from attnbook.teach.judging import numbers, right, same

Answer = Callable[..., Any]
# What a model does not notice -> what it makes of each word first.
UNSEEN: dict[str, Callable[[Tensor], Tensor]] = {
    "a number that is added to a whole word": lambda x: x - x.mean(-1, keepdim=True),
    "that a whole word is multiplied by a number above 0": lambda x: normalize(x, dim=-1),
    "a small change of small numbers: its ReLUs stay off": lambda x: softshrink(x, 0.1),
    "the first number of a word": lambda x: x[:, 1:],
    "the last number of a word": lambda x: x[:, :-1],
}


@check({"sizes": (1, 7, 4)}, {"sizes": (2, 6, 5)}, leaves={1: "x"})
def influences(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (5, 8, 4)) -> None:
    """Which words change which outputs of a model that can only be called."""
    n, d_model, d_out = sizes
    some = numbers(seed)
    patterns = _patterns(some, n)
    cases = [*((*each, "") for each in patterns.items())]
    cases += [("reads all words", torch.ones(n, n).bool(), unseen) for unseen in UNSEEN]
    for what, reads, unseen in cases:
        see, x = UNSEEN.get(unseen, torch.clone), _words(some(n, d_model))
        mix = reads * (some(n, n).sign() + some(n, n).clamp(-1, 1) / 2)
        w = some(see(x).shape[1], d_out - 1)
        w = torch.cat([w - w.mean(1, keepdim=True), 0 * w[:, :1]], 1)  # changes cancel, one is 0
        same(
            answer(_model(mix.double(), see, w[:, some(d_out).argsort()].double(), x.shape), x),
            reads,
            f"influences of a model that {what}",
            {} if unseen else _mistakes(reads),
            otherwise=_why(reads, unseen),
            axes="place word",
        )
    right("influences", torch.tensor([reads.sum() for reads in patterns.values()]), seed)


def _patterns(some: Callable[..., Tensor], n: int) -> dict[str, Tensor]:
    """What a model does -> the words that each of its outputs depends on."""
    ones = torch.ones(n, n, dtype=torch.bool)
    leak, ahead = ones.tril(), ones.triu(1).nonzero()
    for i, j in ahead[some(len(ahead)).argsort()[:1]]:  # none where n is 1
        leak[i, j] = True
    return {
        "reads some words at each place": some(n, n) > 0,
        "reads each word and those before it": ones.tril(),
        "looks one word ahead": ones.tril(1),
        "hides each word from itself": ones.tril(-1),
        "looks ahead from one place to one word": leak,
        "subtracts the mean of all words": ones,
        "reads each word alone": ones.tril() & ones.triu(),
        "reads each word and the one before it": ones.tril() & ones.triu(-1),
        "reads each word and those after it": ones.triu(),
        "reads nothing": ~ones,
    }


def _model(
    mix: Tensor, see: Callable[[Tensor], Tensor], w: Tensor, shape: torch.Size
) -> Callable[[Any], Tensor]:
    """A model whose numbers alone come and go: no gradient, and no tensor that both sides hold.

    Where `mix` is 0, an output stays the same to the last bit, whatever finite word comes.
    """

    def model(x: Any) -> Tensor:
        given = torch.tensor(torch.as_tensor(x).tolist(), dtype=torch.float64)
        if given.shape != shape:
            raise ValueError(f"x must have the shape {[*shape]}, got {[*given.shape]}")
        return (mix @ see(given) @ w).float()

    return model


def _words(x: Tensor) -> Tensor:
    """Large words, a word of zeros if there are two, and small words."""
    n = len(x)
    x[: n // 2] *= 10
    x[n // 2 :] /= 100
    x[n // 2 : n // 2 + (n > 1)] = 0
    return x


def _mistakes(reads: Tensor) -> dict[str, Tensor]:
    ones = torch.ones_like(reads)
    return {
        "no change is found: no gradient comes back, an output must not be compared with itself,"
        " and all its numbers count": ~ones,
        "everything changes: compare place by place, and change a word to finite numbers": ones,
        "True and False are exchanged": ~reads,
        "rows are words, columns are places; it should be the other way round": reads.mT,
        "this is the causal mask, whatever the model does": ones.tril(),
        "only places before the word are told; all are asked for": reads.triu(1),
        "places before the word are not told; all are asked for": reads.tril(),
        "a word may change the output at its own place, too": reads & ~torch.eye(len(reads)).bool(),
        "words before it are still changed: change one word at a time": reads.cumsum(1) > 0,
        "words after it are changed, too: change one word at a time":
            reads.flip(1).cumsum(1).flip(1) > 0,
    }  # fmt: skip


def _why(reads: Tensor, unseen: str) -> Callable[[Tensor], str]:
    def why(got: Tensor) -> str:
        if got.dtype != torch.bool:
            return ""
        if (got & ~reads).any():
            return "an output that stays the same is said to change"
        if unseen:
            return f"this model does not notice {unseen}"
        return (
            "was each word changed (words may be zeros, large or small), and were all"
            " numbers of its outputs compared?"
        )

    return why
