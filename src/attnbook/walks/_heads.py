"""Two heads of attention for one token: split, attend, concatenate, mix."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.model.attention import MultiHeadAttention
from attnbook.model.recording import calls
from attnbook.show.drawing import (
    Arrow,
    Part,
    arrow,
    box,
    cells,
    column,
    frame,
    grid,
    row,
    space,
)
from attnbook.walks._pieces import products, small, towers, upright, written_sum
from attnbook.web import Drawing, Step

NEAR, TOWER, WIDE = 5, 4, 28  # tokens shown, numbers of a head's vector, units of a column
WHOLE = 6  # numbers shown of a whole vector


@dataclass(frozen=True)
class Made:
    """What both heads compute for one token."""

    tokens: Sequence[str]
    at: int
    near: range  # indices of the tokens that are shown
    x: Tensor  # [d_model]
    whole: Tensor  # [d_model] the query before it is split
    queries: Tensor  # [head d_head]
    keys: Tensor  # [head token d_head]
    scores: Tensor  # [head token]
    weights: Tensor  # [head token]
    values: Tensor  # [head token d_head]
    results: Tensor  # [head d_head]
    joined: Tensor  # [d_model]
    given: list[Tensor]  # [d_model] each head's result through its half of W_O
    bias: Tensor  # [d_model]
    out: Tensor  # [d_model]

    @property
    def asks(self) -> str:
        return self.tokens[self.at]

    @property
    def d(self) -> int:
        return len(self.x)

    @property
    def d_head(self) -> int:
        return self.queries.shape[-1]

    def shown(self, each: Tensor) -> Tensor:
        """The entries of `each`, which has one per token, for the shown tokens."""
        return each[self.near.start : self.near.stop]


def heads_step(
    attention: MultiHeadAttention, x: Tensor, tokens: Sequence[str], *, at: int, **options: Any
) -> Drawing:
    """Two heads for one token: its query is split, both attend, W_O mixes their outputs.

    Args:
        attention: a layer with two heads of d_model / 2 numbers, with biases, without positions or
            norms; the first numbers of its vectors are shown.
        x: `[token d_model]` the input.
        tokens: a short text for each vector.
        at: index of the query's token; the `NEAR` tokens around it are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if attention is of another kind, there are fewer than two tokens, or x, tokens
            and `at` do not match.

    Source: Vaswani et al. 2017, section 3.2.2, figure 2.
    """
    n, d = len(tokens), attention.d_model
    heads = attention.n_heads, attention.n_kv_heads, 2 * attention.d_head
    if heads != (2, 2, d) or attention.out.bias is None:
        raise ValueError(
            f"attention must have two heads of d_model / 2 and biases, got {attention}"
        )
    if attention.positions is not None or attention.q_norm is not None:
        raise ValueError(f"attention must have no positions and no norm, got {attention}")
    check_range(2, 128, tokens=n)
    check_shapes(x=(x, "token d_model"), token=n, d_model=d)
    check_whole(0, at=at)
    check_range(0, n - 1, at=at)
    made = _made(attention, x.to(attention.q.weight.dtype), tokens, at)
    return Drawing(
        _body(made),
        arrow("x", "q", drawn=False),
        *_links(made, 0),
        *_links(made, 1),
        alt=f"The token {made.asks} asks. Its query is cut in two, one half for each of two heads,"
        " side by side. Each head has keys, scores, weights as upright bars, values and a result."
        " Both results are joined, each goes through its half of W_O, and their sum is the output.",
        steps=[*_splitting(made), *_attending(made), *_mixing(made)],
        **options,
    )


def _made(attention: MultiHeadAttention, x: Tensor, tokens: Sequence[str], at: int) -> Made:
    with torch.no_grad(), calls(attention) as seen:
        attention(x[None])
    (q, k, *_), scores = seen[".scores"]
    (weights, v), results = seen[".combine"]
    results = results[0, :, at]
    halves = attention.out.weight.detach().split(attention.d_head, 1)
    first = max(0, min(at - NEAR // 2, len(tokens) - NEAR))
    return Made(
        tokens,
        at,
        near=range(first, min(len(tokens), first + NEAR)),
        x=x[at].detach(),
        whole=seen["q"][1][0, at],
        queries=q[0, :, at],
        keys=k[0],
        scores=scores[0, :, at],
        weights=weights[0, :, at],
        values=v[0],
        results=results,
        joined=seen["out"][0][0][0, at],
        given=[half @ result for half, result in zip(halves, results, strict=True)],
        bias=attention.out.bias.detach(),
        out=seen["out"][1][0, at],
    )


def _body(made: Made) -> Part:
    d = made.d
    words = [box(made.tokens[j], "state" * (j == made.at), name="words") for j in made.near]
    return column(
        row(*words, gap=12),
        small(f"vector x of “{made.asks}” [{d}]", "x"),
        _strip("x", made.x, "state"),
        space(10),
        small(f"query q = x W_Q + bias [{d}]", "q"),
        _halves("q", made.whole, "query"),
        space(14),
        row(_head(made, 0), _head(made, 1), gap=8),
        space(14),
        small(f"joined [{d}]", "joined"),
        _halves("joined", made.joined, "value"),
        space(16),
        small(f"head 1 through its half of W_O [{d}]", "o1"),
        _strip("o1", made.given[0], "value"),
        small(f"head 2 through its half of W_O [{d}]", "o2"),
        _strip("o2", made.given[1], "value"),
        small(f"output = sum + bias [{d}]", "out"),
        _strip("out", made.out, "state"),
        gap=6,
    )


def _strip(name: str, vector: Tensor, role: str, shown: int = WHOLE) -> Part:
    return row(cells(vector[:shown], role, name=name, digits=2, width=36), "…", gap=3)


def _halves(name: str, vector: Tensor, role: str) -> Part:
    return row(*(_strip(name, half, role, TOWER) for half in vector.chunk(2)), gap=14)


def _head(made: Made, h: int) -> Part:
    """One head, from its part of the query to its result."""
    m, d_head, n, near = h + 1, made.d_head, len(made.tokens), made.near
    s, a = made.scores[h], made.weights[h]
    span = (float(s.min()) - 1e-6, float(s.max()))
    scored = [cells([s[j]], "weight", name=f"s{m}", digits=1, span=span, width=WIDE) for j in near]
    under = [small(made.tokens[j], f"k{m}") for j in near]
    sizes = f"{n} × {d_head}"
    keys, size = small("keys", f"k{m}"), small(f"[{sizes}]", f"k{m}")  # arrows run between them
    inner = column(
        small(f"query [{d_head}]", f"q{m}"),
        _strip(f"q{m}", made.queries[h], "query", TOWER),
        row(keys, size, gap=NEAR * WIDE - keys.width - size.width),
        space(12),
        grid([_near_towers(made, f"k{m}", made.keys[h], "key"), under], gap=(4, 2)),
        small(f"scores [{n} tokens]", f"s{m}"),
        row(*scored, gap=0),
        small(f"weights [{n} tokens]", f"a{m}"),
        row(*(upright(a[j], WIDE, f"a{m}") for j in near), gap=0),
        small(f"values [{n} tokens × {d_head}]", f"v{m}"),
        row(*_near_towers(made, f"v{m}", made.values[h], "value"), gap=4),
        space(17),
        small(f"result [{d_head}]", f"h{m}"),
        _strip(f"h{m}", made.results[h], "value", TOWER),
        gap=5,
        align="l",
    )
    return frame(inner, f"head {m}", pad=7)


def _near_towers(made: Made, name: str, vectors: Tensor, role: str) -> list[Part]:
    """The shown tokens' vectors, in shades on the scale of all tokens."""
    return towers(name, vectors, role, TOWER)[made.near.start : made.near.stop]


