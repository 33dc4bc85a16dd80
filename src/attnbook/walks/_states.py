"""What an encoder's states hold: reading from both ends, and exchanging states."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnbook.checks import check_range
from attnbook.model.seq2seq import Decoder, Encoder, LuongDecoder, Seq2Seq
from attnbook.show.drawing import SMALL, Arrow, Part, arrow, box, cells, grid, row, text
from attnbook.walks._unrolled import check_layers
from attnbook.web import Drawing, Step


def _towers(name: str, states: Tensor, role: str = "key", *, odd: int = -1) -> list[Part]:
    """A column for each state, with its first numbers; the state `odd` has another colour."""
    look: dict[str, Any] = {"down": True, "span": (-1, 1), "width": 24, "height": 10, "name": name}
    roles = ["value" if j == odd else role for j in range(len(states))]
    return [cells(h[:4], role, **look) for h, role in zip(states, roles, strict=True)]


def two_readers(encoder: Encoder, words: str, **options: Any) -> Drawing:
    """A sentence read from both ends: two states for each word, concatenated.

    Args:
        encoder: bidirectional; the first numbers of its top layer's states are shown.
        words: a source sentence of two to six words.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the encoder reads in one direction, or the number of words is out of range.
        KeyError: if a word is not in the vocabulary.

    Source: Bahdanau et al. 2015, section 3.2.
    """
    if not encoder.rnn.bidirectional:
        raise ValueError("encoder must read from both ends, got two_way = False")
    said = words.split()
    check_range(2, 6, words=len(said))
    with torch.no_grad():
        states = encoder(torch.tensor([encoder.vocab.encode(said)])).states[0]
    ahead, back = states.chunk(2, dim=-1)
    d, n, first, last = len(ahead[0]), len(said) - 1, said[0], said[-1]
    return Drawing(
        grid(
            [
                [None, *(box(word, name="words") for word in said)],
                ["from\nthe left", *_towers("ahead", ahead)],
                ["from\nthe right", *_towers("back", back)],
            ],
            gap=(12, 30),
        ),
        *(arrow(f"ahead.{j}", f"ahead.{j + 1}", "key") for j in range(n)),
        *(arrow(f"back.{j + 1}", f"back.{j}", "key") for j in range(n)),
        alt="Words in a row, below each two short columns of cells, one above the other. Arrows"
        " lead through the upper columns from left to right, through the lower from right to left.",
        steps=[
            Step(
                f"One GRU begins at the left. After “{first}” its [state](ahead.0) knows"
                f" “{first}”, and nothing of what follows.",
                "words ahead.0",
            ),
            Step(f"It reads on. The state of “{last}” has read [all words](ahead).", "ahead"),
            Step(
                f"A second GRU begins at the right. Its first [state](back.{n}) knows “{last}”.",
                f"back.{n}",
            ),
            Step(f"It comes back to “{first}”, and has read [all words](back), too.", "back"),
            Step(
                f"The state of “{first}” is its [upper](ahead.0) and its [lower](back.0) column"
                f" end to end: {d} numbers and {d}, four of each are shown. It can know the word"
                " and all that follows."
            ),
        ],
        **options,
    )


class Exchange(NamedTuple):
    """One state of a sentence replaced by its twin's."""

    at: int  # the position of the state
    states: Tensor  # [word d_model], the exchanged one included
    shares: Tensor  # [answer] probabilities as the next token


