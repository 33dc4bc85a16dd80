"""Text as one stream of tokens: pieces to learn from, and what a model needs for all of it."""

import math
import random
from collections.abc import Callable, Iterable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnbook.checks import check_texts, check_whole
from attnbook.decoding import evaluating
from attnbook.tokenizers import BytePair, Characters
from attnbook.tokenizers.characters import UNKNOWN
from attnbook.vocabulary import Sequences

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
    _check_stream(n + 1, stream)
    rng = random.Random(f"tokens {n} {seed} {step}")
    begins = [rng.randrange(len(stream) - n) for _ in range(batch_size)]
    drawn = torch.stack([_ids(stream, begin, begin + n + 1) for begin in begins])
    return Sequences(drawn[:, :-1], drawn[:, 1:])


def _ids(stream: Stream, begin: int, end: int) -> Tensor:
    part = stream[begin:end]
    return (part if isinstance(part, Tensor) else torch.from_numpy(part.astype(np.int64))).long()


def _check_stream(least: int, stream: Stream) -> None:
    if not isinstance(stream, (Tensor, np.ndarray)) or stream.ndim != 1 or len(stream) < least:
        came = getattr(stream, "shape", None)
        raise ValueError(
            f"stream must be [token], at least {least}, got"
            f" {type(stream).__name__ if came is None else list(came)}"
        )


def nats(
    model: Callable[[Tensor], Tensor], stream: Stream, n: int, *, batch_size: int = 64
) -> Float[Tensor, " place"]:
    """What a model needs for each token of a stream but the first: -ln P(token | those before).

    The stream is read in windows of n tokens, each half a window further. Of a window counts what
    none before it has predicted, so that a token has n / 2 tokens before it at least, but for the
    first of the stream.

    Args:
        model: gives `[batch token vocab]` scores of the next token, a module without its dropout.
        stream: `[token]` ids.
        n: the most tokens that the model reads, its context.
        batch_size: number of windows that are read at once.

    Returns:
        `[token - 1]` nats, in float64.

    Raises:
        ValueError: if a number is below 1, or the stream has fewer than 2 tokens.
    """
    check_whole(1, n=n, batch_size=batch_size)
    _check_stream(2, stream)
    last = max(0, len(stream) - 1 - n)
    begins = [*range(0, last, max(1, n // 2)), last]
    found: list[Tensor] = []
    done = 0
    for i in range(0, len(begins), batch_size):
        some = begins[i : i + batch_size]
        pieces = torch.stack([_ids(stream, begin, begin + n + 1) for begin in some])
        with evaluating(model):
            scores = model(pieces[:, :-1]).float().log_softmax(-1)
        needed = -scores.gather(2, pieces[:, 1:, None])[..., 0].double()
        for begin, row in zip(some, needed, strict=True):
            found.append(row[done - begin :])
            done = begin + len(row)
    return torch.cat(found)


def token_bytes(tokenizer: Tokenizer) -> Int[Tensor, " vocab"]:
    """How many bytes of UTF-8 each token stands for, `[vocab]`: none for special tokens.

    One byte is counted for U+FFFD, by which `Characters` writes what it does not know.
    """
    if isinstance(tokenizer, BytePair):
        return torch.tensor([len(tokenizer.decode_bytes([i])) for i in range(len(tokenizer.vocab))])
    texts = [tokenizer.decode([i]).replace(UNKNOWN, "?") for i in range(len(tokenizer.vocab))]
    return torch.tensor([len(text.encode("utf-8", "surrogateescape")) for text in texts])


def bits_and_bytes(
    model: Callable[[Tensor], Tensor],
    stream: Stream,
    sizes: Int[Tensor, " vocab"],
    n: int,
    *,
    batch_size: int = 64,
) -> tuple[float, int]:
    """The two parts of `bits_per_byte`, of a stream without its first token.

    Args:
        model, stream, n, batch_size: as for `nats`.
        sizes: the bytes of each token, as `token_bytes` gives them.
    """
    bits = nats(model, stream, n, batch_size=batch_size).sum().item() / math.log(2)
    return bits, int(sizes[_ids(stream, 1, len(stream))].sum())


def bits_per_byte(
    model: Callable[[Tensor], Tensor], tokenizer: Tokenizer, texts: Iterable[str], n: int
) -> float:
    """What a model needs for some texts, for each byte that they have as UTF-8.

        bits = sum_t -log2 P(token_t | those before) / sum_t bytes(token_t)

    So models with other tokens can be compared, also with programs that compress. The end token
    behind each text counts, as it says how long the text is.

    Args:
        model, n: as for `nats`.
        tokenizer: cuts the texts into tokens.
        texts: at least one, with a byte at least.

    Raises:
        ValueError: if the texts are empty or one string, or as `nats` does.

    Source: Gao et al. 2020, section 3.1.
    """
    stream = join(tokenizer, texts)
    if (stream == tokenizer.vocab.eos).all():
        raise ValueError("texts must hold at least one byte, got none")
    bits, size = bits_and_bytes(model, stream, token_bytes(tokenizer), n)
    return bits / size
