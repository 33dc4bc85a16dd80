"""Encoder and decoder unrolled in time: a sentence goes through one state."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range
from attnbook.model.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.show.drawing import (
    SMALL,
    WIDTH,
    Arrow,
    Part,
    arrow,
    box,
    cells,
    column,
    frame,
    grid,
    row,
    space,
    text,
)
from attnbook.text.vocabulary import Vocabulary
from attnbook.walks._pieces import written_sum
from attnbook.web import Drawing, Step

SHOWN = 8  # numbers of each state


@dataclass(frozen=True)
class Passed:
    """The states of encoder and decoder, each `[d_model]`, and what was read and written."""

    said: list[str]
    read: list[Tensor]  # before the first word and after each
    given: list[str]  # the tokens that the decoder reads
    states: list[Tensor]  # before the first token and after each
    written: list[str]
    shares: list[float]  # probabilities of the written tokens


def spelled(vocab: Vocabulary, token: int) -> str:
    """A token as a drawing shows it."""
    return {vocab.bos: "(start)", vocab.eos: "(end)"}.get(token, vocab.tokens[token])


def check_layers(model: Any, kinds: tuple[type[Decoder], ...], wanted: str) -> None:
    """Check that a model is one of the book's one-layer translators."""
    if not isinstance(model, Seq2Seq) or not isinstance(model.encoder, Encoder):
        got = type(model).__name__
    elif type(model.decoder) not in kinds or model.encoder.n_layers > 1:
        got = f"{type(model.decoder).__name__}, n_layers = {model.encoder.n_layers}"
    else:
        return
    raise ValueError(f"model must have an Encoder and {wanted}, of one layer, got {got}")


def unrolled(model: Seq2Seq, words: str, *, answer: str = "", **options: Any) -> Drawing:
    """A sentence passed through the one state that the encoder gives to the decoder.

    Above, the encoder's state after each word; below, the decoder's at each token of greedy
    decoding, with its probability. A state's first `SHOWN` numbers are cells, shaded from −1, the
    faintest, to 1, the deepest.

    Args:
        model: a one-layer model with a one-way encoder and a decoder without attention.
        words: a source sentence of about two to five words.
        answer: the right translation, to be shown at the end; "" for none.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model is of another kind, there are no words, the model writes more than
            seven tokens, or the sentence is too wide for the drawing.
        KeyError: if a word is not in the vocabulary.

    Source: Sutskever et al. 2014, figure 1; Cho et al. 2014, figure 1.
    """
    check_layers(model, (Decoder,), "a Decoder without a score")
    encoder, decoder = model.encoder, model.decoder
    if decoder.attention is not None or encoder.rnn.bidirectional:
        raise ValueError(
            "model must have a one-way encoder and no attention: it hands on one state"
        )
    said, vocab = words.split(), decoder.vocab
    check_range(1, 8, words=len(said))
    source = torch.tensor([encoder.vocab.encode(said)])
    tokens = model.translate(source, max_len=8).tokens[0].tolist()
    if len(tokens) > 7 or tokens[-1] != vocab.eos:
        raise ValueError(
            f"words must be ones of which the model writes at most 7 tokens: {words!r}"
        )
    passed = _passed(model, said, source, tokens)
    return Drawing(
        _body(passed),
        *_links(passed),
        alt=f"Above, the words {' '.join(said)}, each with an arrow to a column of cells, the"
        " encoder's state; an arrow goes from each state to the next. One thick arrow leads from"
        " the last state down to the decoder, whose states stand side by side: each reads the word"
        " before and writes the next.",
        steps=[*_reading(passed), _handover(passed), *_writing(passed, len(vocab), answer)],
        **options,
    )


@torch.no_grad()
def _passed(model: Seq2Seq, said: list[str], source: Tensor, tokens: list[int]) -> Passed:
    decoder, vocab = model.decoder, model.decoder.vocab
    given = [vocab.bos, *tokens[:-1]]
    memory = model.read(source)
    state = decoder.start(memory)
    states, shares = [state[0][0, 0]], []
    for token, next_token in zip(given, tokens, strict=True):
        logits, state = decoder.step(torch.tensor([[token]]), state)
        states.append(state[0][0, 0])
        shares.append(float(logits.softmax(-1)[0, next_token]))
    return Passed(
        said,
        [torch.zeros(model.encoder.d_model), *memory.states[0]],
        [spelled(vocab, token) for token in given],
        states,
        [spelled(vocab, token) for token in tokens],
        shares,
    )


def _body(passed: Passed) -> Part:
    """The encoder above the decoder; columns are as far apart as the width allows."""
    room = WIDTH - 28 - _decoder(passed, 0.0).width
    gap = min(16.0, max(2.0, room / (len(passed.written) + 1)))
    words = _boxes("word", passed.said)
    towers = [_tower(f"h{t}", h) for t, h in enumerate(passed.read)]
    above = grid([[None, *words], towers], gap=(gap, 16))
    below = column(_decoder(passed, gap), text("the decoder writes", size=SMALL), gap=8, align="l")
    return column(
        frame(above, "the encoder reads", name="encoder"), frame(below, name="decoder"), gap=36
    )


