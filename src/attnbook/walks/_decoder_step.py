"""One step of a decoder with attention, in Bahdanau's or in Luong's order."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.model.recording import calls
from attnbook.model.seq2seq import Decoder, Encoder, LuongDecoder, Seq2Seq
from attnbook.show.drawing import (
    SMALL,
    Arrow,
    Part,
    arrow,
    bars,
    box,
    cells,
    column,
    grid,
    row,
    space,
    text,
)
from attnbook.walks._pieces import brief, products, small, strip, towers, upright, written_sum
from attnbook.walks._unrolled import check_layers, spelled
from attnbook.web import Drawing, Step

TOWER = 5  # numbers shown of an encoder's state


@dataclass(frozen=True)
class Made:
    """What a decoder computes in one step; vectors are `[d_model]`."""

    first: bool  # whether it attends before it updates its state
    said: list[str]  # words of the source
    done: list[str]  # tokens written before, start token included
    query: Tensor
    keys: Tensor  # [word d_model]
    scores: Tensor  # [word]
    weights: Tensor  # [word]
    context: Tensor
    word: Tensor  # the embedding of the last token
    before: Tensor  # the state
    moved: Tensor  # the new state
    joined: Tensor  # what the linear layer reads
    names: list[str]  # of the likeliest tokens, best first
    logits: Tensor  # of these
    shares: Tensor  # of these
    then: Tensor  # [word] the weights of the next step
    over: bool  # whether the written token ends the translation

    @property
    def predicts(self) -> str:
        """The name of the vector from which the logits are computed."""
        return "next" if self.first else "joined"


def decoder_step(
    model: Seq2Seq, words: str, *, step: int = 1, top: int = 4, **options: Any
) -> Drawing:
    """One step of a decoder with attention: scores, weights, context, next state, the word written.

    `Decoder` attends first, with the previous state; `LuongDecoder` first updates its state, then
    attends with the new one. Earlier tokens are the model's own, from greedy decoding.

    Args:
        model: a one-layer model with attention; the first numbers of its vectors are shown.
        words: a source sentence, about two to six words.
        step: the output token that is shown, from 1.
        top: how many of the most likely tokens are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model is of another kind, there are no words, the model writes fewer than
            `step` tokens, `top` is above 6, or the sentence is too wide for the drawing.
        KeyError: if a word is not in the vocabulary.

    Source: Bahdanau et al. 2015, section 3.1, figure 1; Luong et al. 2015, section 3, figure 2.
    """
    wanted = "a Decoder with a score or a LuongDecoder"
    check_layers(model, (Decoder, LuongDecoder), wanted)
    if model.decoder.attention is None:
        raise ValueError(f"model must have {wanted}, got a decoder without attention")
    vocab, said = model.decoder.vocab, words.split()
    check_whole(1, step=step, top=top)
    check_range(1, min(6, len(vocab) - len(vocab.barred)), top=top)
    check_range(1, 12, words=len(said))
    source = torch.tensor([model.encoder.vocab.encode(said)])
    tokens = model.translate(source, max_len=max(step, 32)).tokens[0].tolist()
    check_range(1, len(tokens), step=step)
    made = _made(model, said, source, tokens[:step], top)
    walk = _look_and_move(made) if made.first else _move_and_look(made)
    steps = [_read(made, model.encoder), *walk, *_write(made, len(vocab))]
    return Drawing(
        _body(made),
        *_links(made, model.encoder.rnn.bidirectional),
        alt=f"One step of a decoder with attention, from top to bottom. The words {' '.join(said)},"
        " below each its state as a column of cells, a score, a weight as an upright bar, and the"
        " state again, from which an arrow as thick as the weight leads to the context. The context"
        f" {'and the state before make the next state' if made.first else 'joins the new state'}."
        " Bars of the likeliest tokens, and the one that is written.",
        steps=steps if made.over else [*steps, _next_look(made)],
        **options,
    )


@torch.no_grad()
def _made(model: Seq2Seq, said: list[str], source: Tensor, tokens: list[int], top: int) -> Made:
    """What is computed in the step that writes the last of these tokens."""
    decoder, vocab = model.decoder, model.decoder.vocab
    read = [vocab.bos, *tokens[:-1]]
    state = decoder.start(model.read(source))
    if len(read) > 1:
        _, state = decoder.step(torch.tensor([read[:-1]]), state)
    with calls(decoder) as seen:
        logits, state = decoder.step(torch.tensor([read[-1:]]), state)
    with calls(decoder) as later:
        decoder.step(torch.tensor([tokens[-1:]]), state)
    (query, _), scores = seen["attention.scores"]
    (weights, keys), context = seen["attention.combine"]
    (_, before), moved = seen["cells.0"]
    never = torch.tensor(vocab.barred).long()
    best = logits[0].index_fill(0, never, -torch.inf).topk(top).indices
    return Made(
        first=not isinstance(decoder, LuongDecoder),
        said=said,
        done=[spelled(vocab, token) for token in read],
        query=query[0],
        keys=keys[0],
        scores=scores[0, 0],
        weights=weights[0, 0],
        context=context[0, 0],
        word=seen["embedding"][1][0],
        before=before[0],
        moved=moved[0],
        joined=seen["out"][0][0][0],
        names=[spelled(vocab, int(i)) for i in best],
        logits=logits[0, best],
        shares=logits[0].softmax(-1)[best],
        then=later["attention.combine"][0][0][0, 0],
        over=tokens[-1] == vocab.eos,
    )


def _body(made: Made) -> Part:
    done = [box(each, name="written", size=SMALL) for each in made.done]
    opening, closing = _around_the_look(made)
    rows = [
        [small("written", "written"), row(*done, gap=4)],
        *opening,
        space(14),
        _stacks(made),
        space(14),
        *closing,
        space(10),
        _numbered(made),
        space(6),
        bars(made.names, made.shares, name="bars"),
        space(6),
        ["written", box(made.names[0], "weight", name="answer")],
    ]
    if not made.over:
        words, widths = _labels(made.said, "next-words")
        rows += [
            space(10),
            small("the next step's weights", "then"),
            grid([_uprights(made.then, widths, "then"), words], gap=(7, 4)),
        ]
    return grid(rows, align="rl", gap=(10, 7))


def _around_the_look(made: Made) -> tuple[list[Any], list[Any]]:
    """The vectors above the encoder's states and below them, in the decoder's order."""
    word = [f"word “{made.done[-1]}”", strip("word", made.word)]
    before = ["state before", strip("before", made.before)]
    context = ["context", strip("context", made.context, "value")]
    if made.first:
        opening = [["state before", strip("query", made.query, "query")]]
        closing = [context, word, before, space(10), ["next state", strip("next", made.moved)]]
    else:
        opening = [word, before, space(10), ["new state", strip("query", made.moved, "query")]]
        again = ["new state", strip("again", made.moved, "query")]
        closing = [context, again, space(10), ["joined", strip("joined", made.joined)]]
    return opening, closing


def _labels(said: list[str], name: str) -> tuple[list[Part], list[float]]:
    """The words as labels, and the widths of their columns."""
    labels = [text(word, name=name, size=SMALL) for word in said]
    return labels, [max(30.0, each.width) for each in labels]


def _uprights(shares: Tensor, widths: list[float], name: str) -> list[Part]:
    return [upright(a, width, name) for a, width in zip(shares, widths, strict=True)]


def _stacks(made: Made) -> Part:
    """Below each word: its state as a key, its score and weight, and its state as a value."""
    scores, (words, widths) = made.scores, _labels(made.said, "words")
    span = (min(0.0, float(scores.min())), max(float(scores.abs().max()), 1e-6))
    scored = [
        cells([e], "weight", name="scores", digits=1, span=span, width=width)
        for e, width in zip(scores, widths, strict=True)
    ]
    weighted = _uprights(made.weights, widths, "weights")
    keys, values = (
        towers(name, made.keys, role, TOWER)
        for name, role in (("keys", "key"), ("values", "value"))
    )
    return grid([words, keys, scored, weighted, values], gap=(7, 20))


def _numbered(made: Made) -> Part:
    """The likeliest tokens, each above its logit."""
    pairs = [
        column(
            text(name, name="likely", size=SMALL),
            cells([logit], "weight", name="logits", digits=1, width=46),
            gap=3,
        )
        for name, logit in zip(made.names, made.logits, strict=True)
    ]
    return row(*pairs, gap=8)


def _links(made: Made, both_ways: bool) -> list[Arrow]:
    neighbours = [(f"keys.{j}", f"keys.{j + 1}") for j in range(len(made.said) - 1)]
    if both_ways:
        neighbours += [(b, a) for a, b in neighbours]
    into = [("context", "next"), ("word", "next"), ("before", "next")]
    if not made.first:
        into = [("word", "query"), ("before", "query"), ("context", "joined"), ("again", "joined")]
    return [
        *(arrow(a, b, "key") for a, b in neighbours),
        arrow("query", "words", "query"),
        arrow("keys", "scores", "key"),
        arrow("scores", "weights", "weight", drawn=False),
        arrow("keys", "values", "value", drawn=False),
        arrow("values", "context", "value", weights=made.weights),
        *(arrow(a, b, drawn=False) for a, b in into),
        arrow("query", "before" if made.first else "again", drawn=False),
        arrow(made.predicts, "logits", "weight", drawn=False),
        arrow("logits", "bars.*", drawn=False),
    ]


def _read(made: Made, encoder: Encoder) -> Step:
    ways = "from both ends" if encoder.rnn.bidirectional else "from left to right"
    return Step(
        f"The encoder has read [{len(made.said)} words](words) {ways}. It kept a [state](keys) for"
        f" each, of {encoder.d_model} numbers. Of each, the first {TOWER} numbers are drawn: pale"
        " is negative, deep is positive.",
        "words keys",
    )


def _look_and_move(made: Made) -> list[Step]:
    """The steps in Bahdanau's order."""
    return [
        Step(_remembered(made, "query"), "written query"),
        Step(
            "The [state before](query) asks: it is the query. Each state of the encoder answers as"
            " a [key](keys): the decoder looks first, and moves later.",
            "query",
        ),
        *_look(made),
        Step(f"Now the decoder moves. Its GRU reads the context, the {_last_word(made)} …", "word"),
        Step("… and the [state before](before), which has asked.", "before"),
        Step("That makes the [next state](next). It is the query of the next step.", "next"),
    ]


