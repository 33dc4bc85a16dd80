"""Checks of assignment 3, its third task: attention to a memory, in several heads."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from attnbook.teach.asking import check
from attnbook.teach.judging import numbers, right, same

Answer = Callable[..., Any]
# In the names of what these tasks build, and of equivalent functions.
OWN = ("attention", "layer_norm", "group_norm", "instance_norm", "batch_norm", "rms_norm")


@check(
    {"sizes": (1, 1, 1, 1, 3)},
    {"sizes": (2, 4, 3, 3, 2)},
    {"sizes": (2, 3, 5, 4, 1)},
    own=OWN,
)
def multi_head(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 4, 5, 3, 2)) -> None:
    """Several heads of attention to a memory, and a matrix that mixes their outputs.

    The first case has as many sentences as heads: there a mask without an axis for the heads
    raises no error, and can be named.
    """
    batch, n, m, heads, d = sizes
    some, d_model = numbers(seed), heads * d
    maps = [some(d_model, d_model) / d_model**0.5 for _ in range(4)]
    x, memory, other = some(batch, n, d_model), some(batch, n, d_model), some(batch, m, d_model)
    same(
        answer(x, memory, *maps, heads, None),
        _attended(x, memory, maps, heads),
        "multi_head",
        _mistakes(x, memory, maps, heads),
        axes="batch query d_model",
    )
    mask = some(batch, n, m) < 0.3
    mask = mask | (some(batch, n, m).argsort(-1) == 0)  # each query may attend to one key at least
    got = same(
        answer(x, other, *maps, heads, mask),
        _attended(x, other, maps, heads, lambda s: s.masked_fill(~mask[:, None], -torch.inf)),
        "multi_head, where `mask` hides some keys,",
        _masked_mistakes(x, other, maps, heads, mask),
        axes="batch query d_model",
    )
    _low(answer, x, other, maps, heads, mask)
    right("multi_head", got, seed, 0, 0, slice(4))


def _low(
    answer: Answer, x: Tensor, memory: Tensor, maps: list[Tensor], heads: int, mask: Tensor
) -> None:
    """Check scores of -98, equal to the last bit, whose exponentials are still above 0."""
    x, memory, w_q = x.clone(), memory.clone(), torch.zeros_like(maps[0])
    d = len(w_q) // heads
    x[..., 0] = memory[..., 0] = 1
    w_q[0, ::d] = (98 * d**0.5) ** 0.5
    maps = [w_q, -w_q, *maps[2:]]

    def hidden(least: float) -> Tensor:
        may = mask[:, None]
        return _attended(x, memory, maps, heads, lambda scores: scores.masked_fill(~may, least))

    words = "what is hidden needs minus infinity; a number like -100 may be larger than others"
    same(
        answer(x, memory, *maps, heads, mask),
        hidden(-torch.inf),
        "multi_head, where scores are far below 0,",
        {words: hidden(-100.0), f"{words} ": hidden(-9.0)},
        axes="batch query d_model",
    )


def _split(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _join(found: Tensor) -> Tensor:
    return found.transpose(1, 2).flatten(2)


def _read(
    vectors: Iterable[Tensor],
    hide: Callable[[Tensor], Tensor] = lambda scores: scores,
    weigh: Callable[[Tensor], Tensor] = lambda scores: scores.softmax(-1),
) -> Tensor:
    q, k, v = vectors
    return weigh(hide(q @ k.mT / q.shape[-1] ** 0.5)) @ v


def _attended(
    x: Tensor, memory: Tensor, maps: list[Tensor], heads: int, *ways: Callable[[Tensor], Tensor]
) -> Tensor:
    w_q, w_k, w_v, w_o = maps
    vectors = (_split(y, heads) for y in (x @ w_q, memory @ w_k, memory @ w_v))
    return _join(_read(vectors, *ways)) @ w_o


def _mistakes(
    x: Tensor, memory: Tensor, maps: list[Tensor], heads: int
) -> dict[str, Tensor | Callable[[], Tensor]]:
    """Mistakes without a mask, where x and memory have the same shape."""
    batch, n, d_model = x.shape
    d, (w_q, w_k, w_v, w_o) = d_model // heads, maps
    vectors = (x @ w_q, memory @ w_k, memory @ w_v)
    q, k, v = (_split(y, heads) for y in vectors)
    found = _read((q, k, v))

    def multi(*vectors: Tensor) -> Tensor:
        return _join(_read(vectors)) @ w_o

    def origin(*asked: Tensor) -> Tensor:
        return multi(*(_split(y @ w, heads) for y, w in zip(asked, maps, strict=False)))

    whole = vectors[0] @ vectors[1].mT / d_model**0.5
    return {
        "the memory is not read: keys and values are made of `x`": origin(x, x, x),
        "keys are made of `x`; they should be made of the memory": origin(x, x, memory),
        "values are made of `x`; they should be made of the memory": origin(x, memory, x),
        "the memory asks and `x` is asked; it should be the other way round":
            origin(memory, x, x),
        "`x` is not read: queries are made of the memory, too": origin(memory, memory, memory),
        "scores are divided by the root of d_model; a head's vectors have d_head numbers":
            multi(q / heads**0.5, k, v),
        "scores are not divided by the root of d_head": multi(q * d**0.5, k, v),
        "the last matrix is missing, which mixes what the heads found": _join(found),
        "there is one head: the vectors were not split": whole.softmax(-1) @ vectors[2] @ w_o,
        "the softmax runs over the queries; it should run over the keys": _attended(
            x, memory, maps, heads, lambda scores: scores, lambda scores: scores.softmax(-2)
        ),
        "words and heads are mixed when the heads are joined":
            found.reshape(batch, n, d_model) @ w_o,
        "heads look at each other, not words at words":
            _read(y.transpose(1, 2) for y in (q, k, v)).flatten(2) @ w_o,
        "keys are also values": multi(q, k, k),
        "scores are divided by d_head, not by its root": multi(q / d**0.5, k, v),
        "scores are divided by the root of the number of heads, not of d_head":
            multi(q * (d / heads) ** 0.5, k, v),
        "the last matrix is transposed": _join(found) @ w_o.T,
        "matrices are transposed: the words stand on the left of each":
            lambda: _attended(x, memory, [w.T for w in maps], heads),
        "x is added; that is the block's business": x + _join(found) @ w_o,
        "keys ask and queries answer: q and k are exchanged": multi(k, q, v),
        "words and heads are mixed when the vectors are split":
            multi(*(y.view(batch, heads, n, d) for y in vectors)),
        "words and heads are mixed, when vectors are split and when they are joined":
            _read(y.view(batch, heads, n, d) for y in vectors).reshape(x.shape) @ w_o,
        "a head takes every n-th number; it should take numbers that stand side by side":
            multi(*(y.view(batch, n, d, heads).permute(0, 3, 1, 2) for y in vectors)),
        "numbers of all heads take turns when they are joined":
            found.permute(0, 2, 3, 1).flatten(2) @ w_o,
    }  # fmt: skip


def _masked_mistakes(
    x: Tensor, memory: Tensor, maps: list[Tensor], heads: int, mask: Tensor
) -> dict[str, Tensor | Callable[[], Tensor]]:
    """Mistakes with a mask `[batch query key]`."""
    may = mask[:, None]

    def hidden(may: Tensor) -> Callable[[], Tensor]:
        return lambda: _attended(
            x, memory, maps, heads, lambda scores: scores.masked_fill(~may, -torch.inf)
        )

    def made(*ways: Callable[[Tensor], Tensor]) -> Callable[[], Tensor]:
        return lambda: _attended(x, memory, maps, heads, *ways)

    found: dict[str, Tensor | Callable[[], Tensor]] = {
        "the mask is not used": made(),
        "True means that a query may attend; here it hides": hidden(~may),
        "what is hidden gets the score 0, which is a score like others: it needs minus infinity":
            made(lambda scores: scores * may),
        "weights were set to 0 behind the softmax; those that are left must still sum to 1":
            made(lambda scores: scores, lambda scores: scores.softmax(-1) * may),
        "True was added as 1, False as 0; what is hidden needs minus infinity":
            made(lambda scores: scores + may),
        "all sentences have the mask of the first": hidden(mask[:1][:, None]),
        "all queries have the mask of the first": hidden(may[:, :, :1]),
        "the softmax runs over the queries; it should run over the keys": made(
            lambda scores: scores.masked_fill(~may, -torch.inf), lambda scores: scores.softmax(-2)
        ),
    }  # fmt: skip
    if len(mask) in (1, heads):
        found[
            "the mask has no axis for the heads, so that head 1 has the mask of sentence 1, head 2"
            " that of sentence 2: [batch query key] must become [batch 1 query key]"
        ] = hidden(mask[None])
    return found
