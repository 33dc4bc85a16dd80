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

from attnbook.learn.tables import Experiment
from attnbook.model import MultiHeadAttention, recorded
from attnbook.model.costs import most_bytes, operations
from attnbook.model.efficient import linear_attention, window_attention

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


def run(n: int, repetition: int) -> Iterator[dict]:
    """Times, bytes and operations of each layer."""
    torch.set_num_threads(1)
    torch.manual_seed(repetition)
    kinds = layers()
    losses = {kind: partial(total, layer, n) for kind, layer in kinds.items()}
    for loss in losses.values():
        loss().backward()  # gradients are there from now on
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _, (kind, loss) in product(range(PASSES), losses.items()):
        before = time.process_time(), time.perf_counter()
        loss().backward()
        after = time.process_time(), time.perf_counter()
        times[kind].append((1000 * (after[0] - before[0]), 1000 * (after[1] - before[1])))
    for kind, loss in losses.items():
        ms, wall = (round(statistics.median(t), 3) for t in zip(*times[kind], strict=True))
        yield {
            "kind": kind,
            "ms": ms,
            "wall_ms": wall,
            "bytes": most_bytes(lambda: loss().backward()),  # noqa: B023
            "operations": operations(loss),
        }


SETTINGS = [{"n": n, "repetition": repetition} for repetition, n in product(REPETITIONS, LENGTHS)]
EXPERIMENT = Experiment("cost", SETTINGS, run, ("bytes", "operations"))

if __name__ == "__main__":
    EXPERIMENT.store()
