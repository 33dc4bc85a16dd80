"""The path of a target token through a translator, from its id to scores for every word."""

from typing import Any

from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.model.transformer import Transformer, TransformerDecoder
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
from attnbook.walks._pieces import scored, small, strip, towers, written_sum
from attnbook.walks._recorded import Spot
from attnbook.walks._timeline_way import Attention, Way, measured
from attnbook.web import Drawing, Step

SHOWN, TOWER = 4, 3  # numbers shown of a vector, and of a key or a value in a column


def timeline(
    model: Transformer,
    source: str,
    target: str,
    *,
    place: int,
    layer: int = 0,
    head: int = 0,
    top: int = 3,
    **options: Any,
) -> Drawing:
    """One token of the target, from its id to the scores of the next, with both attention layers.

    Args:
        model: an English-to-German model with "pre" norms, added positions, and embeddings that are
            scaled and not normalised.
        source: a sentence of about five words.
        target: its translation, or the start of it, about five words.
        place: the position that is shown: 0 is the start token, 1 the first word, and so on.
        layer, head: indices of the block and of the head that are shown.
        top: how many of the most likely words are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model is of another kind, there is no such place, layer or head, `top` is
            above the number of words, or a sentence is empty or too long for the drawing.
        KeyError: if a word is not in the vocabulary.

    Source: Vaswani et al. 2017, section 3.1, figure 1.
    """
    config, vocab, words = model.decoder.stack.config, model.decoder.vocab, source.split()
    _check_fits(model.decoder)
    ids = [vocab.bos, *vocab.encode(target.split())]
    check_whole(0, place=place, layer=layer, head=head)
    check_whole(1, top=top)
    check_range(1, 12, source=len(words), target=len(ids) - 1)
    check_range(0, len(ids) - 1, place=place)
    check_range(0, config.n_layers - 1, layer=layer)
    check_range(0, config.n_heads - 1, head=head)
    way = measured(model, words, ids, Spot(place, layer, head), top)
    return Drawing(
        _body(way),
        *_attention_links(way.own, way.start),
        *_attention_links(way.cross, "own-sum"),
        *_links(way),
        alt=f"One way from top to bottom: the words {source} and a vector of each; the tokens"
        f" {' '.join(way.said)}; the vectors of {way.asks}; self-attention, with later tokens"
        " crossed out; cross-attention to the words; the feed-forward network; the vector after"
        " each block; the scores and bars of the likeliest words.",
        steps=[
            *_entering(way),
            *_own_attention(way),
            *_cross_attention(way),
            *_leaving(way, len(vocab)),
        ],
        **options,
    )


def _check_fits(decoder: TransformerDecoder) -> None:
    config = decoder.stack.config
    plain = config.embedding_scale and not config.embedding_norm
    whole = config.d_ff and config.residual and config.final_norm is not False
    if config.norm != "pre" or decoder.stack.positions is None or not (plain and whole):
        raise ValueError(
            "model must have norm 'pre', positions that are added, embeddings that are scaled and"
            f" not normalised, residuals, a feed-forward network and a last norm, got {config}"
        )


def _body(way: Way) -> Part:
    layer = way.spot.layer
    return grid(
        [
            *_texts(way),
            space(10),
            [f"“{way.asks}”", strip("token", way.token, shown=SHOWN)],
            [f"+ place {way.spot.place}", strip("position", way.state - way.token, shown=SHOWN)],
            ["x", strip("state", way.state, shown=SHOWN)],
            *(
                [[f"after block {layer}", strip("before", way.depth[layer], shown=SHOWN)]]
                if layer
                else []
            ),
            space(10),
            *_attention_rows(way.own, way.spot.head),
            space(10),
            *_attention_rows(way.cross, way.spot.head),
            space(10),
            ["feed-forward", strip("hidden", way.hidden, "", SHOWN)],
            ["update", strip("fed", way.fed, shown=SHOWN)],
            ["sum", strip("after", way.depth[layer + 1], shown=SHOWN)],
            space(10),
            _depth(way),
            space(10),
            ["last norm", strip("last", way.last, shown=SHOWN)],
            space(6),
            scored(way.likely, "rows", 1),
            space(8),
            bars(way.likely.names, way.likely.shares, name="bars"),
            ["written", box(way.likely.names[0], "weight", name="answer")],
        ],
        align="rl",
        gap=(10, 6),
    )


