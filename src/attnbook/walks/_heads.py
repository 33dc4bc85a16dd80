"""Two heads of attention for one token: split, attend, concatenate, mix."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.model.attention import MultiHeadAttention
from attnbook.model.recording import calls
from attnbook.show.drawing import (
    SMALL,
    Part,
    arrow,
    box,
    cells,
    column,
    frame,
    grid,
    row,
    space,
    text,
)
from attnbook.walks._decoder_step import products, upright
from attnbook.walks._input import written_sum
from attnbook.web import Drawing, Step

NEAR, TOWER, WIDE = 5, 4, 28  # tokens, numbers of a vector in a head, units of a column
WHOLE = 6  # numbers of a whole vector


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
        ValueError: if attention does not fit, there are fewer than two tokens, or x, tokens and
            `at` do not fit.

    Source: Vaswani et al. 2017, section 3.2.2, figure 2.
    """
    n, d, d_head = len(tokens), attention.d_model, attention.d_head
    heads = attention.n_heads, attention.n_kv_heads, 2 * d_head
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
    x = x.to(attention.q.weight.dtype)
    with torch.no_grad(), calls(attention) as seen:
        attention(x[None])
    (q, k, *_), scores = seen[".scores"]
    (weights, v), made = seen[".combine"]
    whole, joined, out = seen["q"][1][0, at], seen["out"][0][0][0, at], seen["out"][1][0, at]
    bias, blocks = attention.out.bias.detach(), attention.out.weight.detach().split(d_head, 1)
    given = [block @ head for block, head in zip(blocks, made[0, :, at], strict=True)]
    first = max(0, min(at - NEAR // 2, n - NEAR))
    near = range(first, min(n, first + NEAR))
    asks = tokens[at]

    def strip(name: str, vector: Tensor, role: str, shown: int = WHOLE) -> Part:
        return row(cells(vector[:shown], role, name=name, digits=2, width=36), "…", gap=3)

    def halves(name: str, vector: Tensor, role: str) -> Part:
        return row(*(strip(name, half, role, TOWER) for half in vector.chunk(2)), gap=14)

    def towers(name: str, vectors: Tensor, role: str) -> list[Part]:
        shown = vectors[:, :TOWER]
        high = float(shown.abs().max())
        look = {"down": True, "span": (-high, high), "width": 24, "height": 8}
        return [cells(shown[j], role, name=name, **look) for j in near]

    def head(h: int) -> Part:
        s, a = scores[0, h, at], weights[0, h, at]
        span = (float(s.min()) - 1e-6, float(s.max()))
        m = h + 1
        scored = [
            cells([s[j]], "weight", name=f"s{m}", digits=1, span=span, width=WIDE) for j in near
        ]
        sizes = f"{n} × {d_head}"
        under = [small(tokens[j], f"k{m}") for j in near]
        keys, size = small("keys", f"k{m}"), small(f"[{sizes}]", f"k{m}")  # arrows run between
        inner = column(
            small(f"query [{d_head}]", f"q{m}"),
            strip(f"q{m}", q[0, h, at], "query", TOWER),
            row(keys, size, gap=NEAR * WIDE - keys.width - size.width),
            space(12),
            grid([towers(f"k{m}", k[0, h], "key"), under], gap=(4, 2)),
            small(f"scores [{n}]", f"s{m}"),
            row(*scored, gap=0),
            small(f"weights [{n}]", f"a{m}"),
            row(*(upright(a[j], WIDE, f"a{m}") for j in near), gap=0),
            small(f"values [{sizes}]", f"v{m}"),
            row(*towers(f"v{m}", v[0, h], "value"), gap=4),
            space(17),
            small(f"result [{d_head}]", f"h{m}"),
            strip(f"h{m}", made[0, h, at], "value", TOWER),
            gap=5,
            align="l",
        )
        return frame(inner, f"head {m}", pad=7)

    def small(words: str, beside: str) -> Part:
        return text(words, size=SMALL, beside=beside)

    body = column(
        row(*(box(tokens[j], "state" if j == at else "", name="words") for j in near), gap=12),
        small(f"vector x of “{asks}” [{d}]", "x"),
        strip("x", x[at].detach(), "state"),
        space(10),
        small(f"query q = x W_Q + bias [{d}]", "q"),
        halves("q", whole, "query"),
        space(14),
        row(head(0), head(1), gap=8),
        space(14),
        small(f"joined [{d}]", "joined"),
        halves("joined", joined, "value"),
        space(16),
        small(f"head 1 through its half of W_O [{d}]", "o1"),
        strip("o1", given[0], "value"),
        small(f"head 2 through its half of W_O [{d}]", "o2"),
        strip("o2", given[1], "value"),
        small(f"output = sum + bias [{d}]", "out"),
        strip("out", out, "state"),
        gap=6,
    )  # fmt: skip
    top = [int(weights[0, h, at].argmax()) for h in range(2)]
    most = [f"{float(weights[0, h, at, j]):.2f}" for h, j in enumerate(top)]
    rest = [1 - float(weights[0, h, at, near.start : near.stop].sum()) for h in range(2)]
    dot = float(q[0, 0, at] @ k[0, 0, top[0]])
    scaled = f"{dot:.1f} / √{d_head} = {dot / d_head**0.5:.1f}".replace("-", "−")
    beyond = n - len(near)
    steps = [
        Step(
            f"[“{asks}”](words.{near.index(at)}) asks. Its [vector](x) has {d} numbers; {WHOLE} are"
            " shown.",
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
        Step(
            f"Attend: query times key, divided by √{d_head}, the root of a head's size. In head 1,"
            f" “{tokens[top[0]]}” gets [{scaled}](s1).",
            "s1 s2",
        ),
        Step(
            f"Each head has a softmax of its own. Head 1 gives “{tokens[top[0]]}” [{most[0]}](a1),"
            f" head 2 gives “{tokens[top[1]]}” [{most[1]}](a2)."
            + f" The other {beyond} tokens share {rest[0]:.2f} and {rest[1]:.2f}."
            * (beyond > 0),
            "a1 a2",
            ask=f"Both heads ask for “{asks}”. Will they look at the same token?",
        ),
        Step("Every token also has a [value](v1) in head 1, and [another](v2) in head 2.", "v1 v2"),
        Step(
            f"The result of [head 1](h1) is the sum of its values, each times its weight. The first"
            f" number: {products(weights[0, 0, at], v[0, 0, :, 0])} ="
            f" {written_sum([float(made[0, 0, at, 0])])}. [Head 2](h2) does the same.",
            "h1 h2",
        ),
        Step(
            f"Join: both results [side by side](joined), {d} numbers again.",
            "joined",
        ),
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
            f" {written_sum([float(given[0][0]), float(given[1][0]), float(bias[0])])} ="
            f" {written_sum([float(out[0])])}.",
            "out",
        ),
    ]
    links = []
    for h in range(2):
        m = h + 1
        shown = weights[0, h, at, near.start : near.stop]
        links += [
            arrow(f"q.{h}", f"q{m}", "query"),
            arrow(f"q{m}", f"k{m}", "query"),
            arrow(f"k{m}", f"s{m}", drawn=False),
            arrow(f"s{m}", f"a{m}", drawn=False),
            arrow(f"k{m}", f"v{m}", drawn=False),
            arrow(f"v{m}", f"h{m}", "value", weights=shown),
            arrow(f"h{m}", f"joined.{h}", "value"),
            arrow(f"joined.{h}", f"o{m}", drawn=False),
            arrow(f"o{m}", "out", drawn=False),
        ]
    return Drawing(
        body,
        arrow("x", "q", drawn=False),
        *links,
        alt=f"The token {asks} asks. Its query is cut in two, one half for each of two heads, side"
        " by side. Each head has keys, scores, weights as upright bars, values and a result. Both"
        " results are joined, each goes through its half of W_O, and their sum is the output.",
        steps=steps,
        **options,
    )
