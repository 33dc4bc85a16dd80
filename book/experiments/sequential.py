"""Chapter 3: processor time for one forward and backward pass, by batch and length.

`make experiments NAME=sequential` times a batch of sentences of `n` vectors of 64 numbers on one
thread and stores a row for each layer, batch, length and repetition, the least of several passes:
"gru" is PyTorch's, whose loop runs in C++, "attention" computes all weights step by step, "fused"
is PyTorch's attention, which never stores them. Processor time on one thread does not count
programs beside. 64 is the batch with which the book trains.
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
LENGTHS = {1: (32, 64, 128, 256, 512, 1024, 2048, 4096)}  # of each batch
LENGTHS |= dict.fromkeys((32, 64), LENGTHS[1][:6])  # the weights of longer ones fill the memory
REPETITIONS = (0, 1, 2)
PASSES = 5


def layer(kind: str) -> Callable[[Tensor], Tensor]:
    """A layer as a function of x `[batch n d]`."""
    if kind == "gru":
        gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        return lambda x: gru(x)[0]
    attention = MultiHeadAttention(WIDTH, 1)

    def stepwise(x: Tensor) -> Tensor:
        with recorded(attention):
            return attention(x)

    return stepwise if kind == "attention" else attention


def run(kind: str, batch: int, n: int, repetition: int) -> Iterator[dict]:
    """The least time of `PASSES` passes."""
    torch.set_num_threads(1)
    torch.manual_seed(repetition)
    read, x, times = layer(kind), torch.randn(batch, n, WIDTH, requires_grad=True), []
    for _ in range(PASSES):
        start = time.process_time()
        read(x).sum().backward()
        times.append(time.process_time() - start)
    yield {"ms": round(1000 * min(times), 3)}


SETTINGS = [
    {"kind": kind, "batch": batch, "n": n, "repetition": repetition}
    for repetition, batch in product(REPETITIONS, LENGTHS)
    for n, kind in product(LENGTHS[batch], KINDS)
]
EXPERIMENT = Experiment("sequential", SETTINGS, run, ())  # no machine finds another's times again

if __name__ == "__main__":
    EXPERIMENT.store()