def _texts(way: Way) -> list[Part]:
    """The source with the encoder's vectors, and the target with its ids."""
    german = [
        box(each, "state" if n == way.spot.place else "", name="target", size=SMALL)
        for n, each in enumerate(way.said)
    ]
    ids = [text(str(i), name="ids", size=SMALL) for i in way.ids]
    return [
        small("English", "source"),
        row(*(box(each, name="source", size=SMALL) for each in way.words), gap=4),
        row(*towers("memory", way.memory, "key", TOWER, height=9), gap=14),
        space(6),
        small("German so far, and what follows", "target"),
        grid([german, ids], gap=(4, 4)),
    ]


def _attention_rows(attention: Attention, number: int) -> list[Any]:
    """The rows of an attention layer, from the query to the sum with its update."""
    kind, words, head, update, total = attention

    def columns(name: str, table: Tensor) -> list[Part]:
        return towers(f"{kind}-{name}s", table, name, TOWER, height=9)

    def numbers(name: str, values: Tensor) -> list[Part]:
        known = values[values.isfinite()]
        span = (min(0.0, float(known.min())), max(float(known.abs().max()), 1e-6))
        look = {"name": f"{kind}-{name}", "digits": 2, "span": span, "width": 38}
        return [cells([x], "weight", **look) for x in values]

    asked = [
        column(text(word, size=SMALL, name=f"{kind}-words"), key, gap=3)
        for word, key in zip(words, columns("key", head.keys), strict=True)
    ]
    scores, weights = numbers("scores", head.scores), numbers("weights", head.weights)
    return [
        ["query", strip(f"{kind}-query", head.query, "query", SHOWN)],
        space(14),
        grid([asked, scores, weights, columns("value", head.values)], gap=(4, 20)),
        space(14),
        [f"head {number + 1}", strip(f"{kind}-mixed", head.mixed, "value", SHOWN)],
        ["update", strip(f"{kind}-out", update, shown=SHOWN)],
        ["sum", strip(f"{kind}-sum", total, shown=SHOWN)],
    ]


def _depth(way: Way) -> Part:
    """The state after each block, and the word that it would write."""
    rows = [
        [f"after block {n}", cells(x[:TOWER], "state", name="depth"), f"“{word}”"]
        for n, (x, word) in enumerate(zip(way.depth[1:], way.written, strict=True), 1)
    ]
    return grid(rows, align="rl", gap=(10, 5))


def _attention_links(attention: Attention, asks: str) -> list[Arrow]:
    kind, weights = attention.kind, attention.head.weights
    return [
        arrow(asks, f"{kind}-query", "query"),
        arrow(f"{kind}-query", f"{kind}-words", "query"),
        arrow(f"{kind}-keys", f"{kind}-scores", "key"),
        arrow(f"{kind}-scores", f"{kind}-weights", "weight", drawn=False),
        arrow(f"{kind}-weights", f"{kind}-values", "weight", weights=weights),
        arrow(f"{kind}-values", f"{kind}-mixed", "value", weights=weights),
    ]


def _links(way: Way) -> list[Arrow]:
    """All arrows outside the attention layers."""
    return [
        arrow("source", "memory", "key", drawn=False),
        arrow(f"target.{way.spot.place}", "token", drawn=False),
        *(arrow(part, "state", drawn=False) for part in ("token", "position")),
        *(arrow(part, "own-sum", drawn=False) for part in ("own-out", way.start)),
        arrow("memory", "cross-keys", "key", drawn=False),
        arrow("cross-out", "cross-sum", drawn=False),
        *(arrow(part, "after", drawn=False) for part in ("fed", "cross-sum")),
        arrow("last", "logits", drawn=False),
        arrow("logits", "bars.*", drawn=False),
    ]


