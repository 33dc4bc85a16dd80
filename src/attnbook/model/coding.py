"""An arithmetic coder: with a language model it makes a text smaller, and gives it back."""

from collections.abc import Generator, Iterable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnbook.checks import check_ids, check_whole
from attnbook.model.decoding import evaluating
from attnbook.text.vocabulary import Vocabulary

TOTAL = 1 << 24  # what the counts of all tokens add up to
QUARTER, HALF, TOP = 1 << 46, 1 << 47, 1 << 48  # of the numbers in which a text is a piece


@runtime_checkable
class LanguageModel(Protocol):
    """What the coder asks of a model: `TransformerDecoder` has it."""

    vocab: Vocabulary

    def start(self) -> Any:
        """The state before the first token."""
        ...

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Reads tokens `[1 token]`: scores `[1 vocab]` of the next one, and the state after."""
        ...


def compress(model: LanguageModel, ids: Iterable[int], *, context: int = 256) -> bytes:
    """A text as a short number: the likelier its tokens, the fewer bits.

    The numbers below 2^48 are divided among all tokens, to each as many as its probability. The
    token that comes keeps its piece, which is divided again, and so on. A half in which the whole
    piece lies is a bit of the result; that half is then stretched to all numbers.

        bits ~ sum_t -log2 P(token_t | those before)

    with an end token behind the last. The model is asked for one token after another, with the
    cache of its steps, as `restore` will ask it: a coder needs the same probabilities to the last
    digit, which another machine, another number of threads or all tokens at once need not give.

    Args:
        model: gives scores of the next token, without dropout.
        ids: the text, without end tokens.
        context: the most tokens that the model reads. When it has read so many it begins anew with
            the later half of them.

    Raises:
        ValueError: if an id is not in the vocabulary or ends the text, the context is below 2, or
            scores are not finite.

    Source: Witten et al. 1987; Deletang et al. 2024, section 2 (with a language model).
    """
    end = model.vocab.eos
    text = [*ids, end]
    check_ids("ids", torch.tensor(text), len(model.vocab), "token")
    if end in text[:-1]:
        raise ValueError(f"ids must not hold the end token, {end}, got it before the end")
    low, high, waiting, bits = 0, TOP - 1, 0, []
    tables = _tables(model, context)
    table = next(tables)
    for token in text:
        low, high = _piece(low, high, table, token)
        while (begin := _half(low, high)) is not None:
            low, high = 2 * (low - begin), 2 * (high - begin) + 1
            if begin == QUARTER:
                waiting += 1  # on which side of the middle will the next bit tell
            else:
                bit = begin // HALF
                bits += [bit, *[1 - bit] * waiting]
                waiting = 0
        table = tables.send(token)
    bit = int(low >= QUARTER)
    bits += [bit, *[1 - bit] * (waiting + 1)]
    bits += [0] * (-len(bits) % 8)
    return int("".join(map(str, bits)), 2).to_bytes(len(bits) // 8)


def restore(model: LanguageModel, data: bytes, *, context: int = 256) -> list[int]:
    """The ids that `compress` was given.

    Args:
        model, context: the same as there.
        data: what it gave.

    Raises:
        ValueError: if there is no end token in the data: they are cut, or of another model.
    """
    size = 8 * len(data)
    rest = iter(format(int.from_bytes(data), f"0{size}b") if data else "")
    low, high, value, read = 0, TOP - 1, 0, 0
    for _ in range(TOP.bit_length() - 1):
        value = 2 * value + int(next(rest, "0"))
    tables, ids = _tables(model, context), []
    table = next(tables)
    while True:
        place = ((value - low + 1) * TOTAL - 1) // (high - low + 1)
        token = int(torch.searchsorted(table, place, right=True)) - 1
        if token == model.vocab.eos:
            return ids
        ids.append(token)
        low, high = _piece(low, high, table, token)
        while (begin := _half(low, high)) is not None:
            low, high = 2 * (low - begin), 2 * (high - begin) + 1
            value, read = 2 * (value - begin) + int(next(rest, "0")), read + 1
        if read > size:
            raise ValueError(f"data must hold an end token, got none in {len(data)} bytes")
        table = tables.send(token)


def _piece(low: int, high: int, table: Tensor, token: int) -> tuple[int, int]:
    """The first and the last number of a token's piece."""
    width, (begin, end) = high - low + 1, table[token : token + 2].tolist()
    return low + width * begin // TOTAL, low + width * end // TOTAL - 1


def _half(low: int, high: int) -> int | None:
    """Where the half begins in which all numbers from low to high lie: below, above or between."""
    return next((b for b in (0, HALF, QUARTER) if b <= low and high < b + HALF), None)


def _tables(model: LanguageModel, context: int) -> Generator[Int[Tensor, " bound"], int, None]:
    """Where the pieces of all tokens begin and end, out of TOTAL; is sent the token that came."""
    check_whole(2, context=context)
    read = new = [model.vocab.bos]
    state = model.start()
    while True:
        with evaluating(model):
            scores, state = model.step(torch.tensor([new]), state)
        token = yield bounds(scores[0])
        read, new = [*read, token], [token]
        if len(read) > context:
            read = new = read[-(context // 2) :]
            state = model.start()


def bounds(scores: Float[Tensor, " vocab"]) -> Int[Tensor, " bound"]:
    """Whole numbers in place of probabilities: where each token's piece of 2^24 begins and ends.

    Every token has a piece of 1 at least, so that each can be written.

    Args:
        scores: `[vocab]` of the tokens, before the softmax.

    Returns:
        `[vocab + 1]`: token i has the numbers from the i-th up to the next.

    Raises:
        ValueError: if a score is NaN or infinite.
    """
    if not scores.isfinite().all():
        raise ValueError(f"scores must be finite, got {scores[~scores.isfinite()][0].item()}")
    share = scores.detach().double().softmax(-1)
    counts = (share * (TOTAL - len(scores))).long() + 1
    counts[share.argmax()] += TOTAL - counts.sum()
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
