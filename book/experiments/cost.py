"""Chapter 7: what one layer costs by length: processor time, memory, multiplications and additions.

`make experiments NAME=cost` runs forward and backward passes of one sentence of `n` vectors of 64
numbers on one thread, and stores a row for each layer, length and repetition. "attention" computes
all weights step by step, "fused" is PyTorch's attention, which never stores them, "window" sees 64
words on each side, "linear" replaces the softmax by an inner product; all have two heads and the
same four maps. "gru" and "convolution" (three words wide) are PyTorch's. None but the GRU and the
convolution is causal.

- ms, wall_ms: medians of `PASSES` passes, in which the layers take turns; processor time on one
  thread does not count programs beside, wall time does.
- bytes: the most that a pass holds at once, beyond the parameters and their gradients
  (`costs.most_bytes`).
- operations: multiplications and additions in matrix products and convolutions
  (`costs.operations`, for which fused attention counts as its products step by step).
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn

from attnbook.attention import MultiHeadAttention
from attnbook.costs import most_bytes, operations
from attnbook.efficient import linear_attention, window_attention
from attnbook.recording import recorded
from attnbook.tables import store

WIDTH, HEADS, WINDOW = 64, 2, 64
LENGTHS = (256, 512, 1024, 2048, 4096)
REPETITIONS = (0, 1, 2)
PASSES = 7


def layers() -> dict[str, Callable[[Tensor], Tensor]]:
    """Each layer as a function of x `[1 n d]`."""
    gru, heads = nn.GRU(WIDTH, WIDTH, batch_first=True), MultiHeadAttention(WIDTH, HEADS)
    convolution = nn.Conv1d(WIDTH, WIDTH, 3)

    def between(attention: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable:
        """The four maps of `heads` with another attention between them."""

        def split(x: Tensor) -> Tensor:
            return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # [1 head n d_head]

        def layer(x: Tensor) -> Tensor:
            q, k, v = (split(m(x)) for m in (heads.q, heads.k, heads.v))
            return heads.out(attention(q, k, v).transpose(1, 2).flatten(2))

        return layer

    def stepwise(x: Tensor) -> Tensor:
        with recorded(heads):
            return heads(x)

    return {
        "gru": lambda x: gru(x)[0],
        "convolution": lambda x: convolution(nn.functional.pad(x.mT, (2, 0))).mT,
        "attention": stepwise,
        "fused": heads,
        "window": between(lambda q, k, v: window_attention(q, k, v, WINDOW)),
        "linear": between(linear_attention),
    }


def total(layer: Callable[[Tensor], Tensor], n: int) -> Tensor:
    """A forward pass, to a number that has gradients."""
    return layer(torch.randn(1, n, WIDTH, requires_grad=True)).sum()


def rows() -> Iterator[dict]:
    """Bytes and operations once for each layer and length, then the times."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kinds = layers()
    for layer in kinds.values():
        total(layer, min(LENGTHS)).backward()  # gradients are there from now on
    counted = {}
    for kind, n in product(kinds, LENGTHS):
        loss = partial(total, kinds[kind], n)
        counted[kind, n] = {
            "bytes": most_bytes(lambda: loss().backward()),  # noqa: B023
            "operations": operations(loss),
        }
    for repetition, n in product(REPETITIONS, LENGTHS):
        times = {kind: [] for kind in kinds}
        for _, kind in product(range(PASSES), kinds):
            before = time.process_time(), time.perf_counter()
            total(kinds[kind], n).backward()
            after = time.process_time(), time.perf_counter()
            times[kind].append([1000 * (b - a) for a, b in zip(before, after, strict=True)])
        for kind in kinds:
            ms, wall = (round(statistics.median(t), 3) for t in zip(*times[kind], strict=True))
            row = {"kind": kind, "n": n, "repetition": repetition, "ms": ms, "wall_ms": wall}
            print(*row.values(), *counted[kind, n].values(), flush=True)
            yield row | counted[kind, n]


if __name__ == "__main__":
    store("cost", rows())