def exchanged_states(
    model: Seq2Seq, words: str, twin: str, written: str, answers: tuple[str, str], **options: Any
) -> Drawing:
    """What a decoder writes when an encoder state is replaced by that of a similar sentence.

    First the state at the word in which the two sentences differ is replaced, then the next state;
    everything else stays, including the decoder's initial state.

    Args:
        model: a one-layer model with attention.
        words, twin: source sentences that differ in one word, not the last.
        written: the tokens written so far.
        answers: the correct next token for `words` and for `twin`.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model is of another kind, or the sentences differ in another way or are
            too wide.
        KeyError: if a word or a token is not in its vocabulary.
    """
    wanted = "a Decoder with a score or a LuongDecoder"
    check_layers(model, (Decoder, LuongDecoder), wanted)
    if model.decoder.attention is None:
        raise ValueError(f"model must have {wanted}, got a decoder without attention")
    said, others = words.split(), twin.split()
    odd = [j for j, (a, b) in enumerate(zip(said, others, strict=False)) if a != b]
    if len(said) != len(others) or len(odd) != 1 or odd[0] == len(said) - 1:
        raise ValueError(f"twin must differ from {words!r} in one word, not the last, got {twin!r}")
    place, encoder, vocab = odd[0], model.encoder, model.decoder.vocab
    target = torch.tensor([[vocab.bos, *vocab.encode(written.split())]])
    with torch.no_grad():
        own, other = (encoder(torch.tensor([encoder.vocab.encode(s)])) for s in (said, others))
        exchanges = []
        for j in (place, place + 1):
            states = own.states.clone()
            states[0, j] = other.states[0, j]
            p = model.decoder(target, own._replace(states=states))[0, -1].softmax(-1)
            exchanges.append(Exchange(j, states[0], p[vocab.encode([*answers])]))
    rows = [
        [text(word, name="words", size=SMALL) for word in said],
        _towers("own", own.states[0]),
        [text(word, name="others", size=SMALL) for word in others],
        _towers("twin", other.states[0], "value"),
        *(line for each in exchanges for line in _rows(each, answers)),
    ]
    steps = _opening(said, others, place, written)
    return Drawing(
        grid(rows, gap=(7, 16)),
        *(link for each in exchanges for link in _links(each)),
        alt="States of a sentence and of its twin, as columns of cells; below, twice, the states of"
        " the sentence with one of the twin's among them, and how likely two answers then are.",
        steps=[*steps, *(step for each in exchanges for step in _exchanged(each, said, answers))],
        **options,
    )


def _rows(exchange: Exchange, answers: tuple[str, str]) -> list[Any]:
    """The states, and below them the probabilities of both answers."""
    at, name = exchange.at, f"wrote{exchange.at}"
    left, right = (text(each, beside=name) for each in answers)
    shares = cells(exchange.shares, "weight", name=name, digits=2, span=(0, 1), width=70)
    return [_towers(f"mixed{at}", exchange.states, odd=at), row(left, shares, right)]


def _links(exchange: Exchange) -> list[Arrow]:
    at, places = exchange.at, range(len(exchange.states))
    return [
        *(arrow(f"own.{k}", f"mixed{at}.{k}", drawn=False) for k in places if k != at),
        arrow(f"twin.{at}", f"mixed{at}.{at}", drawn=False),
    ]


def _opening(said: list[str], others: list[str], odd: int, written: str) -> list[Step]:
    begun = f"written “{written}”" if written else "written nothing"
    return [
        Step(
            "The encoder has read [a sentence](words), and kept a [state](own) of each word. The"
            f" decoder has {begun}.",
            "words own",
        ),
        Step(f"It also reads [a twin](others): “{others[odd]}” for “{said[odd]}”.", "others twin"),
    ]


def _exchanged(exchange: Exchange, said: list[str], answers: tuple[str, str]) -> list[Step]:
    at, (own, twin), (first, second) = exchange.at, exchange.shares, answers
    return [
        Step(
            f"Now the state of “{said[at]}” is [the twin's](mixed{at}.{at}), and all others are"
            " its own.",
            f"mixed{at}",
        ),
        Step(
            f"“{first}” gets [{own:.2f}](wrote{at}.0), the twin's “{second}”"
            f" [{twin:.2f}](wrote{at}.1).",
            f"wrote{at}",
            ask=f"Will the decoder now write “{first}” or “{second}”?",
        ),
    ]
