"""One row of self-attention: a word's query meets every key and sums the weighted values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, row, space, text
from attnbook.walks._pieces import brief, small
from attnbook.web import Drawing, Step


@dataclass(frozen=True)
class Made:
    """What the asking word computes; d_k is the size of a query, d_v the size of a value."""

    tokens: Sequence[str]
    asks: str
    x: Tensor  # [word d]
    own: Tensor  # [d] the vector of the word that asks
    q: Tensor  # [d_k]
    k: Tensor  # [word d_k]
    v: Tensor  # [word d_v]
    scores: Tensor  # [word]
    scaled: Tensor  # [word]
    weights: Tensor  # [word]
    out: Tensor  # [d_v]


def attention_row(
    x: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    tokens: Sequence[str],
    *,
    asks: int = -1,
    outputs: Sequence[str] = (),
    **options: Any,
) -> Drawing:
    """What one word computes in self-attention, step by step: query, scores, weights, output.

        q_i = x_i W_Q,  k_j = x_j W_K,  v_j = x_j W_V
        o_i = sum_j softmax_j(q_i . k_j / sqrt(d_k)) v_j

    Args:
        x: `[word d]`, a vector for each word.
        w_q, w_k: `[d d_k]`, the matrices of queries and keys; d_k + d_v is at most about 5.
        w_v: `[d d_v]`, the matrix of values.
        tokens: two to six short words.
        asks: index of the query's word, which may be negative.
        outputs: names of the numbers of a value, and so of the output.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if shapes do not match each other, the number of tokens or outputs is wrong,
            `asks` is out of range, or the vectors are too long for the drawing.

    Source: Vaswani et al. 2017, section 3.2.1.
    """
    sizes = check_shapes(
        word=len(tokens),
        x=(x, "word d"),
        w_q=(w_q, "d d_k"),
        w_k=(w_k, "d d_k"),
        w_v=(w_v, "d d_v"),
    )
    n, d_v = sizes["word"], sizes["d_v"]
    check_range(2, 6, tokens=n)
    check_whole(-n, asks=asks)
    check_range(-n, n - 1, asks=asks)
    if len(outputs) not in (0, d_v):
        raise ValueError(f"outputs must be {d_v} texts, one a number of a value, got {outputs!r}")
    with torch.no_grad():
        q, k, v = x[asks] @ w_q, x @ w_k, x @ w_v
        scores = k @ q
        scaled = scores / len(q) ** 0.5
        weights = scaled.softmax(-1)
        out = weights @ v
    word = tokens[asks]
    made = Made(tokens, word, x, x[asks], q, k, v, scores, scaled, weights, out)
    links = ["query scores", "keys scores", "scores scaled"]
    links += ["scaled weights", "weights out", "values out"]
    return Drawing(
        _body(made),
        arrow("x", "query", "query"),
        *(arrow(*link.split(), drawn=False) for link in links),
        alt=f"One row of self-attention, of the word {word}. Above, its vector and its query. A"
        f" line for each of the words {', '.join(tokens)}: key, score, score divided by the root,"
        " weight and value. At the bottom the output, the weighted sum of the values.",
        steps=[*_scoring(made), *_weighing(made), *_meaning(made, outputs)],
        **options,
    )


def _body(made: Made) -> Part:
    heads = {
        "keys": "key",
        "scores": "q · k",
        "scaled": f"/ √{len(made.q)}",
        "weights": "weight",
        "values": "value",
    }
    out = _strip("out", made.out, "state", _spread(made))
    rows = [
        row(small(f"x of “{made.asks}”", "x"), _strip("x", made.own, "state", made.x)),
        space(4),
        [small("query", "query"), _strip("query", made.q, "query", made.q)] + [None] * 4,
        space(4),
        [None, *(small(head, part) for part, head in heads.items())],
        *(_line(made, j) for j in range(len(made.tokens))),
        space(8),
        [None] * 4 + [small("output", "out"), out],
    ]
    return grid(rows, align="rc", gap=(6, 7))


def _line(made: Made, j: int) -> list[Part]:
    """The cells in the row of word j."""
    low, high = float(made.scores.min()), float(made.scores.max())
    span = (low, max(high, low + 1e-6))

    def number(name: str, value: Tensor, digits: int, span: tuple[float, float]) -> Part:
        return cells([value], "weight", name=name, digits=digits, width=34, span=span)

    return [
        text(made.tokens[j], name="words", size=SMALL),
        _strip("keys", made.k[j], "key", made.k),
        number("scores", made.scores[j], 1, span),
        number("scaled", made.scaled[j], 1, span),
        number("weights", made.weights[j], 2, (0.0, 1.0)),
        _strip("values", made.v[j], "value", _spread(made)),
    ]


def _spread(made: Made) -> Tensor:
    """The vectors whose range sets the shades of a value and the output."""
    return torch.cat([made.v, made.out[None]])


def _strip(name: str, vector: Tensor, role: str, among: Tensor) -> Part:
    high = max(float(among.abs().max()), 1e-6)
    return cells(vector, role, name=name, digits=2, width=36, span=(-high, high))


def _scoring(made: Made) -> list[Step]:
    """From the words' vectors to scores."""
    word, best = made.asks, int(made.weights.argmax())
    return [
        Step(
            f"There are {len(made.tokens)} words, each a vector of {len(made.own)} numbers. We"
            f" follow [x](x) of “{word}”.",
            "words x",
        ),
        Step(
            f"[x](x) times the matrix W_Q gives the [query](query): what “{word}” asks for.",
            "query",
        ),
        Step(
            "Each word's own x times W_K gives its [key](keys): what it is found by."
            f" “{word}” has one, too.",
            "keys",
        ),
        Step(
            f"[Query](query) times [key](keys) is a [score](scores). For “{made.tokens[best]}”:"
            f" {_times(made.q, made.k[best])} = [{brief(made.scores[best], 1)}](scores.{best}).",
            "scores",
            ask=f"A large product means a good fit. Which key fits the query of “{word}” best?",
        ),
    ]


def _weighing(made: Made) -> list[Step]:
    """From scores to the output."""
    weights, best = made.weights, int(made.weights.argmax())
    two = weights.argsort(descending=True)[:2]
    first = _times(weights[two], made.v[two, 0]) + " + …" * (len(weights) > 2)
    return [
        Step(
            f"Divided by √{len(made.q)}, the root of the query's size, they are"
            " [scaled scores](scaled): these do not grow with that size.",
            "scaled",
        ),
        Step(
            "A softmax makes [weights](weights) of them: positive, and 1 in sum."
            f" “{made.tokens[best]}” gets [{weights[best]:.2f}](weights.{best}).",
            "weights",
        ),
        Step(
            "Each word's own x times W_V gives its [value](values): what it hands over.", "values"
        ),
        Step(
            "The [output](out) is the sum of the [values](values), each times its"
            f" [weight](weights). Its first number: {first} = [{brief(made.out[0])}](out.0).",
            "out",
        ),
    ]


def _meaning(made: Made, outputs: Sequence[str]) -> list[Step]:
    """What the output means, if its numbers have names."""
    if not outputs:
        return []
    named, top = ", ".join(outputs), int(made.out.argmax())
    return [
        Step(
            f"The numbers of the [output](out) stand for {named}. The largest is"
            f" {brief(made.out[top])}: “{made.asks}” means {outputs[top]}.",
            ask=f"The numbers stand for {named}. What does “{made.asks}” mean?",
        )
    ]


def _times(a: Tensor, b: Tensor) -> str:
    return " + ".join(f"{brief(one)} × {brief(two)}" for one, two in zip(a, b, strict=True))