def _links(made: Made, h: int) -> list[Arrow]:
    m = h + 1
    return [
        arrow(f"q.{h}", f"q{m}", "query"),
        arrow(f"q{m}", f"k{m}", "query"),
        arrow(f"k{m}", f"s{m}", drawn=False),
        arrow(f"s{m}", f"a{m}", drawn=False),
        arrow(f"k{m}", f"v{m}", drawn=False),
        arrow(f"v{m}", f"h{m}", "value", weights=made.shown(made.weights[h])),
        arrow(f"h{m}", f"joined.{h}", "value"),
        arrow(f"joined.{h}", f"o{m}", drawn=False),
        arrow(f"o{m}", "out", drawn=False),
    ]


def _splitting(made: Made) -> list[Step]:
    d, d_head = made.d, made.d_head
    return [
        Step(
            f"[“{made.asks}”](words.{made.near.index(made.at)}) asks. Its [vector](x) has {d}"
            f" numbers; {WHOLE} are shown.",
            "words x",
        ),
        Step(
            f"The matrix W_Q, {d} × {d}, and a bias make its [query](q): {d} numbers for both"
            " heads together.",
            "q",
        ),
        Step(
            f"Split: the first {d_head} numbers are the query of [head 1](q1), the other {d_head}"
            " that of [head 2](q2). Nothing is computed.",
            "q1 q2",
            ask="Two heads share the query. How many numbers has each?",
        ),
        Step(
            f"W_K and W_V are cut alike. So every token has a [key](k1) of {d_head} numbers in head"
            " 1 and [another key](k2) in head 2.",
            "k1 k2",
        ),
    ]


