"""Encoder and decoder unrolled in time: a sentence goes through one state."""

from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range
from attnbook.model.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.show.drawing import (
    SMALL,
    WIDTH,
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
from attnbook.walks._input import written_sum
from attnbook.web import Drawing, Step

SHOWN = 8  # numbers of each state


def spelled(vocab: Vocabulary, token: int) -> str:
    """A token as a drawing shows it."""
    return {vocab.bos: "(start)", vocab.eos: "(end)"}.get(token, vocab.tokens[token])


def check_layers(model: Any, kinds: tuple[type[Decoder], ...], wanted: str) -> None:
    """Check that a model is one of the book's translators, with one layer."""
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
    decoding, with its probability. A state's first `SHOWN` numbers are cells; −1 is the faintest
    and 1 the deepest.

    Args:
        model: a one-way encoder, and a decoder without attention, of one layer.
        words: a source sentence of about two to five words.
        answer: the right translation, to be shown at the end; "" for none.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model does not fit, there are no words, the model writes more than seven
            tokens, or the sentence is too wide for the drawing.
        KeyError: if a word is not in the vocabulary.

    Source: Sutskever et al. 2014, figure 1; Cho et al. 2014, figure 1.
    """
    check_layers(model, (Decoder,), "a Decoder without a score")
    encoder, decoder = model.encoder, model.decoder
    if decoder.attention is not None or encoder.rnn.bidirectional:
        raise ValueError(
            "model must have a one-way encoder and no attention: it hands on one state"
        )
    said = words.split()
    check_range(1, 8, words=len(said))
    source = torch.tensor([encoder.vocab.encode(said)])
    tokens = model.translate(source, max_len=8).tokens[0].tolist()
    vocab, last = decoder.vocab, tokens[-1]
    if len(tokens) > 7 or last != vocab.eos:
        raise ValueError(
            f"words must be ones of which the model writes at most 7 tokens: {words!r}"
        )
    before = [vocab.bos, *tokens[:-1]]
    with torch.no_grad():
        memory = model.read(source)
        state = decoder.start(memory)
        begin = state[0][0, 0]
        after, shares = [], []
        for token, next_token in zip(before, tokens, strict=True):
            logits, state = decoder.step(torch.tensor([[token]]), state)
            after.append(state[0][0, 0])
            shares.append(float(logits.softmax(-1)[0, next_token]))
    read = [torch.zeros(model.encoder.d_model), *memory.states[0]]

    def tower(name: str, vector: Tensor) -> Part:
        look = {"down": True, "span": (-1, 1), "width": 20, "height": 8}
        return cells(vector[:SHOWN], "state", name=name, **look)

    def boxes(name: str, tokens: list[str], role: str = "") -> list[Part]:
        return [box(t, role, name=f"{name}{n}", size=SMALL) for n, t in enumerate(tokens, 1)]

    given, written = ([spelled(vocab, t) for t in each] for each in (before, tokens))
    n, m = len(said), len(tokens)
    chances = [
        cells([p], "weight", name=f"p{t}", digits=2, width=30, span=(0, 1))
        for t, p in enumerate(shares, 1)
    ]
    towers = [tower(f"s{t}", s) for t, s in enumerate([begin, *after])]

    def below(gap: float) -> Part:
        steps = grid(
            [
                [None, *boxes("in", given)],
                [None, *towers[1:]],
                [None, *boxes("out", written, "weight")],
                ["P", *chances],
            ],
            gap=(gap, 16),
        )
        start = column(towers[0], space(steps.height - towers[0].height), gap=0)
        return row(start, steps, gap=gap)

    room = WIDTH - 28 - below(0.0).width
    gap = min(16.0, max(2.0, room / (m + 1)))
    above = grid(
        [[None, *boxes("word", said)], [tower(f"h{t}", h) for t, h in enumerate(read)]],
        gap=(gap, 16),
    )
    words_below = text("the decoder writes", size=SMALL)
    body = column(
        frame(above, "the encoder reads", name="encoder"),
        frame(column(below(gap), words_below, gap=8, align="l"), name="decoder"),
        gap=36,
    )

    def moved(old: Tensor, new: Tensor, name: str) -> str:
        k = int((new - old)[:SHOWN].abs().argmax())
        a, b = (written_sum([float(each[k])]) for each in (old, new))
        return f"[number {k + 1}]({name}.{k}) goes from {a} to {b}"

    each = [f"word{t}" for t in range(1, n + 1)]
    steps = [
        Step(
            f"A sentence of {n} [words](word1). The encoder reads it into one [state](h0) of"
            f" {encoder.d_model} numbers. {SHOWN} are shown: the larger, the deeper the colour. All"
            " begin as 0, half way between −1 and 1.",
            [*each, "h0"],
        )
    ]
    for t, word in enumerate(said, 1):
        whom = "The encoder, a GRU, reads" if t == 1 else "The same GRU reads"
        steps.append(
            Step(
                f"{whom} [“{word}”](word{t}) and the state so far. The [state](h{t}) changes:"
                f" {moved(read[t - 1], read[t], f'h{t}')}.",
                f"h{t}",
            )
        )
    steps.append(
        Step(
            f"The decoder gets [one state](s0), the last, after “{said[-1]}”. It is the only arrow"
            f" from encoder to decoder: the whole sentence must be in {encoder.d_model} numbers.",
            "s0",
            ask=f"The encoder has had {n} states. How many of them will the decoder see?"
            if n > 1
            else "What will the decoder get of the sentence?",
        )
    )
    for t, (token, p) in enumerate(zip(written, shares, strict=True), 1):
        what = f"[“{token}”](out{t})" if token != "(end)" else f"the [end](out{t})"
        if t == 1:
            told = (
                "The decoder, another GRU, reads a [start](in1) and makes a [state](s1) of its own."
                f" It gives each of {len(vocab)} tokens a probability and writes the likeliest:"
                f" {what}, with [{p:.2f}](p1)."
            )
        else:
            told = (
                f"The decoder reads [“{given[t - 1]}”](in{t}), which it has just written. Its"
                f" [state](s{t}) changes, and it writes {what}, with [{p:.2f}](p{t})."
            )
        if t == m and answer:
            right = answer.split() == written[:-1]
            told += " That is right." if right else f" Right would be “{answer}”."
        parts = f"in{t} s{t} out{t} p{t}"
        steps.append(
            Step(told, parts, ask="Which word will the decoder write first?" if t == 1 else "")
        )
    links = [arrow(f"word{t}", f"h{t}") for t in range(1, n + 1)]
    links += [arrow(f"h{t - 1}", f"h{t}", "state") for t in range(1, n + 1)]
    links.append(arrow(f"h{n}", "s0", "state", weights=[1.0]))
    for t in range(1, m + 1):
        links += [
            arrow(f"in{t}", f"s{t}"),
            arrow(f"s{t - 1}", f"s{t}", "state"),
            arrow(f"s{t}", f"out{t}", "weight"),
        ]
        links += [arrow(f"out{t - 1}", f"in{t}", drawn=False)] if t > 1 else []
    return Drawing(
        body,
        *links,
        alt=f"Above, the words {' '.join(said)}, each with an arrow to a column of cells, the"
        " encoder's state; an arrow goes from each state to the next. One thick arrow leads from"
        " the last state down to the decoder, whose states stand side by side: each reads the word"
        " before and writes the next.",
        steps=steps,
        **options,
    )