def _entering(way: Way) -> list[Step]:
    """From the words to the state that enters the block."""
    (place, layer, _), token = way.spot, way.token
    added = written_sum([float(token[0]), float((way.state - token)[0])])
    steps = [
        Step(
            f"The encoder has read [{len(way.words)} words](source) and made a [vector](memory) of"
            f" each. {TOWER} of its {way.config.d_model} numbers are drawn as stripes: the more"
            " colour, the larger; the least colour is the most negative.",
            "source memory",
        ),
        Step(
            f"The decoder has written as far as [“{way.asks}”](target.{place}). It reads the"
            " number of each token, its [id](ids)."
            + " What comes after stands there too, as in training."
            * (place < len(way.said) - 1),
            "target ids",
        ),
        Step(
            f"The id picks a learnt [vector](token), times √{way.config.d_model}. A"
            f" [vector of its place](position) is added. First number: {added} ="
            f" {written_sum([float(way.state[0])])}.",
            "token position state",
        ),
    ]
    if not layer:
        return steps
    through = (
        f"First {'block 1 works' if layer == 1 else f'blocks 1 to {layer} work'} on this vector, as"
        f" the next steps show of block {layer + 1}: each layer adds an update. [This](before)"
        " comes out."
    )
    return [*steps, Step(through, "before")]


def _own_attention(way: Way) -> list[Step]:
    weights = way.own.head.weights
    best = int(weights.argmax())
    return [
        Step(
            f"Self-attention in block {way.spot.layer + 1}, head {way.spot.head + 1}: a norm and a"
            " matrix make a [query](own-query) of x; each German token has a"
            " [key](own-keys).",
            "own-query own-words own-keys",
        ),
        Step(
            "Query times key, over the root of their size, is a [score](own-scores). The causal"
            " mask crosses out what comes later.",
            "own-scores",
            ask=f"Which German tokens may “{way.asks}” look at?",
        ),
        Step(
            f"A softmax makes [weights](own-weights) of them: {float(weights[best]):.2f} for"
            f" “{way.said[best]}”. The [values](own-values), so weighted, are the head's"
            " [answer](own-mixed).",
            "own-weights own-values own-mixed",
        ),
        Step(
            f"The answers of all {way.config.n_heads} heads, side by side, times a fourth matrix"
            " are an [update](own-out) of x.",
            "own-out",
        ),
        Step(f"The update and [x]({way.start}) are added: the [sum](own-sum).", "own-sum"),
    ]


def _cross_attention(way: Way) -> list[Step]:
    weights = way.cross.head.weights
    best = int(weights.argmax())
    return [
        Step(
            "Cross-attention: the sum makes a new [query](cross-query), but the [keys](cross-keys)"
            " are those of the English words.",
            "cross-query cross-words cross-keys",
        ),
        Step(
            f"[Scores](cross-scores), softmax, [weights](cross-weights): “{way.words[best]}” gets"
            f" {float(weights[best]):.2f}.",
            "cross-scores cross-weights",
            ask=f"After “{way.asks}”: at which English word should the decoder look?",
        ),
        Step(
            "The [values](cross-values) of the English words, so weighted, are the"
            " [answer](cross-mixed).",
            "cross-values cross-mixed",
        ),
        Step(
            f"Again all {way.config.n_heads} heads make an [update](cross-out), and it is"
            " [added](cross-sum).",
            "cross-out cross-sum",
        ),
    ]


def _leaving(way: Way, n_tokens: int) -> list[Step]:
    """From the feed-forward network to the word that is written."""
    hidden, likely = way.hidden, way.likely
    return [
        Step(
            f"The feed-forward network makes [{len(hidden)} hidden numbers](hidden), of which"
            f" {int((hidden > 0).sum())} are above 0, and of those its own [update](fed). The"
            f" [sum](after) leaves block {way.spot.layer + 1}.",
            "hidden fed after",
        ),
        Step(
            f"The [vector](depth) after each of the {way.config.n_layers} blocks, and the word that"
            " the decoder would write if it stopped there.",
            "depth",
            ask="Does the vector know the next word after one block already?",
        ),
        Step(
            "A [last norm](last). Its product with each word's [row](rows) of the output matrix is"
            f" that word's [score](logits), its logit. Here are the {len(likely.names)} largest of"
            f" {n_tokens}.",
            "last rows logits",
        ),
        Step(
            f"A softmax makes [probabilities](bars). “{likely.names[0]}” gets"
            f" {float(likely.shares[0]):.2f} and is [written](answer).",
            "bars answer",
        ),
    ]
