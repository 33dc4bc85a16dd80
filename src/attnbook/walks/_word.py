"""The path of a masked word through BERT."""

from typing import Any

from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.model.bert import Bert, pack
from attnbook.show.drawing import (
    SMALL,
    Arrow,
    Part,
    arrow,
    bars,
    box,
    brace,
    cells,
    column,
    grid,
    row,
    space,
    text,
)
from attnbook.text.tokenizers import WordPiece
from attnbook.walks._pieces import Likely, scored, strip, towers, written_sum
from attnbook.walks._recorded import Spot
from attnbook.walks._word_way import Way, measured
from attnbook.web import Drawing, Step

TOWER = 5  # numbers shown of a key or a value


def masked_word(
    model: Bert,
    tokenizer: WordPiece,
    words: str,
    *,
    answer: str = "",
    layer: int = 0,
    head: int = 0,
    top: int = 5,
    **options: Any,
) -> Drawing:
    """The path of a masked word, from its id to a probability for every word.

    Args:
        model: the first `SHOWN` numbers of its vectors are shown.
        tokenizer: the model's.
        words: a short text with one `[MASK]`, about seven tokens.
        answer: the masked word, to be shown at the end; "" for none.
        layer, head: indices of the layer and of the head that are shown.
        top: how many of the most likely words are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there is not exactly one `[MASK]`, there is no such layer or head, `top` is
            above the number of tokens, or the text is too long for the drawing.
    """
    before, mask, after = words.partition("[MASK]")
    if not mask or "[MASK]" in after:
        raise ValueError(f"words must have one [MASK], got {words!r}")
    config = model.stack.config
    check_whole(0, layer=layer, head=head)
    check_range(0, config.n_layers - 1, layer=layer)
    check_range(0, config.n_heads - 1, head=head)
    check_whole(1, top=top)
    check_range(1, len(tokenizer.vocab), top=top)
    left, right = tokenizer.encode(before), tokenizer.encode(after)
    ids = [*left, tokenizer.mask, *right]
    tokens = pack(tokenizer.vocab, [ids], max_len=len(ids) + 2).tokens
    way = measured(model, tokenizer, tokens, Spot(len(left) + 1, layer, head), top)
    return Drawing(
        _body(way),
        *_links(way),
        alt=f"One way from top to bottom: the tokens {' '.join(way.said)}, the vectors of [MASK],"
        " attention in one head, all heads, the feed-forward network, the blocks, and bars of the"
        " likeliest words.",
        steps=[
            *_entering(way),
            *_attending(way),
            *_through_the_layers(way),
            *_answering(way.likely, len(tokenizer.vocab), answer),
        ],
        **options,
    )


def _body(way: Way) -> Part:
    (_, layer, head), likely = way.spot, way.likely
    boxes = _boxes(way)
    return grid(
        [
            grid([boxes, [text(str(i), name="ids", size=SMALL) for i in way.ids]], gap=(3, 4)),
            space(10),
            *_beginning(way),
            space(12),
            ["query", strip("query", way.head.query, "query")],
            space(12),
            _attention(way, boxes),
            space(12),
            [f"head {head + 1}", strip("mixed", way.heads[head], "value")],
            space(12),
            _all_heads(way),
            space(12),
            ["update", strip("out", way.update)],
            ["+ state", strip("kept", way.states[layer])],
            [way.order, strip("joined", way.joined)],
            space(8),
            ["feed-forward", strip("fed", way.fed)],
            [way.order, strip("next", way.states[layer + 1])],
            space(12),
            _layers(way),
            space(12),
            ["last map", strip("turned", way.turned)],
            space(8),
            scored(likely, "embeddings", 2),
            space(12),
            bars(likely.names, likely.shares, name="bars"),
        ],
        align="rl",
        gap=(10, 7),
    )


def _boxes(way: Way) -> list[Part]:
    """The tokens as boxes, the mask in colour."""
    masked = [n == way.spot.place for n in range(len(way.said))]
    return [
        box(each, "state" * here, name="mask" if here else "words", size=SMALL, width=32)
        for each, here in zip(way.said, masked, strict=True)
    ]


def _beginning(way: Way) -> list[Any]:
    """The vectors that the mask starts from, and the state that enters the layer."""
    place, layer, _ = way.spot
    told = {"token": "[MASK] itself", "segment": "+ segment A", "position": f"+ place {place}"}
    rows: list[Any] = [[told[kind], strip(kind, x)] for kind, x in way.vectors.items()]
    if way.sum is not None:
        rows.append(["= sum", strip("sum", way.sum)])
    rows.append(["state", strip("state", way.states[0])])
    if layer:
        rows.append([f"after block {layer}", strip("before", way.states[layer])])
    return rows


def _attention(way: Way, boxes: list[Part]) -> Part:
    """Each token's key, score, weight and value; score and weight are as wide as its box."""

    def numbers(name: str, values: Tensor) -> list[Part]:
        span = (min(0.0, float(values.min())), float(values.abs().max()) or 1.0)
        look = {"name": name, "digits": 2, "span": span}
        return [
            cells([x], "weight", width=each.width, **look)
            for each, x in zip(boxes, values, strict=True)
        ]

    columns = towers("keys", way.head.keys, "key", TOWER, width=20)
    keys = [
        column(text(each, size=SMALL, name="again"), key, gap=4)
        for each, key in zip(way.said, columns, strict=True)
    ]
    scores, weights = numbers("scores", way.head.scores), numbers("weights", way.head.weights)
    values = towers("values", way.head.values, "value", TOWER, width=20)
    return grid([keys, scores, weights, values], gap=(3, 22))


