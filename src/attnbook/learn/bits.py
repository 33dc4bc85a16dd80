"""The number of bits that a language model needs to encode a text, per token and per byte."""

import math
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnbook.checks import check_whole
from attnbook.model.decoding import evaluating
from attnbook.text.corpus import Stream, Tokenizer, check_stream, join, piece, token_bytes


def nats(
    model: Callable[[Tensor], Tensor], stream: Stream, n: int, *, batch_size: int = 64
) -> Float[Tensor, " place"]:
    """The cost of each token of a stream but the first: -ln P(token | the tokens before it).

    The stream is read in windows of n tokens, each starting half a window after the one before. A
    token is scored in the first window that predicts it, so that it has a context of at least n / 2
    tokens, except at the start of the stream.

    Args:
        model: returns `[batch token vocab]` logits of the next token; a module runs without
            dropout.
        stream: `[token]` ids.
        n: the context length, the most tokens that the model reads at once.
        batch_size: number of windows in a batch.

    Returns:
        `[token - 1]` nats, in float64.

    Raises:
        ValueError: if n or batch_size is below 1, or the stream has fewer than 2 tokens.
    """
    check_whole(1, n=n, batch_size=batch_size)
    check_stream(2, stream)
    last = max(0, len(stream) - 1 - n)
    begins = [*range(0, last, max(1, n // 2)), last]
    found: list[Tensor] = []
    done = 0
    for i in range(0, len(begins), batch_size):
        some = begins[i : i + batch_size]
        pieces = torch.stack([piece(stream, begin, begin + n + 1) for begin in some])
        with evaluating(model):
            scores = model(pieces[:, :-1]).float().log_softmax(-1)
        needed = -scores.gather(2, pieces[:, 1:, None])[..., 0].double()
        for begin, row in zip(some, needed, strict=True):
            found.append(row[done - begin :])
            done = begin + len(row)
    return torch.cat(found)


def bits_and_bytes(
    model: Callable[[Tensor], Tensor],
    stream: Stream,
    sizes: Int[Tensor, " vocab"],
    n: int,
    *,
    batch_size: int = 64,
) -> tuple[float, int]:
    """The bits and the bytes of a stream without its first token, as `bits_per_byte` divides them.

    Args:
        model, stream, n, batch_size: as for `nats`.
        sizes: the number of bytes of each token, from `token_bytes`.
    """
    bits = nats(model, stream, n, batch_size=batch_size).sum().item() / math.log(2)
    return bits, int(sizes[piece(stream, 1, len(stream))].sum())


def bits_per_byte(
    model: Callable[[Tensor], Tensor], tokenizer: Tokenizer, texts: Iterable[str], n: int
) -> float:
    """The bits that a model needs to encode texts, per byte of their UTF-8.

        bits = sum_t -log2 P(token_t | those before) / sum_t bytes(token_t)

    So models with different tokenizers can be compared, also with compression programs. The end
    token after each text counts, since it encodes the text's length.

    Args:
        model, n: as for `nats`.
        tokenizer: cuts the texts into tokens.
        texts: at least one, with at least one byte in all.

    Raises:
        ValueError: if texts is a string or holds no byte, or for the same reasons as `nats`.

    Source: Gao et al. 2020, section 3.1.
    """
    stream = join(tokenizer, texts)
    if (stream == tokenizer.vocab.eos).all():
        raise ValueError("texts must hold at least one byte, got none")
    bits, size = bits_and_bytes(model, stream, token_bytes(tokenizer), n)
    return bits / size
