"""How a model learns, and how well it did: the loop, optimizers, schedules, metrics."""

from attnbook.learn.bits import bits_per_byte, nats
from attnbook.learn.loop import Cosine, Noam, StableDecay, train
from attnbook.learn.metrics import evaluate, link_offsets
from attnbook.learn.optimizers import AdamW, Muon

__all__ = [
    "AdamW",
    "Cosine",
    "Muon",
    "Noam",
    "StableDecay",
    "bits_per_byte",
    "evaluate",
    "link_offsets",
    "nats",
    "train",
]
