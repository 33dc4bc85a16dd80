"""Labelled real sentences: snippets of film reviews, each praise or blame, and batches of them.

The texts are the asset `sentiment`: sentences that Pang and Lee (2005) took from reviews, each with
the mean score of 20 raters, from -4 to 4 (Hutto and Gilbert 2014). Those within 0.5 of zero are
left out: their raters did not agree on a side. A snippet's split follows from its words alone, so
that no sentence stands in two splits, whatever its signs and capitals.
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
LEAST = 0.5  # the least score, on either side, of a snippet that has a label


class Snippet(NamedTuple):
    """A sentence of a film review.

    Attributes:
        text: the sentence.
        score: mean of what 20 raters gave it, from -4, blame, to 4, praise.
    """

    text: str
    score: float

    @property
    def label(self) -> int:
        """1 for praise and 0 for blame, as in `LABELS`."""
        return int(self.score > 0)


class Labelled(NamedTuple):
    """A batch of sentences with a label each.

    Attributes:
        tokens: `[batch token]` token ids, filled up with padding.
        labels: `[batch]` classes 0, 1, ...

    In other libraries: `input_ids` and `labels` of a sequence classifier in `transformers`.
    """

    tokens: Int[Tensor, "batch token"]
    labels: Int[Tensor, " batch"]


def words(text: str) -> str:
    """What two snippets have in common that are the same sentence: its words in lower case."""
    return " ".join(re.findall(r"\w+", text.lower()))


def split_of(text: str) -> str:
    """The split of a snippet: which tenth of all hashes that of its words falls into."""
    tenth = _hash(text) % sum(SHARES.values())
    ends = accumulate(SHARES.values())
    return next(split for split, end in zip(SHARES, ends, strict=True) if tenth < end)


@cache
def snippets(split: str) -> tuple[Snippet, ...]:
    """All snippets of a split, each sentence once, in an order without meaning.

    The file has praise first. Here the order is that of the hashes of the words, so that the first
    n snippets are a fair sample.

    Args:
        split: "train", "validation" or "test".

    Raises:
        ValueError: if `split` is another word.
        AssetError: if the asset `sentiment` is not there and cannot be fetched.
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
    """Which rows each step learns from: all of them once, then all again in another order.

    Of 8 batches that are drawn together each takes rows of like length, so that little padding is
    computed; the batches of an epoch come in random order, and differ in size by one at most.

    Args:
        lengths: of the rows, in tokens.
        batch_size: the most rows of a batch.
        seed: of the order.

    Returns:
        A function from the step to the numbers of its rows; it depends on the step alone, and an
        epoch has ceil(rows / batch_size) steps.

    Raises:
        ValueError: if there is no row, or `batch_size` is below 1.

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
