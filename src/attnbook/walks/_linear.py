"""Linear attention: the n x n table of products, rearranged into a state that does not grow."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes
from attnbook.model.efficient import linear_attention_step
from attnbook.show.drawing import SMALL, Part, arrow, cells, column, frame, grid, text
from attnbook.walks._attention import _brief
from attnbook.web import Drawing, Step


def linear_state(q: Tensor, k: Tensor, v: Tensor, names: Sequence[str], **options: Any) -> Drawing:
    """Causal linear attention twice: with a product for each pair, and with a state.

        out_i = sum_(j <= i) (phi(q_i) . phi(k_j)) v_j / sum_(j <= i) phi(q_i) . phi(k_j)
              = phi(q_i) S_i / phi(q_i) z_i,   [S_i z_i] = sum_(j <= i) phi(k_j)^T [v_j 1]

    Args:
        q, k, v: `[token 2]` queries, keys and values of two numbers, two to five of each.
        names: a short text for each token.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if shapes do not fit each other, or the number of tokens is wrong.

    Source: Katharopoulos et al. 2020, sections 3.2 and 3.4.
    """
    n = len(names)
    check_range(2, 5, tokens=n)
    check_shapes(q=(q, "token d"), k=(k, "token d"), v=(v, "token d"), token=n, d=2)
    with torch.no_grad():
        fq, fk = (torch.where(t > 0, t + 1, t.clamp(max=0).exp()) for t in (q, k))
        pairs = fq @ fk.T  # [query key]
        square = pairs.masked_fill(torch.ones(n, n).triu(1).bool(), torch.nan)
        weights = pairs[-1]
        slow = weights @ v / weights.sum()
        states, state = [], None
        for t in range(n):
            out, state = linear_attention_step(
                q[None, t : t + 1], k[None, t : t + 1], v[None, t : t + 1], state
            )
            states.append(state[0, 0])
        quick = out[0, 0]

    def strip(name: str, x: Tensor, role: str, among: Tensor) -> Part:
        high = float(among.abs().max()) or 1.0
        return cells(x, role, name=name, digits=1, width=30, span=(-high, high))

    def small(words: str, beside: str) -> Part:
        return text(words, size=SMALL, beside=beside)

    top = float(pairs.max())
    line = [
        [
            small(names[t], "pairs"),
            cells(square[t], "weight", name="pairs", digits=1, width=30, span=(0, top)),
        ]
        for t in range(n)
    ]
    first = grid(
        [
            [None, grid([[small(a, "pairs") for a in names]], gap=18)],
            *line,
            [small("output", "slow"), strip("slow", slow, "value", v)],
        ],
        gap=(6, 4),
        align="rc",
    )
    second = grid(
        [
            [None, small("φ(k)", "k"), small("value", "v"), small("S and z", "state")],
            *[
                [
                    text(names[t], name="t", size=SMALL),
                    strip("k", fk[t], "key", fk),
                    strip("v", v[t], "value", v),
                    strip("state", states[t], "state", states[-1]),
                ]
                for t in range(n)
            ],
            [
                small("φ(q)", "q"),
                strip("q", fq[-1], "query", fq),
                small("output", "out"),
                strip("out", quick, "value", v),
            ],
        ],
        gap=(8, 6),
        align="rc",
    )
    last, count = names[-1], n * (n + 1) // 2
    steps = [
        Step(
            f"No softmax: the weight of a pair is [φ(q)](q) · [φ(k)](k.0), made positive by φ. The"
            f" query of “{last}” and the first key: {_brief(fq[-1, 0], 1)} ·"
            f" {_brief(fk[0, 0], 1)} + {_brief(fq[-1, 1], 1)} · {_brief(fk[0, 1], 1)}.",
            "t q k",
        ),
        Step(
            f"The first way is attention's: a [product for each pair](pairs), {count} of them. For"
            f" “{last}”, the last row: {_brief(weights[0], 1)} for the first key.",
            "square pairs",
            ask=f"How many products do {n} tokens need, where nobody sees the future?",
        ),
        Step(
            "The last row times the [values](v), divided by its sum, is the [output](slow) of"
            f" “{last}”: {_brief(slow[0], 1)} and {_brief(slow[1], 1)}.",
            "v slow",
        ),
        Step(
            "Now the other order. φ(q) of “" + last + "” stands in every product of its row, so it"
            " can wait: first sum over the keys. The first token's key times its value, and times"
            f" 1, is [a small table](state.0): {_brief(fk[0, 0], 1)} ·"
            f" {_brief(v[0, 0], 1)} = {_brief(states[0][0, 0], 1)} is its first number.",
            "state.0",
            ask="Which factor do all products of one row share?",
        ),
    ]
    for t in range(1, n):
        steps.append(
            Step(
                f"“{names[t]}” adds its own table: [the state](state.{t}) has new numbers, and"
                " not one number more."
                if t == 1
                else f"“{names[t]}” adds its own to [the state](state.{t}).",
                f"state.{t}",
            )
        )
    steps += [
        Step(
            f"[φ(q)](q) of “{last}” times this state: two sums of values, and the sum of the"
            " weights (last column), which divides. The [output](out) is the same"
            f" {_brief(quick[0], 1)} and {_brief(quick[1], 1)}.",
            "out",
        ),
        Step(
            f"The table of pairs has n × n places, {n * n} here, and 16.8 million for 4,096 tokens."
            " The state has d × (d + 1), 6 here, for any number of tokens."
        ),
    ]
    return Drawing(
        column(
            frame(second, "keys, values and a state"),
            frame(first, "a product for each pair", name="square"),
            gap=10,
        ),
        arrow("q", "out", drawn=False),
        alt="Above, a line for each token: key, value, and a state of two by three numbers; then"
        f" the query and the output of the last token. Below, a table of {n} by {n} products of"
        " queries and keys, crossed out where a key comes later, and the same output.",
        steps=steps,
        **options,
    )
