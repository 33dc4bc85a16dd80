"""Sentences from film reviews with a label, positive or negative, and batches of them.

The texts are the asset `sentiment`: sentences that Pang and Lee (2005) took from reviews, each with
the mean score of 20 raters, from -4 to 4 (Hutto and Gilbert 2014). Sentences within
0.5 of zero are left out: their raters did not agree on a side. A hash of a snippet's words
determines its split, so that copies with other punctuation or capitals are in the same split.
"""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import NamedTuple

from jaxtyping import Int
from torch import Tensor

from attnbook import assets
from attnbook.checks import check_choice, check_whole

SHARES = {"train": 7, "validation": 1, "test": 2}  # tenths of all snippets
LABELS = ("negative", "positive")
LEAST = 0.5  # the least absolute score of a snippet with a label


class Snippet(NamedTuple):
    """A sentence of a film review.

    Attributes:
        text: the sentence.
        score: the mean of 20 raters, from -4 (negative) to 4 (positive).
    """

    text: str
    score: float

    @property
    def label(self) -> int:
        """1 for a positive snippet and 0 for a negative one, as in `LABELS`."""
        return int(self.score > 0)


class Labelled(NamedTuple):
    """A batch of sentences, each with a label.

    Attributes:
        tokens: `[batch token]` token ids, filled up with padding.
        labels: `[batch]` classes 0, 1, ...

    In other libraries: `input_ids` and `labels` of a sequence classifier in `transformers`.
    """

    tokens: Int[Tensor, "batch token"]
    labels: Int[Tensor, " batch"]


def words(text: str) -> str:
    """The words of a snippet in lower case: equal for two copies of the same sentence."""
    return " ".join(re.findall(r"\w+", text.lower()))


def split_of(text: str) -> str:
    """The split of a snippet, determined by its hash modulo 10 and by `SHARES`."""
    tenth = _hash(text) % sum(SHARES.values())
    ends = accumulate(SHARES.values())
    return next(split for split, end in zip(SHARES, ends, strict=True) if tenth < end)


@cache
def snippets(split: str) -> tuple[Snippet, ...]:
    """All snippets of a split, each sentence once, in an arbitrary but fixed order.

    The file has the positive ones first. Here they are sorted by the hash of their words, so that
    the first n snippets are a fair sample.

    Args:
        split: "train", "validation" or "test".

    Raises:
        ValueError: if there is no such split.
        AssetError: if the asset `sentiment` is missing and cannot be fetched.
    """
    check_choice(SHARES, split=split)
    file = assets.fetch("sentiment") / "movieReviewSnippets_GroundTruth.txt"
    rows = (line.split("\t") for line in file.read_text("utf8").splitlines())
    found = {words(text): Snippet(text, float(score)) for _, score, text in rows}
    kept = (s for s in found.values() if abs(s.score) >= LEAST and split_of(s.text) == split)
    return tuple(sorted(kept, key=lambda snippet: _hash(snippet.text)))


def _hash(text: str) -> int:
    """The first 8 bytes of the sha256 of a snippet's words, as a number."""
    return int.from_bytes(sha256(words(text).encode()).digest()[:8])


def epochs(
    lengths: Sequence[int], *, batch_size: int = 32, seed: int = 0
) -> Callable[[int], list[int]]:
    """The rows of the batch at each step: each epoch takes every row once, in a new order.

    The rows of 8 batches are drawn together and sorted by length, so that a batch needs little
    padding. The batches of an epoch come in random order; their sizes differ by at most one.

    Args:
        lengths: the lengths of the rows, in tokens.
        batch_size: the largest number of rows in a batch.
        seed: determines the order.

    Returns:
        A function from the step to the indices of its rows. It depends on the step alone; an epoch
        has ceil(rows / batch_size) steps.

    Raises:
        ValueError: if there are no rows, or `batch_size` is below 1.

    In other libraries: `group_by_length` of `Trainer` in `transformers`.
    """
    check_whole(1, batch_size=batch_size)
    n = len(lengths)
    if not n:
        raise ValueError("lengths must hold at least one row, got none")
    n_steps = -(-n // batch_size)

    @lru_cache(1)
    def batches(epoch: int) -> list[list[int]]:
        rng = random.Random(f"epochs {seed} {epoch}")
        ends = [n * step // n_steps for step in range(n_steps + 1)]
        rows = rng.sample(range(n), n)
        for begin, end in zip(ends[::8], [*ends[8::8], n], strict=False):
            rows[begin:end] = sorted(rows[begin:end], key=lengths.__getitem__)
        drawn = [rows[begin:end] for begin, end in pairwise(ends)]
        return rng.sample(drawn, n_steps)

    return lambda step: batches(step // n_steps)[step % n_steps]
