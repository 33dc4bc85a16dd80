"""How far the last token sees through a stack of layers: windows, and dilated convolutions."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from attnbook.checks import check_range, check_shapes
from attnbook.show.drawing import SMALL, Arrow, Part, arrow, cells, grid, text
from attnbook.web import Drawing, Step

CELL = 19  # units


def reach(layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor, **options: Any) -> Drawing:
    """Which tokens can change the last output, layer by layer, according to the gradient.

        reached_l = { j : d y_n / d x^l_j is not 0 }

    Args:
        layers: one to five functions from `[token d]` to `[token d]`, the lowest first.
        x: `[token d]`, 8 to 16 tokens.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there are too few or too many layers or tokens.

    Source: Oord et al. 2016, section 2.1, figure 3; Beltagy et al. 2020, section 3.1.
    """
    sizes = check_shapes(x=(x, "token d"))
    n, depth = sizes["token"], len(layers)
    check_range(8, 16, tokens=n)
    check_range(1, 5, layers=depth)
    with torch.enable_grad():
        states = [x.detach().clone().requires_grad_()]
        for layer in layers:
            states.append(layer(states[-1]))
        below = [_links(layers[i], states[i]) for i in range(depth)]  # [depth][query key]
        grads = torch.autograd.grad(states[-1][-1].sum(), states[:-1])
    lit = [(g.abs().sum(-1) > 0).float() for g in grads]
    lit.append(torch.zeros(n).index_fill(0, torch.tensor([n - 1]), 1.0))
    counts = [int(each.sum()) for each in lit]

    return Drawing(
        _body(lit),
        *_arrows(lit, below),
        alt=f"{depth + 1} rows of {n} cells, the input at the bottom. Lit are the cells that can"
        f" change the last one on top: {', '.join(map(str, reversed(counts)))} from top to bottom."
        " Arrows join each to what it reads.",
        steps=_steps(counts, n),
        **options,
    )


def _body(lit: Sequence[Tensor]) -> Part:
    """A row for each layer, with the input at the bottom."""

    def line(i: int) -> list[Part]:
        label = text(f"layer {i}" if i else "input", size=SMALL)
        return [label, cells(lit[i], "value", name=f"l{i}", width=CELL, height=14, span=(0, 1))]

    return grid([line(i) for i in reversed(range(len(lit)))], gap=(6, 22), align="rc")


def _arrows(lit: Sequence[Tensor], below: Sequence[Tensor]) -> list[Arrow]:
    """Arrows to each lit cell from the cells that it reads."""
    return [
        arrow(f"l{i}.{j}", f"l{i + 1}.{m}", "value")
        for i, links in enumerate(below)
        for m, j in links.nonzero().tolist()
        if lit[i + 1][m]
    ]


def _steps(counts: Sequence[int], n: int) -> list[Step]:
    """From the last output down to the input."""
    depth = len(counts) - 1
    steps = [Step(f"The [last output](l{depth}.{n - 1}) of {n}. What can change it?", f"l{depth}")]
    for i in reversed(range(depth)):
        where = f"of layer {i}" if i else "of the input"
        steps.append(
            Step(
                f"It depends on [{counts[i]} place{'s' * (counts[i] > 1)}](l{i}) {where}.",
                f"l{i}",
                ask=f"How many places {where} can change it?" if i < depth - 1 else "",
            )
        )
    return steps


def _links(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Which inputs (keys) change which outputs (queries) of one layer: `[query key]`."""
    given = x.detach().clone().requires_grad_()
    out = layer(given)
    each = [torch.autograd.grad(out[m].sum(), given, retain_graph=True)[0] for m in range(len(out))]
    return torch.stack([g.abs().sum(-1) > 0 for g in each])