def _all_heads(way: Way) -> Part:
    joint = [
        cells(z[:4], "value", name="this" if n == way.spot.head else "heads", width=16, height=16)
        for n, z in enumerate(way.heads)
    ]
    return brace(row(*joint), f"{len(joint)} heads side by side", name="all-heads")


def _layers(way: Way) -> Part:
    """The state after each layer, and the word that it would predict."""
    rows = [
        [f"block {n}", cells(x[:4], "state", name="layers", digits=1), f"“{word}”"]
        for n, (x, word) in enumerate(zip(way.states[1:], way.early, strict=True), 1)
    ]
    return grid(rows, align="rl", gap=(10, 5))


def _links(way: Way) -> list[Arrow]:
    normed, weights = way.sum is not None, way.head.weights
    return [
        *(arrow(kind, "sum" if normed else "state", drawn=False) for kind in way.vectors),
        *([arrow("sum", "state", drawn=False)] if normed else []),
        arrow(way.asks, "query", "query"),
        arrow("query", "again", "query"),
        arrow("keys", "scores", "key"),
        arrow("scores", "weights", "weight"),
        arrow("weights", "values", "weight", weights=weights),
        arrow("values", "mixed", "value", weights=weights),
        arrow("mixed", "this", "value"),
        arrow("this", "out"),
        *(arrow(part, "joined", drawn=False) for part in ("out", "kept")),
        *(arrow(part, "next", drawn=False) for part in ("joined", "fed")),
        arrow("turned", "logits", drawn=False),
        arrow("logits", "bars.*", drawn=False),
    ]


def _entering(way: Way) -> list[Step]:
    """From the text to the state that enters the layer."""
    kinds, layer = [*way.vectors], way.spot.layer
    steps = [
        Step(
            f"{len(way.said)} [tokens](words), one of them a [mask](mask). The model reads the"
            " number of each, its [id](ids).",
            "words mask ids",
        ),
        Step(
            f"The mask begins as {len(kinds)} learnt vectors: of [itself](token)"
            + ", of its [segment](segment)" * ("segment" in kinds)
            + ", of its [place](position)" * ("position" in kinds)
            + ".",
            kinds,
        ),
        Step("Their sum is its [state](state) for now.", "state")
        if way.sum is None
        else Step("Their [sum](sum), normalised, is its [state](state) for now.", "sum state"),
    ]
    if layer:
        steps.append(Step(f"After block {layer}, the state is [this](before).", "before"))
    return steps


def _attending(way: Way) -> list[Step]:
    """From the query to the head's answer."""
    (_, layer, head), weights, d = way.spot, way.head.weights, len(way.head.query)
    learnt = (
        "a learnt matrix turns" if way.config.norm == "post" else "a norm and a learnt matrix turn"
    )
    best = int(weights.argmax())
    return [
        Step(
            f"In head {head + 1} of block {layer + 1}, {learnt} the [state]({way.asks}) into a"
            f" [query](query) of {d} numbers.",
            "query",
        ),
        Step("A second matrix turns the state of every token into a [key](keys).", "again keys"),
        Step(
            f"[Query](query) times [key](keys), divided by √{d}, is a [score](scores). The largest"
            f" is {written_sum([float(way.head.scores.max())])}.",
            "scores",
            ask="Which token fits the query best? Compare the colours, then guess.",
        ),
        Step(
            "A softmax makes [weights](weights) of the [scores](scores), which sum to 1. The"
            f" largest, {float(weights[best]):.2f}, goes to “{way.said[best]}”.",
            "weights",
        ),
        Step("A third matrix turns the state of every token into a [value](values).", "values"),
        Step(
            "The head answers with the [sum](mixed) of the [values](values), each times its"
            " [weight](weights).",
            "mixed",
        ),
    ]


def _through_the_layers(way: Way) -> list[Step]:
    """From all heads to the state after the last layer."""
    return [
        Step(
            "The [other heads](heads) have asked in their own way. Their answers stand beside"
            " [this one](this).",
            "all-heads",
        ),
        Step("A fourth matrix mixes all of them into an [update](out) of the state.", "out"),
        Step(
            "The [update](out) is added to the [state](kept) as it was. That is the"
            f" [{way.order}](joined).",
            "kept joined",
        ),
        Step(
            "The [feed-forward network](fed) reads that one vector alone. Its answer is added, too:"
            f" the [state](next) after block {way.spot.layer + 1}.",
            "fed next",
        ),
        Step(
            f"The [{way.config.n_layers} blocks](layers) do the same with other matrices. On the"
            " right stands the word that the model would say if it stopped there.",
            "layers",
            ask="Which word would you write?",
        ),
    ]


def _answering(likely: Likely, n_words: int, answer: str) -> list[Step]:
    return [
        Step("After the last block, one more [map](turned) prepares the answer.", "turned"),
        Step(
            "Its product with the [vector](embeddings) of a word, plus a number of the word's own,"
            f" is that word's [logit](logits). Here are the largest of {n_words:,}.",
            "embeddings logits",
        ),
        Step(
            f"A softmax over all words makes [probabilities](bars). “{likely.names[0]}” gets"
            f" {float(likely.shares[0]):.2f}." + f" The masked word was “{answer}”." * bool(answer),
            "bars",
        ),
    ]
