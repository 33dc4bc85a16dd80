"""One step of a GRU as a drawing of its wires: gates, proposal, and the path past them."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnbook.checks import check_shapes, check_whole
from attnbook.model.seq2seq import GRUCell
from attnbook.show.drawing import SMALL, Part, arrow, cells, column, grid, text
from attnbook.walks._pieces import written_sum
from attnbook.web import Drawing, Step

MOST = 4  # numbers side by side


class Wires(NamedTuple):
    """What passes through a cell, each `[d_state]`, named as in `GRUCell`'s equations."""

    r: Tensor
    z: Tensor
    past: Tensor  # what the reset gate lets the proposal see of the state
    word: Tensor  # W_g x + b_g
    g: Tensor
    new: Tensor


def gru_step(
    cell: GRUCell | nn.GRUCell, x: Tensor, h: Tensor, *, shown: int = MOST, **options: Any
) -> Drawing:
    """One step of a GRU along its wires: reset gate, past, proposal, update gate, next state.

    Word and state are at the top; wires lead down to the gates, and one wire bypasses them, from
    the state to the next state, where the update gate mixes it with the proposal.

    Args:
        cell: a `GRUCell` with either kind of reset, or PyTorch's.
        x: `[d_input]` the input.
        h: `[d_state]` the previous state.
        shown: how many numbers of each vector are shown, at most `MOST`.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if x or h does not match the cell, the cell has no biases, or
            `shown` is not in 2 .. `MOST`.

    Source: Cho et al. 2014, figure 2 and equations 5 to 8; the documentation of `torch.nn.GRU`.
    """
    check_whole(2, shown=shown)
    if shown > MOST:
        raise ValueError(f"shown must be at most {MOST}, got {shown}")
    if not isinstance(cell, (GRUCell, nn.GRUCell)) or cell.bias_ih is None:
        raise ValueError(f"cell must be a GRUCell with biases, got {cell}")
    d_state, d_input = cell.weight_hh.shape[1], cell.weight_ih.shape[1]
    check_shapes(x=(x, "d_input"), h=(h, "d_state"), d_input=d_input, d_state=d_state)
    after = getattr(cell, "reset", "after") == "after"
    wires = _wires(cell, x, h, after)
    return Drawing(
        _body(wires, x, h, shown, after),
        *(arrow(part, f"{gate}-box") for part in ("x", "h") for gate in ("r", "z")),
        arrow("r", "past-box", "weight"),
        arrow("h", "past", "state", side="right"),
        arrow("past", "g-box", "state"),
        arrow("x", "g", side="left"),
        arrow("g", "next-box", "value"),
        arrow("z", "next-box", "weight"),
        arrow("h", "next", "state", side="right"),
        alt="A word and a state above. Wires lead from both to a reset gate and an update gate."
        " The reset gate and the state lead to the past, this and the word to a proposal. Proposal,"
        " update gate, and a wire that comes straight from the state, lead to the next state.",
        steps=[*_proposing(wires, x, h, shown, after), *_mixing(wires, h, shown)],
        **options,
    )


@torch.no_grad()
def _wires(cell: GRUCell | nn.GRUCell, x: Tensor, h: Tensor, after: bool) -> Wires:
    x_r, x_z, x_g = (cell.weight_ih @ x + cell.bias_ih).chunk(3)
    h_r, h_z, h_g = (cell.weight_hh @ h + cell.bias_hh).chunk(3)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    u_g, b_g = cell.weight_hh.chunk(3)[2], cell.bias_hh.chunk(3)[2]
    past = r * h_g if after else u_g @ (r * h) + b_g
    return Wires(r, z, past, x_g, torch.tanh(x_g + past), cell(x[None], h[None])[0])


