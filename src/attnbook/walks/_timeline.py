"""The path of a target token through a translator, from its id to scores for every word."""

from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.model.transformer import Transformer
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
from attnbook.walks._input import written_sum
from attnbook.walks._unrolled import spelled
from attnbook.web import Drawing, Step

SHOWN, TOWER = 4, 3  # numbers of a vector, side by side, and of a key or a value


def _strip(name: str, vector: Tensor, role: str = "state") -> Part:
    return row(cells(vector[:SHOWN], role, name=name, digits=2, width=36), "…", gap=4)


def _number(x: Tensor, name: str, values: Tensor) -> Part:
    known = values[values.isfinite()]
    span = (min(0.0, float(known.min())), max(float(known.abs().max()), 1e-6))
    return cells([x], "weight", name=name, digits=2, span=span, width=38)


def _towers(name: str, table: Tensor, role: str) -> list[Part]:
    high = float(table[:, :TOWER].abs().max())
    look = {"down": True, "span": (-high, high), "width": 24, "height": 9}
    return [cells(x[:TOWER], role, name=name, **look) for x in table]


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
    """One token of the target, from its id to the scores of the next: both attentions of a block.

    Args:
        model: with "pre" norms, added positions, and embeddings that are scaled and not normalised.
        source: a sentence of about five words.
        target: its translation, or the start of it, about five words.
        place: the position that is shown: 0 is the start token, 1 the first word, and so on.
        layer, head: indices of the attention that is shown.
        top: number of most likely words that are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the model does not fit, there is no such place, layer or head, `top` is above
            the number of words, or a sentence is empty or too long for the drawing.
        KeyError: if a word is not in the vocabulary.

    Source: Vaswani et al. 2017, section 3.1, figure 1.
    """
    decoder, config = model.decoder, model.decoder.stack.config
    plain = config.embedding_scale and not config.embedding_norm
    if config.norm != "pre" or decoder.stack.positions is None or not plain:
        raise ValueError(
            "model must have norm 'pre', positions that are added, and embeddings that are scaled"
            f" and not normalised, got {config}"
        )
    vocab, words = decoder.vocab, source.split()
    ids = [vocab.bos, *vocab.encode(target.split())]
    check_whole(0, place=place, layer=layer, head=head)
    check_whole(1, top=top)
    check_range(1, 12, source=len(words), target=len(ids) - 1)
    check_range(0, len(ids) - 1, place=place)
    check_range(0, config.n_layers - 1, layer=layer)
    check_range(0, config.n_heads - 1, head=head)
    said = [spelled(vocab, i) for i in ids]
    english = torch.tensor([model.encoder.vocab.encode(words)])
    allowed = torch.tensor([i not in (vocab.pad, vocab.bos) for i in range(len(vocab))])
    check_range(1, int(allowed.sum()), top=top)
    with evaluating(model), calls(model) as seen:
        logits = model(english, torch.tensor([ids]))[0, place]
    stack, block = "decoder.stack", f"decoder.stack.blocks.{layer}"

    def gave(path: str) -> Tensor:
        return seen[path][1][0, place]

    def got(path: str) -> Tensor:
        return seen[path][0][0][0, place]

    def boxes(tokens: list[str], name: str, role: str = "") -> list[Part]:
        return [
            box(each, "state" if name == "target" and n == place else role, name=name, size=SMALL)
            for n, each in enumerate(tokens)
        ]

    links: list[Arrow] = []
    weights: dict[str, Tensor] = {}

    def look(kind: str, path: str, asks: str, seen_words: list[str]) -> list[Any]:
        """The rows of an attention, from query to values and heads, and its arrows."""
        (q, k, *_), e = seen[f"{block}.{path}.scores"]
        _, mask = seen[f"{block}.{path}.weights"][0]
        (a, v), _ = seen[f"{block}.{path}.combine"]
        e, a = e[0, head, place], a[0, head, place]
        if mask is not None:
            rows = mask.expand(1, 1, len(ids), -1)
            e = e.masked_fill(~rows[0, 0, place], torch.nan)
        weights[kind] = a
        mixed = got(f"{block}.{path}.out").chunk(config.n_heads)[head]
        links.extend(
            [
                arrow(asks, f"{kind}-query", "query"),
                arrow(f"{kind}-query", f"{kind}-words", "query"),
                arrow(f"{kind}-keys", f"{kind}-scores", "key"),
                arrow(f"{kind}-scores", f"{kind}-weights", "weight", drawn=False),
                arrow(f"{kind}-weights", f"{kind}-values", "weight", weights=a),
                arrow(f"{kind}-values", f"{kind}-mixed", "value", weights=a),
            ]
        )
        asked = [
            column(text(word, size=SMALL, name=f"{kind}-words"), key, gap=3)
            for word, key in zip(
                seen_words, _towers(f"{kind}-keys", k[0, head], "key"), strict=True
            )
        ]
        return [
            ["query", _strip(f"{kind}-query", q[0, head, place], "query")],
            space(14),
            grid(
                [
                    asked,
                    [_number(x, f"{kind}-scores", e) for x in e],
                    [_number(x, f"{kind}-weights", a) for x in a],
                    _towers(f"{kind}-values", v[0, head], "value"),
                ],
                gap=(4, 20),
            ),
            space(14),
            [f"head {head + 1}", _strip(f"{kind}-mixed", mixed, "value")],
            ["update", _strip(f"{kind}-out", gave(f"{block}.{path}.out"))],
        ]

    blocks = [f"{stack}.blocks.{n}" for n in range(config.n_layers)]
    depth = [got(blocks[0]), *map(gave, blocks)]
    with torch.no_grad():
        early = decoder.logits(decoder.stack.norm(torch.stack(depth[1:])))
    written = [spelled(vocab, int(i)) for i in early.masked_fill(~allowed, -torch.inf).argmax(-1)]
    best = logits.masked_fill(~allowed, -torch.inf).topk(top).indices
    names, shares = [spelled(vocab, int(i)) for i in best], logits.softmax(-1)[best]
    matrix = (decoder.stack.embedding if decoder.head is None else decoder.head).weight
    token, summed = got(f"{stack}.positions"), gave(f"{stack}.positions")
    hidden = got(f"{block}.feed_forward.down")
    memory = seen["encoder"][1][0]
    start = "before" if layer else "state"
    body = grid(
        [
            text("English", size=SMALL, beside="source"),
            row(*boxes(words, "source"), gap=4),
            row(*_towers("memory", memory, "key"), gap=14),
            space(6),
            text("German so far, and what follows", size=SMALL, beside="target"),
            grid(
                [boxes(said, "target"), [text(str(i), name="ids", size=SMALL) for i in ids]],
                gap=(4, 4),
            ),
            space(10),
            [f"“{said[place]}”", _strip("token", token)],
            [f"+ place {place}", _strip("position", summed - token)],
            ["state", _strip("state", summed)],
            *([[f"after block {layer}", _strip("before", depth[layer])]] if layer else []),
            space(10),
            *look("own", "attention", start, said),
            ["sum", _strip("own-sum", got(f"{block}.cross_norm"))],
            space(10),
            *look("cross", "cross", "own-sum", words),
            ["sum", _strip("cross-sum", got(f"{block}.feed_forward_norm"))],
            space(10),
            ["hidden", _strip("hidden", hidden, "")],
            ["update", _strip("fed", gave(f"{block}.feed_forward"))],
            ["sum", _strip("after", depth[layer + 1])],
            space(10),
            grid(
                [
                    [f"after block {n}", cells(x[:TOWER], "state", name="depth"), f"“{word}”"]
                    for n, (x, word) in enumerate(zip(depth[1:], written, strict=True), 1)
                ],
                align="rl",
                gap=(10, 5),
            ),
            space(10),
            ["last norm", _strip("last", gave(f"{stack}.norm"))],
            space(6),
            grid(
                [
                    [
                        names[n],
                        cells(matrix[i, :4], name="rows", digits=2, width=36),
                        cells(logits[i, None], "weight", name="logits", digits=1, width=40),
                    ]
                    for n, i in enumerate(best)
                ],
                align="rl",
                gap=(10, 3),
            ),
            space(8),
            bars(names, shares, name="bars"),
            ["written", box(names[0], "weight", name="answer")],
        ],
        align="rl",
        gap=(10, 6),
    )
    links += [
        arrow("source", "memory", "key", drawn=False),
        arrow("target." + str(place), "token", drawn=False),
        *(arrow(part, "state", drawn=False) for part in ("token", "position")),
        *(arrow(part, "own-sum", drawn=False) for part in ("own-out", start)),
        arrow("memory", "cross-keys", "key", drawn=False),
        arrow("cross-out", "cross-sum", drawn=False),
        *(arrow(part, "after", drawn=False) for part in ("fed", "cross-sum")),
        arrow("last", "logits", drawn=False),
        arrow("logits", "bars.*", drawn=False),
    ]
    own, cross = int(weights["own"].argmax()), int(weights["cross"].argmax())
    through = Step(
        f"First {'block 1 works' if layer == 1 else f'blocks 1 to {layer} work'} on this vector, as"
        f" the next steps show of block {layer + 1}: each layer adds an update. [This](before)"
        " comes out.",
        "before",
    )
    steps = [
        Step(
            f"The encoder has read [{len(words)} words](source) and made a [vector](memory) of"
            f" each. {TOWER} of its {config.d_model} numbers are shown: the larger, the stronger"
            " the colour.",
            "source memory",
        ),
        Step(
            f"The decoder has written as far as [“{said[place]}”](target.{place}). It reads the"
            " number of each token, its [id](ids)."
            + " What comes after stands there too, as in training."
            * (place < len(said) - 1),
            "target ids",
        ),
        Step(
            f"The id picks a learnt [vector](token), times √{config.d_model}. A"
            f" [vector of its place](position) is added. First number:"
            f" {written_sum([float(token[0]), float((summed - token)[0])])} ="
            f" {written_sum([float(summed[0])])}.",
            "token position state",
        ),
        *([through] if layer else []),
        Step(
            f"Self-attention in block {layer + 1}, head {head + 1}: a norm and a matrix make a"
            f" [query](own-query) of the state; each German token has a [key](own-keys).",
            "own-query own-words own-keys",
        ),
        Step(
            "Query times key, over the root of their size, is a [score](own-scores). The causal"
            " mask crosses out what comes later.",
            "own-scores",
            ask=f"Which German tokens may “{said[place]}” look at?",
        ),
        Step(
            f"A softmax makes [weights](own-weights) of them: {float(weights['own'][own]):.2f} for"
            f" “{said[own]}”. The [values](own-values), so weighted, are the head's"
            " [answer](own-mixed).",
            "own-weights own-values own-mixed",
        ),
        Step(
            f"The answers of all {config.n_heads} heads, side by side, times a fourth matrix are an"
            " [update](own-out) of the state.",
            "own-out",
        ),
        Step(f"The update and the [state]({start}) are added: the [sum](own-sum).", "own-sum"),
        Step(
            "Cross-attention: the sum makes a new [query](cross-query), but the [keys](cross-keys)"
            " are those of the English words.",
            "cross-query cross-words cross-keys",
        ),
        Step(
            f"[Scores](cross-scores), softmax, [weights](cross-weights): “{words[cross]}” gets"
            f" {float(weights['cross'][cross]):.2f}.",
            "cross-scores cross-weights",
            ask=f"After “{said[place]}”: at which English word should the decoder look?",
        ),
        Step(
            "The [values](cross-values) of the English words, so weighted, are the"
            " [answer](cross-mixed).",
            "cross-values cross-mixed",
        ),
        Step(
            f"Again all {config.n_heads} heads make an [update](cross-out), and it is"
            " [added](cross-sum).",
            "cross-out cross-sum",
        ),
        Step(
            f"The feed-forward network makes [{len(hidden)} hidden numbers](hidden), of which"
            f" {int((hidden > 0).sum())} are above 0, and of those its own [update](fed). The"
            f" [sum](after) leaves block {layer + 1}.",
            "hidden fed after",
        ),
        Step(
            f"The [states](depth) after each of the {config.n_layers} blocks, and the word that the"
            " decoder would write if it stopped there.",
            "depth",
            ask="Does the state know the next word after one block already?",
        ),
        Step(
            "A [last norm](last). Its product with each word's [row](rows) of the output matrix is"
            f" that word's [score](logits), its logit. Here are the {top} largest of {len(vocab)}.",
            "last rows logits",
        ),
        Step(
            f"A softmax makes [probabilities](bars). “{names[0]}” gets {float(shares[0]):.2f} and"
            " is [written](answer).",
            "bars answer",
        ),
    ]
    return Drawing(
        body,
        *links,
        alt=f"One way from top to bottom: the words {source} and a vector of each; the tokens"
        f" {' '.join(said)}; the vectors of {said[place]}; self-attention, with later tokens"
        " crossed out; cross-attention to the words; the feed-forward network; the state after each"
        " block; the scores and bars of the likeliest words.",
        steps=steps,
        **options,
    )
