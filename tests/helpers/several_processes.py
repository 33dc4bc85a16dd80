"""Started by test_training.py alone and twice at once: train, and save what each process ends with.

The sentences are of unequal length, one weight has no part in the loss, and one is not trained. At
some steps every second sentence is only padding, so that the second process has nothing to learn.
"""

import os
import sys

import torch
from safetensors.torch import save_file

from attnbook.learn.loop import train
from attnbook.model.config import TINY
from attnbook.model.transformer import Transformer
from attnbook.text.number_words import Numbers
from attnbook.text.vocabulary import Pairs

rank, size = os.environ.get("RANK", "0"), os.environ.get("WORLD_SIZE", "1")
torch.manual_seed(int(rank))  # the first process's weights must win
task = Numbers(3)
model = Transformer(task.source_vocab, task.target_vocab, TINY)
model.register_parameter("idle", torch.nn.Parameter(torch.ones(2)))
model.encoder.stack.norm.requires_grad_(False)
pad = task.target_vocab.pad
rows = []  # how many sentences each step has


def batch(step: int) -> Pairs:
    read = task.batch(step, batch_size=7)
    if step % 6 == 5:
        read.target[1::2, 1:] = pad
    return read


def loss(batch: Pairs) -> torch.Tensor:
    rows.append(len(batch.source))
    return model.loss(batch)


losses = train(
    model,
    batch,
    loss,
    steps=20,
    lr=0.1,
    optimizer=torch.optim.SGD,  # Adam would make steps of the noise where a gradient is zero
    count=lambda batch: (batch.target[:, 1:] != pad).sum(),
)
found = {**model.state_dict(), "losses": torch.tensor(losses), "rows": torch.tensor(rows)}
save_file(found, f"{sys.argv[1]}/{size}-{rank}.safetensors")
