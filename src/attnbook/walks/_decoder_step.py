"""One step of a decoder with attention, in Bahdanau's or in Luong's order."""

from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.model.recording import calls
from attnbook.model.seq2seq import Decoder, LuongDecoder, Seq2Seq
from attnbook.show.drawing import (
    SMALL,
    Box,
    Number,
    Part,
    Stroke,
    Words,
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
from attnbook.walks._input import SHOWN, written_sum
from attnbook.walks._unrolled import check_layers, spelled
from attnbook.web import Drawing, Step

TOWER, TALL = 5, 44  # numbers of an encoder's state; units of a weight of 1


def decoder_step(
    model: Seq2Seq, words: str, *, step: int = 1, top: int = 4, **options: Any
) -> Drawing:
    """One step of a decoder with attention: scores, weights, context, next state, the word written.

    `Decoder` attends first, with the previous state; `LuongDecoder` first updates its state and
    attends with the new one. Earlier tokens are the model's own, by greedy decoding.

    Args:
        model: a model of one layer, with attention; the first numbers of its vectors are shown.
        words: a source sentence, about two to six words.
        step: the output token that is shown, from 1.
        top: number of most likely tokens that are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model does not fit, there are no words, the model writes fewer than
            `step` tokens, `top` is above 6, or the sentence is too wide for the drawing.
        KeyError: if a word is not in the vocabulary.

    Source: Bahdanau et al. 2015, section 3.1, figure 1; Luong et al. 2015, section 3, figure 2.
    """
    wanted = "a Decoder with a score or a LuongDecoder"
    check_layers(model, (Decoder, LuongDecoder), wanted)
    encoder, decoder = model.encoder, model.decoder
    if decoder.attention is None:
        raise ValueError(f"model must have {wanted}, got a decoder without attention")
    said, vocab = words.split(), decoder.vocab
    check_whole(1, step=step, top=top)
    check_range(1, min(6, len(vocab) - 2), top=top)
    check_range(1, 12, words=len(said))
    source = torch.tensor([encoder.vocab.encode(said)])
    tokens = model.translate(source, max_len=max(step, 32)).tokens[0].tolist()
    check_range(1, len(tokens), step=step)
    before = [vocab.bos, *tokens[: step - 1]]
    with torch.no_grad():
        memory = model.read(source)
        state = decoder.start(memory)
        if step > 1:
            _, state = decoder.step(torch.tensor([before[:-1]]), state)
        with calls(decoder) as seen:
            logits, state = decoder.step(torch.tensor([before[-1:]]), state)
        with calls(decoder) as later:
            decoder.step(torch.tensor([tokens[step - 1 : step]]), state)
    first = not isinstance(decoder, LuongDecoder)  # whether it attends first
    (query, _), scores = seen["attention.scores"]
    (weights, keys), context = seen["attention.combine"]
    (_, hidden), moved = seen["cells.0"]
    scores, weights, context = scores[0, 0], weights[0, 0], context[0, 0]
    embedded, logits = seen["embedding"][1][0], logits[0]
    then = later["attention.combine"][0][0][0, 0]
    never = [*{vocab.pad, vocab.bos} - {vocab.eos}]
    best = logits.index_fill(0, torch.tensor(never), -torch.inf).topk(top).indices
    names = [spelled(vocab, int(i)) for i in best]
    done = [spelled(vocab, token) for token in before]
    n, last, over = len(said), done[-1], tokens[step - 1] == vocab.eos

    def strip(name: str, vector: Tensor, role: str = "state") -> Part:
        return row(cells(vector[:SHOWN], role, name=name, digits=2, width=36), "…", gap=4)

    labels = [text(word, name="words", size=SMALL) for word in said]
    wide = [max(30.0, each.width) for each in labels]

    def towers(name: str, role: str) -> list[Part]:
        high = float(keys[0, :, :TOWER].abs().max())
        look = {"down": True, "span": (-high, high), "width": 24, "height": 8}
        return [cells(h[:TOWER], role, name=name, **look) for h in keys[0]]

    span = (min(0.0, float(scores.min())), max(float(scores.abs().max()), 1e-6))
    scored = [
        cells([e], "weight", name="scores", digits=1, span=span, width=w)
        for e, w in zip(scores, wide, strict=True)
    ]
    stacks = grid(
        [
            labels,
            towers("keys", "key"),
            scored,
            [upright(a, w, "weights") for a, w in zip(weights, wide, strict=True)],
            towers("values", "value"),
        ],
        gap=(7, 20),
    )
    said_before = [
        text("written", size=SMALL, beside="written"),
        row(*(box(each, name="written", size=SMALL) for each in done), gap=4),
    ]
    asks = "state before" if first else "new state"
    most = f"{float(scores.max()):z.1f}".replace("-", "−")
    word = f"[word](word) “{last}”, which was written last" if step > 1 else "[start token](word)"
    if first:
        opening = [["state before", strip("query", query[0], "query")]]
        closing = [
            ["context", strip("context", context, "value")],
            [f"word “{last}”", strip("word", embedded)],
            ["state before", strip("before", hidden[0])],
            space(10),
            ["next state", strip("next", moved[0])],
        ]
    else:
        opening = [
            [f"word “{last}”", strip("word", embedded)],
            ["state before", strip("before", hidden[0])],
            space(10),
            ["new state", strip("query", moved[0], "query")],
        ]
        closing = [
            ["context", strip("context", context, "value")],
            ["new state", strip("again", moved[0], "query")],
            space(10),
            ["joined", strip("joined", seen["out"][0][0][0])],
        ]
    predicts, predictor = ("next", "next state") if first else ("joined", "joined vector")
    numbered = [
        column(
            text(each, name="likely", size=SMALL),
            cells([logits[i]], "weight", name="logits", digits=1, width=46),
            gap=3,
        )
        for each, i in zip(names, best, strict=True)
    ]
    again = [
        *(text(word, name="next-words", size=SMALL) for word in said),
    ]
    then_row = grid(
        [[upright(a, w, "then") for a, w in zip(then, wide, strict=True)], again], gap=(7, 4)
    )
    look = [
        Step(
            f"The [{asks}](query) asks: it is the query. Each state of the encoder answers as a"
            " [key](keys)"
            + "." * (not first)
            + ": the decoder looks first, and moves later." * first,
            "query" if first else (),
        ),
        Step(
            "Query and key together give a [score](scores), one for each word. The largest is"
            f" [{most}](scores.{int(scores.argmax())}), of"
            f" “{said[int(scores.argmax())]}”.",
            "scores",
            ask="At which word will the decoder look, to write what comes next?",
        ),
        Step(
            "A softmax makes [weights](weights) of the scores: positive, and 1 in sum."
            f" “{said[int(weights.argmax())]}” gets {float(weights.max()):.2f}.",
            "weights",
        ),
        Step("The same states once more, now as [values](values).", "values"),
        Step(
            "The [context](context) is the sum of the [values](values), each times its weight: the"
            " thicker the arrow, the more of it. The first number:"
            f" {products(weights, keys[0, :, 0])} = {written_sum([float(context[0])])}.",
            "context",
        ),
    ]
    remembers = (
        f"The decoder has written [“{' '.join(done[1:])}”](written). Its [state](before), also"
        f" {decoder.d_model} numbers, is what it remembers."
        if step > 1
        else "The decoder has only a [start token](written). Its [state](before) is still what the"
        " encoder handed over."
    )
    if first:
        move = [
            Step(
                f"Now the decoder moves. Its GRU reads the context, the {word} …",
                "word",
            ),
            Step("… and the [state before](before), which has asked.", "before"),
            Step(
                "That makes the [next state](next). It is the query of the next step.",
                "next",
            ),
        ]
        walk = [
            Step(remembers.replace("(before)", "(query)"), "written query"),
            *look,
            *move,
        ]
    else:
        walk = [
            Step(remembers, "written before"),
            Step(f"Move first: the GRU reads the {word}, and its [state](before).", "word"),
            Step("That makes the [new state](query), which knows that word already.", "query"),
            *look,
            Step("Context and [new state](again) stand together …", "again"),
            Step("… and a matrix and a tanh [join](joined) them.", "joined"),
        ]
    ways = "from both ends" if encoder.rnn.bidirectional else "from left to right"
    steps = [
        Step(
            f"The encoder has read [{n} words](words) {ways}. It kept a [state](keys) for each, of"
            f" {encoder.d_model} numbers. {TOWER} are shown: the larger, the deeper the colour.",
            "words keys",
        ),
        *walk,
        Step(
            f"A linear layer makes of the [{predictor}]({predicts}) one score, a [logit](logits),"
            f" for each of {len(vocab)} tokens. Here are the {top} largest.",
            "likely logits",
        ),
        Step(
            f"A softmax over all of them makes [probabilities](bars). “{names[0]}” gets"
            f" {float(logits.softmax(-1)[best[0]]):.2f}.",
            "bars",
        ),
        Step(
            f"The likeliest, [“{names[0]}”](answer), is written. "
            + ("The translation ends here." if over else "The next step will read it."),
            "answer",
        ),
    ]
    if not over:
        steps.append(
            Step(
                "The next step's [weights](then). “"
                f"{said[int(then.argmax())]}” gets {float(then.max()):.2f}.",
                "then next-words",
                ask=f"“{names[0]}” is written. At which word will the decoder look next?",
            )
        )
    body = grid(
        [
            said_before,
            *opening,
            space(14),
            stacks,
            space(14),
            *closing,
            space(10),
            row(*numbered, gap=8),
            space(6),
            bars(names, logits.softmax(-1)[best], name="bars"),
            space(6),
            ["written", box(names[0], "weight", name="answer")],
            *(
                []
                if over
                else [
                    space(10),
                    text("the next step's weights", size=SMALL, beside="then"),
                    then_row,
                ]
            ),
        ],
        align="rl",
        gap=(10, 7),
    )
    neighbours = [(f"keys.{j}", f"keys.{j + 1}") for j in range(n - 1)]
    if encoder.rnn.bidirectional:
        neighbours += [(b, a) for a, b in neighbours]
    into = [("context", "next"), ("word", "next"), ("before", "next")]
    if not first:
        into = [("word", "query"), ("before", "query"), ("context", "joined"), ("again", "joined")]
    return Drawing(
        body,
        *(arrow(a, b, "key") for a, b in neighbours),
        arrow("query", "words", "query"),
        arrow("keys", "scores", "key"),
        arrow("scores", "weights", "weight", drawn=False),
        arrow("keys", "values", "value", drawn=False),
        arrow("values", "context", "value", weights=weights),
        *(arrow(a, b, drawn=False) for a, b in into),
        arrow("query", "before" if first else "again", drawn=False),
        arrow(predicts, "logits", "weight", drawn=False),
        arrow("logits", "bars.*", drawn=False),
        alt=f"One step of a decoder with attention, from top to bottom. The words {' '.join(said)},"
        " below each its state as a column of cells, a score, a weight as an upright bar, and the"
        " state again, from which an arrow as thick as the weight leads to the context. The context"
        f" {'and the state before make the next state' if first else 'joins the new state'}."
        " Bars of the likeliest tokens, and the one that is written.",
        steps=steps,
        **options,
    )


def products(weights: Tensor, values: Tensor) -> str:
    """0.93 · 0.41 + 0.06 · 0.12 + … with the two largest weights."""
    order = weights.argsort(descending=True)[:2]
    terms = [f"{float(weights[j]):.2f} · {float(values[j]):z.2f}".replace("-", "−") for j in order]
    return " + ".join(terms) + " + …" * (len(weights) > 2)


def upright(share: Tensor, width: Number, name: str) -> Part:
    """A share in 0..1 as an upright bar, with its number above.

    The bar is a zigzag line: a box would show its height before it appears.
    """
    left, foot, tall = width / 2 - 8, 16 + TALL, TALL * float(share)
    turns = max(2, round(tall / 2.5) + 1)
    line = [
        (left + 16 * ((n + side) % 2), foot - 1 - max(0.0, tall - 2) * n / (turns - 1))
        for n in range(turns)
        for side in (0, 1)
    ]
    marks = (
        Box(left - 2, 16, 20, TALL, "cell", 0),
        Stroke(tuple(line), "line", width=3 if tall > 3 else 1),
        Words(width / 2, 7, f"{float(share):.2f}", SMALL),
    )
    return Part(width, foot, marks, name, "weight", share[None].double().numpy())
