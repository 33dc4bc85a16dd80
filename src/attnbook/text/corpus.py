"""Text as one stream of tokens, and pieces of it to learn from."""

import random
from collections.abc import Iterable

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
    """Token ids of some texts, one after another, an end token before each and behind the last.

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
    """Pieces of n + 1 tokens for a language model, a function of `seed` and `step` alone.

    Every place where a piece can begin is equally likely.

    Args:
        stream: `[token]` ids; an array may lie in a file (`numpy.memmap`).
        n: the model reads the first n tokens of a piece and predicts the last n.
        step: of training; for another, other pieces.
        batch_size: number of pieces.
        seed: of the choice.

    Returns:
        tokens `[batch_size n]` and, for each of them, the one that comes next.

    Raises:
        ValueError: if n or `batch_size` is below 1, or the stream has no more than n tokens.
    """
    check_whole(1, n=n, batch_size=batch_size)
    check_stream(n + 1, stream)
    rng = random.Random(f"tokens {n} {seed} {step}")
    begins = [rng.randrange(len(stream) - n) for _ in range(batch_size)]
    drawn = torch.stack([piece(stream, begin, begin + n + 1) for begin in begins])
    return Sequences(drawn[:, :-1], drawn[:, 1:])


def piece(stream: Stream, begin: int, end: int) -> Int[Tensor, " place"]:
    """The ids of a stream from place `begin` to the one before `end`, as int64."""
    part = stream[begin:end]
    return (part if isinstance(part, Tensor) else torch.from_numpy(part.astype(np.int64))).long()


def check_stream(least: int, stream: Stream) -> None:
    """Refuses what is not `[token]` ids, or fewer than `least` of them, with a ValueError."""
    if not isinstance(stream, (Tensor, np.ndarray)) or stream.ndim != 1 or len(stream) < least:
        came = getattr(stream, "shape", None)
        raise ValueError(
            f"stream must be [token], at least {least}, got"
            f" {type(stream).__name__ if came is None else list(came)}"
        )


def token_bytes(tokenizer: Tokenizer) -> Int[Tensor, " vocab"]:
    """How many bytes of UTF-8 each token stands for, `[vocab]`: none for special tokens.

    One byte is counted for U+FFFD, by which `Characters` writes what it does not know.
    """
    if isinstance(tokenizer, BytePair):
        return torch.tensor([len(tokenizer.decode_bytes([i])) for i in range(len(tokenizer.vocab))])
    texts = [tokenizer.decode([i]).replace(UNKNOWN, "?") for i in range(len(tokenizer.vocab))]
    return torch.tensor([len(text.encode("utf-8", "surrogateescape")) for text in texts])
