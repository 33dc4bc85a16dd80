"""Chapter 3: processor time for one forward and backward pass, by length.

`make experiments NAME=sequential` times one sentence of `n` vectors of 64 numbers on one thread and
stores a row for each layer, length and repetition, the least of several passes: "gru" is PyTorch's,
whose loop runs in C++, "attention" computes all weights step by step, "fused" is PyTorch's
attention, which never stores them. Processor time on one thread does not count programs beside.
"""

import time
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor, nn

from attnbook.attention import MultiHeadAttention
from attnbook.recording import recorded
from attnbook.tables import store

WIDTH = 64
LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
REPETITIONS = (0, 1, 2)
PASSES = 10


def layers() -> dict:
    """Each layer as a function of x `[1 n d]`."""
    gru, attention = nn.GRU(WIDTH, WIDTH, batch_first=True), MultiHeadAttention(WIDTH, 1)

    def stepwise(x: Tensor) -> Tensor:
        with recorded(attention):
            return attention(x)

    return {"gru": lambda x: gru(x)[0], "attention": stepwise, "fused": attention}


def rows() -> Iterator[dict]:
    """The least time of `PASSES` passes each."""
    torch.set_num_threads(1)
    for repetition, n in product(REPETITIONS, LENGTHS):
        torch.manual_seed(repetition)
        for kind, layer in layers().items():
            x = torch.randn(1, n, WIDTH, requires_grad=True)
            times = []
            for _ in range(PASSES):
                start = time.process_time()
                layer(x).sum().backward()
                times.append(time.process_time() - start)
            row = {"kind": kind, "n": n, "repetition": repetition}
            print(*row.values(), row.setdefault("ms", round(1000 * min(times), 3)), flush=True)
            yield row


if __name__ == "__main__":
    store("sequential", rows())