def _decoder(passed: Passed, gap: float) -> Part:
    chances = [
        cells([p], "weight", name=f"p{t}", digits=2, width=30, span=(0, 1))
        for t, p in enumerate(passed.shares, 1)
    ]
    first, *towers = [_tower(f"s{t}", s) for t, s in enumerate(passed.states)]
    steps = grid(
        [
            [None, *_boxes("in", passed.given)],
            [None, *towers],
            [None, *_boxes("out", passed.written, "weight")],
            ["P", *chances],
        ],
        gap=(gap, 16),
    )
    return row(column(first, space(steps.height - first.height), gap=0), steps, gap=gap)


def _tower(name: str, state: Tensor) -> Part:
    look = {"down": True, "span": (-1, 1), "width": 20, "height": 8}
    return cells(state[:SHOWN], "state", name=name, **look)


def _boxes(name: str, tokens: list[str], role: str = "") -> list[Part]:
    return [box(token, role, name=f"{name}{n}", size=SMALL) for n, token in enumerate(tokens, 1)]


def _links(passed: Passed) -> list[Arrow]:
    words, tokens = range(1, len(passed.said) + 1), range(1, len(passed.written) + 1)
    links = [arrow(f"word{t}", f"h{t}") for t in words]
    links += [arrow(f"h{t - 1}", f"h{t}", "state") for t in words]
    links.append(arrow(f"h{len(words)}", "s0", "state", weights=[1.0]))
    for t in tokens:
        links += [
            arrow(f"in{t}", f"s{t}"),
            arrow(f"s{t - 1}", f"s{t}", "state"),
            arrow(f"s{t}", f"out{t}", "weight"),
        ]
        links += [arrow(f"out{t - 1}", f"in{t}", drawn=False)] if t > 1 else []
    return links


def _reading(passed: Passed) -> list[Step]:
    n, d_model = len(passed.said), len(passed.read[0])
    steps = [
        Step(
            f"A sentence of {n} [words](word1). The encoder reads it into one [state](h0) of"
            f" {d_model} numbers. {SHOWN} are shown: the larger, the deeper the colour. All"
            " begin as 0. They stay between −1 and 1, as the proposals do.",
            [*(f"word{t}" for t in range(1, n + 1)), "h0"],
        )
    ]
    for t, word in enumerate(passed.said, 1):
        whom = "The encoder, a GRU, reads" if t == 1 else "The same GRU reads"
        moved = _moved(passed.read[t - 1], passed.read[t], f"h{t}")
        caption = f"{whom} [“{word}”](word{t}) and the state so far. The [state](h{t}) changes:"
        steps.append(Step(f"{caption} {moved}.", f"h{t}"))
    return steps


def _moved(old: Tensor, new: Tensor, name: str) -> str:
    """A phrase about the shown number that changed most."""
    k = int((new - old)[:SHOWN].abs().argmax())
    a, b = (written_sum([float(each[k])]) for each in (old, new))
    return f"[number {k + 1}]({name}.{k}) goes from {a} to {b}"


def _handover(passed: Passed) -> Step:
    n, d_model = len(passed.said), len(passed.read[0])
    return Step(
        f"The decoder gets [one state](s0), the last, after “{passed.said[-1]}”. It is the only"
        f" arrow from encoder to decoder: the whole sentence must be in {d_model} numbers.",
        "s0",
        ask=f"The encoder has had {n} states. How many of them will the decoder see?"
        if n > 1
        else "What will the decoder get of the sentence?",
    )


def _writing(passed: Passed, n_tokens: int, answer: str) -> list[Step]:
    steps = []
    for t, (token, p) in enumerate(zip(passed.written, passed.shares, strict=True), 1):
        what = f"[“{token}”](out{t})" if token != "(end)" else f"the [end](out{t})"
        if t == 1:
            told = (
                "The decoder, another GRU, reads a [start](in1) and makes a [state](s1) of its own."
                f" It gives each of {n_tokens} tokens a probability and writes the likeliest:"
                f" {what}, with [{p:.2f}](p1)."
            )
        else:
            told = (
                f"The decoder reads [“{passed.given[t - 1]}”](in{t}), which it has just written."
                f" Its [state](s{t}) changes, and it writes {what}, with [{p:.2f}](p{t})."
            )
        if t == len(passed.written) and answer:
            right = answer.split() == passed.written[:-1]
            told += " That is right." if right else f" Right would be “{answer}”."
        ask = "Which word will the decoder write first?" if t == 1 else ""
        steps.append(Step(told, f"in{t} s{t} out{t} p{t}", ask=ask))
    return steps
