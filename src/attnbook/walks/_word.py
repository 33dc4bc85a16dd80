"""The path of a masked word through BERT."""

from typing import Any

import torch
from torch import Tensor, nn

from attnbook.checks import check_range, check_whole
from attnbook.model.bert import Bert, pack
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.show.drawing import (
    SMALL,
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
from attnbook.walks._input import SHOWN, added, written_sum
from attnbook.web import Drawing, Step


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
        layer, head: indices of the attention that is shown.
        top: number of most likely words that are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there is not one `[MASK]`, there is no such layer or head, or the text is too
            long for the drawing.
    """
    before, mask, after = words.partition("[MASK]")
    if not mask or "[MASK]" in after:
        raise ValueError(f"words must have one [MASK], got {words!r}")
    config, vocab = model.stack.config, tokenizer.vocab
    check_whole(0, layer=layer, head=head)
    check_range(0, config.n_layers - 1, layer=layer)
    check_range(0, config.n_heads - 1, head=head)
    ids = [*tokenizer.encode(before), tokenizer.mask, *tokenizer.encode(after)]
    place = len(tokenizer.encode(before)) + 1
    tokens = pack(vocab, [ids], max_len=len(ids) + 2).tokens
    with evaluating(model), calls(model) as seen:
        logits = model.word_logits(model(tokens))[0, place]
    vectors, block = added(model, seen), f"stack.blocks.{layer}"
    (q, k, *_), scores = seen[f"{block}.attention.scores"]
    (weights, v), _ = seen[f"{block}.attention.combine"]
    scores, weights = scores[0, head, place], weights[0, head, place]

    def gave(path: str) -> Tensor:
        return seen[path][1][0, place]

    def got(path: str) -> Tensor:
        return seen[path][0][0][0, place]

    heads = got(f"{block}.attention.out").chunk(config.n_heads)
    post = config.norm == "post"
    joined = gave(f"{block}.attention_norm") if post else got(f"{block}.feed_forward_norm")
    outputs = [gave(f"stack.blocks.{n}") for n in range(config.n_layers)]
    states = torch.stack([got("stack.blocks.0"), *outputs])
    with torch.no_grad():
        early = model.word_logits(model.stack.norm(states[1:, None]))[:, 0].argmax(-1)
    likeliest, shares = logits.topk(top).indices, logits.softmax(-1)
    names = [vocab.tokens[n] for n in likeliest]
    said = [vocab.tokens[n] for n in tokens[0]]

    def strip(name: str, vector: Tensor, role: str = "state") -> Part:
        return row(cells(vector[:SHOWN], role, name=name, digits=2, width=36), "…", gap=4)

    def columns(name: str, table: Tensor, role: str) -> list[Part]:
        high = float(table[:, :5].abs().max())
        look = {"down": True, "span": (-high, high), "width": 20, "height": 8}
        return [cells(x[:5], role, name=name, **look) for x in table]

    boxes = [
        box(each, "state" * here, name="mask" if here else "words", size=SMALL, width=32)
        for each, here in ((each, n == place) for n, each in enumerate(said))
    ]

    def per_token(name: str, values: Tensor) -> list[Part]:
        """A row with a number for each token, as wide as the token's box."""
        span = (min(0.0, float(values.min())), float(values.abs().max()))
        look = {"name": name, "digits": 2, "span": span}
        return [
            cells([x], "weight", width=each.width, **look)
            for each, x in zip(boxes, values, strict=True)
        ]

    order = "norm of the sum" if post else "sum"
    normed = not isinstance(model.stack.embedding_norm, nn.Identity)
    kinds = {"token": "[MASK] itself", "segment": "+ segment A", "position": f"+ place {place}"}
    kinds = {kind: told for kind, told in kinds.items() if kind in vectors}
    embedding = model.stack.embedding.weight[likeliest]
    ids_row = [text(str(int(n)), name="ids", size=SMALL) for n in tokens[0]]
    keys = [
        column(text(each, size=SMALL, name="again"), key, gap=4)
        for each, key in zip(said, columns("keys", k[0, head], "key"), strict=True)
    ]
    joint = [
        cells(z[:4], "value", name="this" if n == head else "heads", width=16, height=16)
        for n, z in enumerate(heads)
    ]
    depth = [
        [f"layer {n}", cells(x[:4], "state", name="layers", digits=1), f"“{vocab.tokens[guess]}”"]
        for n, (x, guess) in enumerate(zip(states[1:], early, strict=True), 1)
    ]
    products = [
        [
            names[n],
            cells(embedding[n, :4], name="embeddings", digits=2, width=36),
            cells(logits[likeliest[n], None], "weight", name="logits", digits=2, width=40),
        ]
        for n in range(top)
    ]
    body = grid(
        [
            grid([boxes, ids_row], gap=(3, 4)),
            space(10),
            *([told, strip(kind, vectors[kind][place])] for kind, told in kinds.items()),
            *([["= sum", strip("sum", vectors["sum"][place])]] if normed else []),
            ["state", strip("state", states[0])],
            *([[f"after layer {layer}", strip("before", states[layer])]] if layer else []),
            space(12),
            ["query", strip("query", q[0, head, place], "query")],
            space(12),
            grid(
                [
                    keys,
                    per_token("scores", scores),
                    per_token("weights", weights),
                    columns("values", v[0, head], "value"),
                ],
                gap=(3, 22),
            ),
            space(12),
            [f"head {head + 1}", strip("mixed", heads[head], "value")],
            space(12),
            brace(row(*joint), f"{config.n_heads} heads side by side", name="all-heads"),
            space(12),
            ["update", strip("out", gave(f"{block}.attention.out"))],
            ["+ state", strip("kept", states[layer])],
            [order, strip("joined", joined)],
            space(8),
            ["feed-forward", strip("fed", gave(f"{block}.feed_forward"))],
            [order, strip("next", states[layer + 1])],
            space(12),
            grid(depth, align="rl", gap=(10, 5)),
            space(12),
            ["last map", strip("turned", gave("words.norm"))],
            space(8),
            grid(products, align="rl", gap=(10, 3)),
            space(12),
            bars(names, shares[likeliest], name="bars"),
        ],
        align="rl",
        gap=(10, 7),
    )
    asks = "before" if layer else "state"
    links = [
        *(arrow(kind, "sum" if normed else "state", drawn=False) for kind in kinds),
        *([arrow("sum", "state", drawn=False)] if normed else []),
        arrow(asks, "query", "query"),
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
    d, best = q.shape[-1], int(weights.argmax())
    learnt = "a learnt matrix turns" if post else "a norm and a learnt matrix turn"
    steps = [
        Step(
            f"[{len(said) - 1} tokens](words) and a [mask](mask). The model reads the number of"
            " each, its [id](ids).",
            "words mask ids",
        ),
        Step(
            f"The mask begins as {len(kinds)} learnt vectors: of [itself](token)"
            + ", of its [segment](segment)" * ("segment" in kinds)
            + ", of its [place](position)" * ("position" in kinds)
            + ".",
            [*kinds],
        ),
        Step("Their [sum](sum), normalised, is its [state](state) for now.", "sum state")
        if normed
        else Step("Their sum is its [state](state) for now.", "state"),
        *([Step(f"After layer {layer}, the state is [this](before).", "before")] if layer else []),
        Step(
            f"In head {head + 1} of layer {layer + 1}, {learnt} the [state]({asks}) into a"
            f" [query](query) of {d} numbers.",
            "query",
        ),
        Step("A second matrix turns the state of every token into a [key](keys).", "again keys"),
        Step(
            f"[Query](query) times [key](keys), divided by √{d}, is a [score](scores). The largest"
            f" is {written_sum([float(scores.max())])}.",
            "scores",
            ask="Which token fits the query best? Compare the colours, then guess.",
        ),
        Step(
            "A softmax makes [weights](weights) of the [scores](scores), which sum to 1. The"
            f" largest, {float(weights[best]):.2f}, goes to “{said[best]}”.",
            "weights",
        ),
        Step("A third matrix turns the state of every token into a [value](values).", "values"),
        Step(
            "The head answers with the [sum](mixed) of the [values](values), each times its"
            " [weight](weights).",
            "mixed",
        ),
        Step(
            "The [other heads](heads) have asked in their own way. Their answers stand beside"
            " [this one](this).",
            "all-heads",
        ),
        Step("A fourth matrix mixes all of them into an [update](out) of the state.", "out"),
        Step(
            f"The [update](out) is added to the [state](kept) as it was. That is the"
            f" [{order}](joined).",
            "kept joined",
        ),
        Step(
            "The [feed-forward network](fed) reads that one vector alone. Its answer is added, too:"
            f" the [state](next) after layer {layer + 1}.",
            "fed next",
        ),
        Step(
            f"The [{config.n_layers} layers](layers) do the same with other matrices. On the right"
            " stands the word that the model would say if it stopped there.",
            "layers",
            ask="Which word would you write?",
        ),
        Step("After the last layer, one more [map](turned) prepares the answer.", "turned"),
        Step(
            "Its product with the [vector](embeddings) of a word, plus a number of the word's own,"
            f" is that word's [logit](logits). Here are the largest of {len(vocab):,}.",
            "embeddings logits",
        ),
        Step(
            f"A softmax over all words makes [probabilities](bars). “{names[0]}” gets"
            f" {float(shares.max()):.2f}." + f" The masked word was “{answer}”." * bool(answer),
            "bars",
        ),
    ]
    return Drawing(
        body,
        *links,
        alt=f"One way from top to bottom: the tokens {' '.join(said)}, the vectors of [MASK],"
        " attention in one head, all heads, the feed-forward network, the layers, and bars of the"
        " likeliest words.",
        steps=steps,
        **options,
    )
