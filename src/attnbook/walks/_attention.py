"""One row of self-attention: a word's query meets every key and sums the weighted values."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, row, space, text
from attnbook.walks._input import written_sum
from attnbook.web import Drawing, Step


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
        w_q, w_k: `[d d_k]`, of queries and keys; d_k + d_v is about 5 at most.
        w_v: `[d d_v]`, of values.
        tokens: two to six short words.
        asks: index of the query's word, also negative.
        outputs: names of the numbers of a value, and so of the output.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if shapes do not fit each other, the number of tokens or outputs is wrong,
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
    n, d, d_k, d_v = (sizes[size] for size in ("word", "d", "d_k", "d_v"))
    check_range(2, 6, tokens=n)
    check_whole(-n, asks=asks)
    check_range(-n, n - 1, asks=asks)
    if len(outputs) not in (0, d_v):
        raise ValueError(f"outputs must be {d_v} texts, one a number of a value, got {outputs!r}")
    with torch.no_grad():
        q, k, v = x[asks] @ w_q, x @ w_k, x @ w_v
        scores = k @ q
        scaled = scores / d_k**0.5
        weights = scaled.softmax(-1)
        out = weights @ v
    word, best, top = tokens[asks], int(weights.argmax()), int(out.argmax())

    def strip(name: str, vector: Tensor, role: str, among: Tensor) -> Part:
        high = max(float(among.abs().max()), 1e-6)
        return cells(vector, role, name=name, digits=2, width=36, span=(-high, high))

    def number(name: str, value: Tensor, digits: int) -> Part:
        low, high = float(scores.min()), float(scores.max())
        span = (0.0, 1.0) if name == "weights" else (low, max(high, low + 1e-6))
        return cells([value], "weight", name=name, digits=digits, width=34, span=span)

    def times(a: Tensor, b: Tensor) -> str:
        return " + ".join(f"{_brief(one)} × {_brief(two)}" for one, two in zip(a, b, strict=True))

    spread = torch.cat([v, out[None]])
    heads = {
        "keys": "key",
        "scores": "q · k",
        "scaled": f"/ √{d_k}",
        "weights": "weight",
        "values": "value",
    }
    table = [
        [
            text(token, name="words", size=SMALL),
            strip("keys", k[j], "key", k),
            number("scores", scores[j], 1),
            number("scaled", scaled[j], 1),
            number("weights", weights[j], 2),
            strip("values", v[j], "value", spread),
        ]
        for j, token in enumerate(tokens)
    ]
    asking = text(f"x of “{word}”", size=SMALL, beside="x")
    body = grid(
        [
            row(asking, strip("x", x[asks], "state", x)),
            space(4),
            [text("query", size=SMALL, beside="query"), strip("query", q, "query", q)] + [None] * 4,
            space(4),
            [None, *(text(head, size=SMALL, beside=part) for part, head in heads.items())],
            *table,
            space(8),
            [None] * 4
            + [text("output", size=SMALL, beside="out"), strip("out", out, "value", spread)],
        ],
        align="rc",
        gap=(6, 7),
    )
    fits = f"“{tokens[best]}”"
    two = weights.argsort(descending=True)[:2]
    steps = [
        Step(
            f"There are {n} words, each a vector of {d} numbers. We follow [x](x) of “{word}”.",
            "words x",
        ),
        Step(
            f"[x](x) times the matrix W_Q gives the [query](query): what “{word}” asks for.",
            "query",
        ),
        Step(
            "Each word's own x times W_K gives its [key](keys): what it is found by. “"
            f"{word}” has one, too.",
            "keys",
        ),
        Step(
            f"[Query](query) times [key](keys) is a [score](scores). For {fits}:"
            f" {times(q, k[best])} = [{_brief(scores[best], 1)}](scores.{best}).",
            "scores",
            ask=f"A large product means a good fit. Which key fits the query of “{word}” best?",
        ),
        Step(
            f"Scores are divided by √{d_k}, the [root](scaled) of the query's size: so they do not"
            " grow with it.",
            "scaled",
        ),
        Step(
            "A softmax makes [weights](weights) of them: positive, and 1 in sum."
            f" {fits} gets [{weights[best]:.2f}](weights.{best}).",
            "weights",
        ),
        Step(
            "Each word's own x times W_V gives its [value](values): what it hands over.", "values"
        ),
        Step(
            "The [output](out) is the sum of the [values](values), each times its"
            f" [weight](weights). Its first number: {times(weights[two], v[two, 0])}"
            f"{' + …' * (n > 2)} = [{_brief(out[0])}](out.0).",
            "out",
        ),
    ]
    if outputs:
        steps.append(
            Step(
                f"The numbers of the [output](out) stand for {', '.join(outputs)}. The largest is"
                f" {_brief(out[top])}: “{word}” means {outputs[top]}.",
                ask=f"The numbers stand for {', '.join(outputs)}. What does “{word}” mean?",
            )
        )
    return Drawing(
        body,
        arrow("x", "query", "query"),
        arrow("query", "scores", drawn=False),
        arrow("keys", "scores", drawn=False),
        arrow("scores", "scaled", drawn=False),
        arrow("scaled", "weights", drawn=False),
        arrow("weights", "out", drawn=False),
        arrow("values", "out", drawn=False),
        alt=f"One row of self-attention, of the word {word}. Above, its vector and its query. A"
        f" line for each of the words {', '.join(tokens)}: key, score, score divided by the root,"
        " weight and value. At the bottom the output, the weighted sum of the values.",
        steps=steps,
        **options,
    )


def _brief(x: Tensor, digits: int = 2) -> str:
    return written_sum([float(x)]) if digits == 2 else f"{float(x):z.{digits}f}".replace("-", "−")