def _body(wires: Wires, x: Tensor, h: Tensor, shown: int, after: bool) -> Part:
    r, z, past, _, g, new = wires
    high = max(1.0, float(h.abs().max()))

    def strip(words: str, name: str, vector: Tensor, role: str = "") -> Part:
        """A labelled row of cells; a gate's shades span 0 to 1, a state's at least −1 to 1."""
        largest = max(float(vector[:shown].abs().max()), 1e-6)
        largest = {"weight": 1.0, "state": high, "value": high}.get(role, largest)
        span = (0.0 if role == "weight" else -largest, largest)
        numbers = cells(vector[:shown], role, name=name, digits=2, width=34, span=span)
        return column(text(words, size=SMALL, beside=name), numbers, gap=2, name=f"{name}-box")

    let = "r ⊙ (U h + b′)" if after else "U (r ⊙ h) + b′"
    rows = [
        [strip("word x", "x", x), strip("state h", "h", h, "state")],
        [strip("reset gate r", "r", r, "weight"), strip("update gate z", "z", z, "weight")],
        [strip(f"past {let}", "past", past, "state"), None],
        [strip("proposal g", "g", g, "value"), None],
        [None, strip("next state h′", "next", new, "state")],
    ]
    return grid(rows, gap=(36, 30))


def _proposing(wires: Wires, x: Tensor, h: Tensor, shown: int, after: bool) -> list[Step]:
    """From word and state to the proposal."""
    r, _, past, word, g, _ = wires
    more = f" Of each vector {shown} numbers are shown." if max(len(x), len(h)) > shown else ""
    low = int(r[:shown].argmin())
    through = f"Of number {low + 1} the gate lets [{r[low]:.2f}](r.{low}) through"
    return [
        Step(
            f"A GRU reads a [word](x), as a vector of {len(x)} numbers, and its own [state](h) so"
            f" far, {len(h)} numbers.{more}",
            "x h x-box h-box",
        ),
        Step(
            "The [reset gate](r) is computed from both, by learnt matrices. A sigmoid makes its"
            f" numbers lie between 0 and 1. The smallest here is [{r[low]:.2f}](r.{low}).",
            "r r-box",
        ),
        Step(
            f"A matrix mixes the numbers of the state. {through}: the [past](past)."
            if after
            else f"{through}. Then a matrix mixes what is left of the state: the [past](past).",
            "past past-box",
        ),
        Step(
            "The past and what the word says, by a matrix of its own, are added and go through a"
            " tanh. That is the [proposal](g) for the new state. Its first number:"
            f" tanh({written_sum([float(past[0]), float(word[0])])}) = [{_said(g[0])}](g.0).",
            "g g-box",
        ),
    ]


def _mixing(wires: Wires, h: Tensor, shown: int) -> list[Step]:
    """From the proposal to the next state, for the number whose gate matters most."""
    z, g, new = wires.z, wires.g, wires.new
    k = int(((z - 0.5) * (h - g))[:shown].abs().argmax())
    mix = f"{float(z[k]):.2f} · {_said(h[k])} + {1 - float(z[k]):.2f} · {_said(g[k])}"
    return [
        Step(
            "The [update gate](z) is computed as the reset gate was, with other matrices. It"
            " decides what the state keeps.",
            "z z-box",
            ask="Old state or proposal: who decides, for each number of the state?",
        ),
        Step(
            "The [next state](next) is a mix: z of the old state, which comes by a wire of its own,"
            f" and 1 − z of the proposal. Number {k + 1}: {mix} = [{_said(new[k])}](next.{k}).",
            "next next-box",
            ask=f"Of number {k + 1} the update gate is {z[k]:.2f}. Will the next state be nearer"
            " to the old one or to the proposal?",
        ),
        Step(
            f"It was [{_said(h[k])}](h.{k}), the proposal was [{_said(g[k])}](g.{k}). Where z is"
            " near 1 a number stays as it is, however many words are read. Where z is near 0 it is"
            " replaced.",
            "next",
        ),
    ]


def _said(value: Tensor) -> str:
    return written_sum([float(value)])
