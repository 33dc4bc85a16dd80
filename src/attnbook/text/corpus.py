"""Text as one stream of tokens, and windows of it to train on."""

import random
from bisect import bisect_right
from collections.abc import Collection, Iterable
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attnbook.checks import check_texts, check_whole
from attnbook.text.tokenizers import BytePair, Characters
from attnbook.text.tokenizers.characters import UNKNOWN
from attnbook.text.vocabulary import Sequences

Stream = Int[Tensor, " token"] | np.ndarray
Tokenizer = BytePair | Characters


def join(tokenizer: Tokenizer, texts: Iterable[str]) -> Int[Tensor, " token"]:
    """Token ids of the texts in one stream, with an end token before each and after the last.

    A special token that is written out in a text is encoded as its letters.

    Raises:
        ValueError: if texts is one string.
    """
    check_texts(texts=texts)
    end = tokenizer.vocab.eos
    ids = [end]
    for text in texts:
        ids += [*tokenizer.encode(text), end]
    return torch.tensor(ids)


def windows(stream: Stream, n: int, step: int, *, batch_size: int = 16, seed: int = 0) -> Sequences:
    """Windows of n + 1 tokens for a language model; `seed` and `step` alone determine them.

    Every possible start of a window is equally likely.

    Args:
        stream: `[token]` ids; an array may be memory-mapped (`numpy.memmap`).
        n: the model reads the first n tokens of a window and predicts the last n.
        step: the training step; each step draws other windows.
        batch_size: number of windows.
        seed: determines the draw.

    Returns:
        tokens `[batch_size n]` and, as targets, the token that follows each of them.

    Raises:
        ValueError: if n or `batch_size` is below 1, or the stream has no more than n tokens.
    """
    check_whole(1, n=n, batch_size=batch_size)
    check_stream(n + 1, stream)
    return draw_windows([stream], n, batch_size, random.Random(f"tokens {n} {seed} {step}"))


def draw_windows(
    streams: Collection[Stream], n: int, batch_size: int, rng: random.Random
) -> Sequences:
    """Random windows of n + 1 tokens, each inside one stream; every start is equally likely.

    Args:
        streams: of `[token]` ids, at least one of them longer than n.
        n: the model reads the first n tokens of a window and predicts the last n.
        batch_size: number of windows.
        rng: draws the starts.
    """
    streams = list(streams)
    ends = list(accumulate(max(0, len(stream) - n) for stream in streams))  # cumulative starts
    drawn = []
    for start in (rng.randrange(ends[-1]) for _ in range(batch_size)):
        i = bisect_right(ends, start)
        begin = start - (ends[i - 1] if i else 0)
        drawn.append(piece(streams[i], begin, begin + n + 1))
    tokens = torch.stack(drawn)
    return Sequences(tokens[:, :-1], tokens[:, 1:])


def piece(stream: Stream, begin: int, end: int) -> Int[Tensor, " place"]:
    """The token ids `stream[begin:end]` as an int64 tensor."""
    part = stream[begin:end]
    return (part if isinstance(part, Tensor) else torch.from_numpy(part.astype(np.int64))).long()


def check_stream(least: int, stream: Stream) -> None:
    """Raise a ValueError unless `stream` is `[token]` ids, at least `least` of them."""
    if not isinstance(stream, (Tensor, np.ndarray)) or stream.ndim != 1 or len(stream) < least:
        shape = getattr(stream, "shape", None)
        raise ValueError(
            f"stream must be [token], at least {least}, got"
            f" {type(stream).__name__ if shape is None else list(shape)}"
        )


def token_bytes(tokenizer: Tokenizer) -> Int[Tensor, " vocab"]:
    """Number of UTF-8 bytes that each token stands for, `[vocab]`: 0 for special tokens.

    U+FFFD, which `Characters` writes for an unknown character, counts as one byte.
    """
    if isinstance(tokenizer, BytePair):
        return torch.tensor([len(tokenizer.decode_bytes([i])) for i in range(len(tokenizer.vocab))])
    texts = [tokenizer.decode([i]).replace(UNKNOWN, "?") for i in range(len(tokenizer.vocab))]
    return torch.tensor([len(text.encode("utf-8", "surrogateescape")) for text in texts])