def _move_and_look(made: Made) -> list[Step]:
    """The steps in Luong's order."""
    return [
        Step(_remembered(made, "before"), "written before"),
        Step(f"Move first: the GRU reads the {_last_word(made)}, and its [state](before).", "word"),
        Step("That makes the [new state](query), which knows that word already.", "query"),
        Step(
            "The [new state](query) asks: it is the query. Each state of the encoder answers as a"
            " [key](keys)."
        ),
        *_look(made),
        Step("Context and [new state](again) stand together …", "again"),
        Step("… and a matrix and a tanh [join](joined) them.", "joined"),
    ]


def _remembered(made: Made, state: str) -> str:
    written = " ".join(made.done[1:])
    if not written:
        return (
            f"The decoder has only a [start token](written). Its [state]({state}) is still what the"
            " encoder handed over."
        )
    return (
        f"The decoder has written [“{written}”](written). Its [state]({state}), also"
        f" {len(made.before)} numbers, is what it remembers."
    )


def _last_word(made: Made) -> str:
    if len(made.done) == 1:
        return "[start token](word)"
    return f"[word](word) “{made.done[-1]}”, which was written last"


def _look(made: Made) -> list[Step]:
    """From scores to the context: the same in both orders."""
    scores, weights = made.scores, made.weights
    best, most = int(scores.argmax()), brief(scores.max(), 1)
    return [
        Step(
            "Query and key together give a [score](scores), one for each word. The largest is"
            f" [{most}](scores.{best}), of “{made.said[best]}”.",
            "scores",
            ask="At which word will the decoder look, to write what comes next?",
        ),
        Step(
            "A softmax makes [weights](weights) of the scores: positive, and 1 in sum."
            f" “{made.said[int(weights.argmax())]}” gets {float(weights.max()):.2f}.",
            "weights",
        ),
        Step("The same states once more, now as [values](values).", "values"),
        Step(
            "The [context](context) is the sum of the [values](values), each times its weight: the"
            " thicker the arrow, the more of it. The first number:"
            f" {products(weights, made.keys[:, 0])} = {written_sum([float(made.context[0])])}.",
            "context",
        ),
    ]


def _write(made: Made, n_tokens: int) -> list[Step]:
    likeliest, vector = made.names[0], "next state" if made.first else "joined vector"
    return [
        Step(
            f"A linear layer makes of the [{vector}]({made.predicts}) one score, a [logit](logits),"
            f" for each of {n_tokens} tokens. Here are the {len(made.names)} largest.",
            "likely logits",
        ),
        Step(
            f"A softmax over all of them makes [probabilities](bars). “{likeliest}” gets"
            f" {float(made.shares[0]):.2f}.",
            "bars",
        ),
        Step(
            f"The likeliest, [“{likeliest}”](answer), is written. "
            + ("The translation ends here." if made.over else "The next step will read it."),
            "answer",
        ),
    ]


def _next_look(made: Made) -> Step:
    return Step(
        f"The next step's [weights](then). “{made.said[int(made.then.argmax())]}” gets"
        f" {float(made.then.max()):.2f}.",
        "then next-words",
        ask=f"“{made.names[0]}” is written. At which word will the decoder look next?",
    )
