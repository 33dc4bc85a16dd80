"""Linear attention: the n x n table of products, rearranged into a state that does not grow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes
from attnbook.model.efficient import linear_attention_step
from attnbook.show.drawing import SMALL, Part, arrow, cells, column, frame, grid, text
from attnbook.walks._pieces import brief, small
from attnbook.web import Drawing, Step


@dataclass(frozen=True)
class Made:
    """The output of the last token, computed in both ways."""

    names: Sequence[str]
    fq: Tensor  # [token 2] phi of the queries
    fk: Tensor  # [token 2] phi of the keys
    v: Tensor  # [token 2]
    pairs: Tensor  # [query key]
    slow: Tensor  # [2] the output from the pairs
    states: list[Tensor]  # [2 3] after each token
    quick: Tensor  # [2] the output from the last state


def linear_state(q: Tensor, k: Tensor, v: Tensor, names: Sequence[str], **options: Any) -> Drawing:
    """Causal linear attention twice: with a product for each pair, and with a state.

        out_i = sum_(j <= i) (phi(q_i) . phi(k_j)) v_j / sum_(j <= i) phi(q_i) . phi(k_j)
              = phi(q_i) S_i / phi(q_i) z_i,   [S_i z_i] = sum_(j <= i) phi(k_j)^T [v_j 1]

    Args:
        q, k, v: `[token 2]` queries, keys and values of two numbers, two to five of each.
        names: a short text for each token.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if shapes do not match each other, or the number of tokens is wrong.

    Source: Katharopoulos et al. 2020, sections 3.2 and 3.4.
    """
    n = len(names)
    check_range(2, 5, tokens=n)
    check_shapes(q=(q, "token d"), k=(k, "token d"), v=(v, "token d"), token=n, d=2)
    made = _made(q, k, v, names)
    return Drawing(
        column(
            frame(_with_state(made), "with a state"),
            frame(_with_pairs(made), "with a product for each pair", name="square"),
            gap=10,
        ),
        arrow("q", "out", drawn=False),
        alt="Above, a line for each token: key, value, and a state of two by three numbers; then"
        f" the query and the output of the last token. Below, a table of {n} by {n} products of"
        " queries and keys, crossed out where a key comes later, and the same output.",
        steps=[*_by_pairs(made), *_by_state(made)],
        **options,
    )


@torch.no_grad()
def _made(q: Tensor, k: Tensor, v: Tensor, names: Sequence[str]) -> Made:
    fq, fk = (torch.where(t > 0, t + 1, t.clamp(max=0).exp()) for t in (q, k))
    pairs = fq @ fk.T
    slow = pairs[-1] @ v / pairs[-1].sum()
    outputs, states, state = [], [], None
    for t in range(len(names)):
        here = slice(t, t + 1)
        out, state = linear_attention_step(q[None, here], k[None, here], v[None, here], state)
        outputs.append(out[0, 0])
        states.append(state[0, 0])
    return Made(names, fq, fk, v, pairs, slow, states, outputs[-1])


def _strip(name: str, x: Tensor, role: str, among: Tensor) -> Part:
    high = float(among.abs().max()) or 1.0
    return cells(x, role, name=name, digits=1, width=30, span=(-high, high))


def _with_pairs(made: Made) -> Part:
    """A row of products for each query, crossed out where a key comes later."""
    n, span = len(made.names), (0, float(made.pairs.max()))
    square = made.pairs.masked_fill(torch.ones(n, n).triu(1).bool(), torch.nan)
    lines = [
        [
            small(name, "pairs"),
            cells(products, "weight", name="pairs", digits=1, width=30, span=span),
        ]
        for name, products in zip(made.names, square, strict=True)
    ]
    heads = grid([[small(name, "pairs") for name in made.names]], gap=18)
    output = [small("output", "slow"), _strip("slow", made.slow, "value", made.v)]
    return grid([[None, heads], *lines, output], gap=(6, 4), align="rc")


def _with_state(made: Made) -> Part:
    """A row for each token's key, value and state, and one for the query and the output."""
    fq, fk, v, states = made.fq, made.fk, made.v, made.states
    lines = [
        [
            text(name, name="t", size=SMALL),
            _strip("k", fk[t], "key", fk),
            _strip("v", v[t], "value", v),
            _strip("state", states[t], "state", states[-1]),
        ]
        for t, name in enumerate(made.names)
    ]
    heads = [None, small("φ(k)", "k"), small("value", "v"), small("S and z", "state")]
    output = [
        small(f"φ(q) of {made.names[-1]}", "q"),
        _strip("q", fq[-1], "query", fq),
        small("output", "out"),
        _strip("out", made.quick, "value", v),
    ]
    return grid([heads, *lines, output], gap=(8, 6), align="rc")


def _by_pairs(made: Made) -> list[Step]:
    (fq, fk), n, last = (made.fq[-1], made.fk[0]), len(made.names), made.names[-1]
    return [
        Step(
            f"No softmax: the weight of a pair is [φ(q)](q) · [φ(k)](k.0), made positive by φ. The"
            f" query of “{last}” and the first key: {brief(fq[0], 1)} · {brief(fk[0], 1)} +"
            f" {brief(fq[1], 1)} · {brief(fk[1], 1)}.",
            "t q k",
        ),
        Step(
            "The first way is attention's: a [product for each pair](pairs),"
            f" {n * (n + 1) // 2} of them. For “{last}”, the last row:"
            f" {brief(made.pairs[-1, 0], 1)} for the first key.",
            "square pairs",
            ask=f"How many products do {n} tokens need, where nobody sees the future?",
        ),
        Step(
            "The last row times the [values](v), divided by its sum, is the [output](slow) of"
            f" “{last}”: {brief(made.slow[0], 1)} and {brief(made.slow[1], 1)}.",
            "v slow",
        ),
    ]


def _by_state(made: Made) -> list[Step]:
    n, last, first = len(made.names), made.names[-1], made.states[0]
    steps = [
        Step(
            f"Now the other order. φ(q) of “{last}” stands in every product of its row, so it"
            " can wait: first sum over the keys. The first token's key times its value, and times"
            f" 1, is [a small table](state.0): {brief(made.fk[0, 0], 1)} ·"
            f" {brief(made.v[0, 0], 1)} = {brief(first[0, 0], 1)} is its first number.",
            "state.0",
            ask="Which factor do all products of one row share?",
        )
    ]
    for t, name in enumerate(made.names[1:], 1):
        told = f"“{name}” adds its own to [the state](state.{t})."
        if t == 1:
            told = (
                f"“{name}” adds its own table: [the state](state.{t}) has new numbers, and not one"
                " number more."
            )
        steps.append(Step(told, f"state.{t}"))
    steps += [
        Step(
            f"[φ(q)](q) of “{last}” times this state: two sums of values, and the sum of the"
            " weights (last column), which divides. The [output](out) is the same"
            f" {brief(made.quick[0], 1)} and {brief(made.quick[1], 1)}.",
            "out",
        ),
        Step(
            f"The table of pairs has n × n places, {n * n} here, and 16.8 million for 4,096 tokens."
            " The state has d × (d + 1), 6 here, for any number of tokens."
        ),
    ]
    return steps