def _attending(made: Made) -> list[Step]:
    weights, d_head = made.weights, made.d_head
    top = [int(a.argmax()) for a in weights]
    best = [made.tokens[j] for j in top]
    most = [f"{float(a[j]):.2f}" for a, j in zip(weights, top, strict=True)]
    rest = [1 - float(made.shown(a).sum()) for a in weights]
    beyond = len(made.tokens) - len(made.near)
    dot = float(made.queries[0] @ made.keys[0, top[0]])
    scaled = f"{dot:.1f} / √{d_head} = {dot / d_head**0.5:.1f}".replace("-", "−")
    return [
        Step(
            f"Attend: query times key, divided by √{d_head}, the root of a head's size. In head 1,"
            f" “{best[0]}” gets [{scaled}](s1).",
            "s1 s2",
        ),
        Step(
            f"Each head has a softmax of its own. Head 1 gives “{best[0]}” [{most[0]}](a1),"
            f" head 2 gives “{best[1]}” [{most[1]}](a2)."
            + f" The other {beyond} tokens share {rest[0]:.2f} and {rest[1]:.2f}."
            * (beyond > 0),
            "a1 a2",
            ask=f"Both heads ask for “{made.asks}”. Will they look at the same token?",
        ),
        Step("Every token also has a [value](v1) in head 1, and [another](v2) in head 2.", "v1 v2"),
        Step(
            "The result of [head 1](h1) is the sum of its values, each times its weight. The first"
            f" number: {products(weights[0], made.values[0, :, 0])} ="
            f" {written_sum([float(made.results[0, 0])])}. [Head 2](h2) does the same.",
            "h1 h2",
        ),
    ]


def _mixing(made: Made) -> list[Step]:
    d, d_head = made.d, made.d_head
    terms = [float(each[0]) for each in (*made.given, made.bias)]
    return [
        Step(f"Join: both results [side by side](joined), {d} numbers again.", "joined"),
        Step(
            f"Mix: W_O is {d} × {d}. Its first {d_head} rows turn the result of head 1 into"
            f" [{d} numbers](o1) …",
            "o1",
            ask=f"The result of head 1 is the first {d_head} numbers. Can it change the last number"
            " of the output?",
        ),
        Step(f"… and its last {d_head} rows turn the result of head 2 into [{d} more](o2).", "o2"),
        Step(
            "Their sum and a bias are the [output](out). Its first number:"
            f" {written_sum(terms)} = {written_sum([float(made.out[0])])}.",
            "out",
        ),
    ]
