"""Small walks through the parts of a block: norm, attention, sum, network."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.recording import Calls, calls
from attnbook.model.transformer import Transformer
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, row, space, text
from attnbook.walks._pieces import written_sum
from attnbook.walks._recorded import Head, Position, attended
from attnbook.walks._unrolled import spelled
from attnbook.web import Drawing, Step

SHOWN = 5  # numbers shown of a vector


def part_walks(
    model: Transformer, source: str, target: str, *, place: int, source_place: int, layer: int = 0
) -> dict[str, Drawing]:
    """What each part of a block does to one token, in decoder and encoder, with a model's numbers.

    Args:
        model: a model with "pre" norms.
        source: a sentence of at most six words.
        target: its translation, or the start of it, at most five words.
        place: the decoder's position: 0 is the start token, 1 the first word, and so on.
        source_place: the encoder's position: 0 is the first word, and so on.
        layer: index of the block, in the decoder and in the encoder.

    Returns:
        Walks by the part names of `attnbook.show.transformer`: "norm", "add", "attention", "cross",
        "feed-forward", and then "encoder norm" and so on, without "cross". Norm and add belong to
        self-attention; the attention layers show head 1.

    Raises:
        ValueError: if the model has other norms, a sentence is too long, or there is no such place
            or layer.
        KeyError: if a word is not in the vocabulary.

    Source: Vaswani et al. 2017, section 3.1.
    """
    config, vocab = model.decoder.stack.config, model.decoder.vocab
    if config.norm != "pre":
        raise ValueError(f"model must have norm 'pre', got {config.norm!r}")
    english, ids = source.split(), [vocab.bos, *vocab.encode(target.split())]
    check_whole(0, place=place, source_place=source_place, layer=layer)
    check_range(1, 6, source=len(english), target=len(ids) - 1)
    check_range(0, len(ids) - 1, place=place)
    check_range(0, len(english) - 1, source_place=source_place)
    check_range(0, config.n_layers - 1, layer=layer)
    with evaluating(model), calls(model) as seen:
        model(torch.tensor([model.encoder.vocab.encode(english)]), torch.tensor([ids]))
    german = [spelled(vocab, i) for i in ids]
    decoder = model.decoder.stack.blocks[layer], f"decoder.stack.blocks.{layer}."
    encoder = model.encoder.stack.blocks[layer], f"encoder.stack.blocks.{layer}."
    walks = _block(*decoder, Position(seen, place), german, "German")
    cross = _attention(seen, f"{decoder[1]}cross", place, english, german[place], "English")
    reads = _block(*encoder, Position(seen, source_place), english, "English")
    read = {f"encoder {part}": walk for part, walk in reads.items()}
    return {**walks, "cross": cross, **read}


def _block(
    block: Any, path: str, at: Position, words: list[str], language: str
) -> dict[str, Drawing]:
    """The walks of the parts that decoder and encoder blocks have in common."""
    x, normed = at.got(f"{path}attention_norm"), at.gave(f"{path}attention_norm")
    feed = f"{path}feed_forward"
    fed = at.gave(f"{feed}.up"), at.got(f"{feed}.down"), at.gave(feed)
    word, attention = words[at.place], f"{path}attention"
    return {
        "norm": _norm(x, normed, block.attention_norm),
        "add": _add(x, at.gave(f"{attention}.out"), word),
        "attention": _attention(at.seen, attention, at.place, words, word, language),
        "feed-forward": _network(at.gave(f"{feed}_norm"), *fed),
    }


def _said(number: Tensor) -> str:
    return written_sum([float(number)])


def _strip(vector: Tensor, name: str, role: str = "state") -> Part:
    return row(cells(vector[:SHOWN], role, name=name, digits=2, width=42), "…", gap=4)


def _walk(rows: Sequence[Any], pairs: Sequence[str], steps: Sequence[Step], alt: str) -> Drawing:
    """A walk through labelled rows, with an arrow for each "from to" in `pairs`."""
    links = [arrow(*pair.split()) for pair in pairs]
    return Drawing(grid(rows, align="rl", gap=(10, 20)), *links, alt=alt, steps=steps)


def _norm(x: Tensor, out: Tensor, norm: Any) -> Drawing:
    mean, deviation = x.mean(), (x.var(correction=0) + norm.eps).sqrt()
    normed = (x - mean) / deviation
    measured = cells(torch.stack([mean, deviation]), "weight", name="measured", digits=2, width=42)
    rows = [["x", _strip(x, "x")], ["mean, deviation", measured]]
    rows += [["normed", _strip(normed, "normed")], ["gain, bias", _strip(out, "out")]]
    gain, bias = (_said(each.detach()[0]) for each in (norm.weight, norm.bias))
    size = len(x)
    steps = [
        Step(f"One word's [vector](x): {SHOWN} of its {size} numbers.", "x"),
        Step(
            f"The [mean and the deviation](measured) of all {size}: {_said(mean)} and"
            f" {_said(deviation)}.",
            "measured",
        ),
        Step(
            f"Less the mean, over the deviation, [each number](normed) is {_said(normed[0])},"
            f" {_said(normed[1])} and so on: all have mean 0 and deviation 1.",
            "normed",
        ),
        Step(
            "A trained gain multiplies each number, a trained bias is added:"
            f" {_said(normed[0])} · {gain} + ({bias}) = {_said(out[0])}."
            " [This](out) is what the layer reads.",
            "out",
        ),
    ]
    alt = "A word's vector, its mean and deviation, the vector normed, and after gain and bias."
    return _walk(rows, ["x measured", "measured normed", "normed out"], steps, alt)


def _add(x: Tensor, update: Tensor, word: str) -> Drawing:
    total = x + update
    rows = [["x", _strip(x, "x")], ["update", _strip(update, "update", "value")]]
    rows += [["sum", _strip(total, "sum")]]
    first = written_sum([float(x[0]), float(update[0])])
    long, change = float(x.norm()), float(update.norm())
    steps = [
        Step(f"The [vector](x) of “{word}” goes past the layer, as it is.", "x"),
        Step(
            f"What the layer gives is only an [update](update). Its length is {change:.1f}, that of"
            f" the vector {long:.1f}.",
            "update",
        ),
        Step(
            f"Both are [added](sum), number by number: {first} = {_said(total[0])}.",
            "sum",
        ),
    ]
    alt = "A word's vector, a layer's update, and below them their sum."
    return _walk(rows, ["update sum"], steps, alt)


def _attention(
    seen: Calls, path: str, place: int, words: list[str], asks: str, language: str
) -> Drawing:
    head = attended(seen, path, place)
    high = float(head.scores[head.scores.isfinite()].abs().max())

    def numbers(values: Tensor, name: str, span: tuple[float, float]) -> list[Part]:
        return [cells([x], "weight", name=name, digits=2, width=44, span=span) for x in values]

    table = [
        [text(word, size=SMALL, name="words") for word in words],
        numbers(head.scores, "scores", (-high, high)),
        numbers(head.weights, "weights", (0.0, 1.0)),
        [cells(x[:3], "value", name="values", width=14) for x in head.values],
    ]
    rows = [
        ["query", _strip(head.query, "query", "query")],
        space(4),
        grid(table, gap=(5, 12)),
        space(4),
        ["mixed", _strip(head.mixed, "mixed", "value")],
    ]
    return Drawing(
        grid(rows, align="rl", gap=(10, 12)),
        arrow("query", "words", "query"),
        arrow("values", "mixed", "value", weights=head.weights),
        alt="A query, words with their scores and weights, their values, and the weighted sum.",
        steps=_attending(head, words, asks, language, cross=path.endswith("cross")),
    )


def _attending(
    head: Head, words: list[str], asks: str, language: str, *, cross: bool
) -> list[Step]:
    best = int(head.weights.argmax())
    return [
        Step(
            f"“{asks}” asks with a [query](query); the [{language} words](words) answer with their"
            " keys. Head 1 of several:",
            "query words",
        ),
        Step(
            "Query times key, over the root of their size: the [scores](scores)."
            + " The mask strikes out what may not be seen." * bool(head.scores.isnan().any()),
            "scores",
        ),
        Step(
            f"A softmax makes [weights](weights) of them, which sum to 1. “{words[best]}” gets"
            f" {float(head.weights[best]):.2f}.",
            "weights",
            ask=f"Which word gets the largest weight of “{asks}”?",
        ),
        Step(
            "The [values](values), so weighted, are added: what this head [gives](mixed)."
            + " They come from the encoder's H." * cross,
            "values mixed",
        ),
    ]


def _network(x: Tensor, before: Tensor, hidden: Tensor, out: Tensor) -> Drawing:
    rows = [["normed x", _strip(x, "x")], ["times W₁", _strip(before, "before", "")]]
    rows += [["ReLU", _strip(hidden, "hidden", "")], ["times W₂", _strip(out, "out", "value")]]
    steps = [
        Step(f"The word's [normed vector](x), {len(x)} numbers. No other word is read here.", "x"),
        Step(f"A matrix makes [{len(before)} numbers](before) of them.", "before"),
        Step(
            f"ReLU sets the negative ones to 0: {int((hidden > 0).sum())} of {len(hidden)}"
            " [stay](hidden).",
            "hidden",
        ),
        Step(f"A second matrix makes an [update](out) of {len(out)} numbers.", "out"),
    ]
    alt = "A word's vector, the hidden numbers before and after ReLU, and the update."
    return _walk(rows, ["x before", "before hidden", "hidden out"], steps, alt)
