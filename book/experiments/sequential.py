"""Chapter 3: processor time for one forward and backward pass, by length.

`make experiments NAME=sequential` times one sentence of `n` vectors of 64 numbers on one thread and
stores a row for each layer, length and repetition, the least of several passes: "gru" is PyTorch's,
whose loop runs in C++, "attention" computes all weights step by step, "fused" is PyTorch's
attention, which never stores them. Processor time on one thread does not count programs beside.
"""

import time
from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor, nn

from attnbook.learn.tables import Experiment
from attnbook.model import MultiHeadAttention, recorded

WIDTH = 64
KINDS = ("gru", "attention", "fused")
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
REPETITIONS = (0, 1, 2)
PASSES = 10


def layer(kind: str) -> Callable[[Tensor], Tensor]:
    """A layer as a function of x `[1 n d]`."""
    if kind == "gru":
        gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        return lambda x: gru(x)[0]
    attention = MultiHeadAttention(WIDTH, 1)

    def stepwise(x: Tensor) -> Tensor:
        with recorded(attention):
            return attention(x)

    return stepwise if kind == "attention" else attention


def run(kind: str, n: int, repetition: int) -> Iterator[dict]:
    """The least time of `PASSES` passes."""
    torch.set_num_threads(1)
    torch.manual_seed(repetition)
    read, x, times = layer(kind), torch.randn(1, n, WIDTH, requires_grad=True), []
    for _ in range(PASSES):
        start = time.process_time()
        read(x).sum().backward()
        times.append(time.process_time() - start)
    yield {"ms": round(1000 * min(times), 3)}


SETTINGS = [
    {"kind": kind, "n": n, "repetition": repetition}
    for repetition, n, kind in product(REPETITIONS, LENGTHS, KINDS)
]
EXPERIMENT = Experiment("sequential", SETTINGS, run, ())  # no machine finds another's times again

if __name__ == "__main__":
    EXPERIMENT.store()
