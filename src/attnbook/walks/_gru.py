"""One step of a GRU: its gates, the candidate state, and the new state."""

from typing import Any

import torch
from torch import Tensor, nn

from attnbook.checks import check_shapes, check_whole
from attnbook.model.seq2seq import GRUCell
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, space, text
from attnbook.walks._input import written_sum
from attnbook.web import Drawing, Step

MOST = 5  # numbers side by side


def gru_step(
    cell: GRUCell | nn.GRUCell, x: Tensor, h: Tensor, *, shown: int = MOST, **options: Any
) -> Drawing:
    """One step of a GRU, number by number: reset gate, proposal, update gate, the mix of both.

    Each column is one number of the state, computed from top to bottom.

    Args:
        cell: a `GRUCell` with either kind of reset, or PyTorch's.
        x: `[d_input]` the input.
        h: `[d_state]` the previous state.
        shown: how many numbers of each vector are shown, at most `MOST`.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if x or h does not fit the cell, the cell has no biases, or
            `shown` is not in 2 .. `MOST`.

    Source: Cho et al. 2014, equations 5 to 8; the documentation of `torch.nn.GRU`.
    """
    check_whole(2, shown=shown)
    if shown > MOST:
        raise ValueError(f"shown must be at most {MOST}, got {shown}")
    if not isinstance(cell, (GRUCell, nn.GRUCell)) or cell.bias_ih is None:
        raise ValueError(f"cell must be a GRUCell with biases, got {cell}")
    d_state, d_input = cell.weight_hh.shape[1], cell.weight_ih.shape[1]
    check_shapes(x=(x, "d_input"), h=(h, "d_state"), d_input=d_input, d_state=d_state)
    after = getattr(cell, "reset", "after") == "after"
    with torch.no_grad():
        made = cell(x[None], h[None])[0]
        x_r, x_z, x_n = (cell.weight_ih @ x + cell.bias_ih).chunk(3)
        h_r, h_z, h_n = (cell.weight_hh @ h + cell.bias_hh).chunk(3)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        u_n, c_n = cell.weight_hh.chunk(3)[2], cell.bias_hh.chunk(3)[2]
        past = r * h_n if after else u_n @ (r * h) + c_n
        n = torch.tanh(x_n + past)

    def strip(name: str, vector: Tensor, role: str = "", high: float | None = None) -> Part:
        """A row of cells; a gate's shades stand for 0 to 1, a state's for −1 to 1."""
        largest = high or max(float(vector[:shown].abs().max()), 1e-6)
        span = (0.0 if role == "weight" else -largest, largest)
        return cells(vector[:shown], role, name=name, digits=2, width=36, span=span)

    high = max(1.0, float(h.abs().max()))
    rows: list[Any] = [
        ["word x", strip("x", x)],
        ["state h", strip("h", h, "state", high)],
        space(8),
        ["reset gate r", strip("r", r, "weight", 1.0)],
        [
            "past U h + c" if after else "past r ⊙ h",
            strip("past", h_n if after else r * h, "state"),
        ],
        [
            "past, times r" if after else "U (r ⊙ h) + c",
            strip("let", past, "state"),
        ],
        ["word W x + b", strip("read", x_n)],
        ["proposal n", strip("n", n, "value", high)],
        space(8),
        ["update gate z", strip("z", z, "weight", 1.0)],
        ["keep z ⊙ h", strip("kept", z * h, "state", high)],
        ["take (1−z) ⊙ n", strip("taken", (1 - z) * n, "value", high)],
        ["next state h′", strip("next", made, "state", high)],
    ]
    body = grid(
        [
            [text(line[0], size=SMALL, beside=line[1].name), line[1]]
            if isinstance(line, list)
            else line
            for line in rows
        ],
        align="rl",
        gap=(8, 12),
    )
    k = int(
        ((z - 0.5) * (h - n))[:shown].abs().argmax()
    )  # where the old and the new part differ most
    held, new = float(z[k] * h[k]), float((1 - z[k]) * n[k])
    low = int(r[:shown].argmin())
    more = f" Of each vector {shown} numbers are shown." if max(d_state, d_input) > shown else ""
    steps = [
        Step(
            f"A GRU reads a [word](x), as a vector of {d_input} numbers, and its own [state](h) so"
            f" far, {d_state} numbers.{more}",
            "x h",
        ),
        Step(
            "The [reset gate](r) is computed from both, by learnt matrices. A sigmoid makes its"
            f" numbers lie between 0 and 1. The smallest here is [{r[low]:.2f}](r.{low}).",
            "r",
        ),
        Step(
            "The [past](past): another matrix mixes the numbers of the state."
            if after
            else f"The gate multiplies the state, number by number: the [past](past). Of number"
            f" {low + 1} it lets [{r[low]:.2f}](r.{low}) through.",
            "past",
        ),
        Step(
            "The gate multiplies it, number by number. Of number"
            f" {low + 1} it lets [{r[low]:.2f}](r.{low}) [through](let)."
            if after
            else "Another matrix [mixes](let) what the gate let through.",
            "let",
        ),
        Step("What the [word](read) itself says comes from a matrix of its own.", "read"),
        Step(
            f"Their sum goes through a tanh. That is the [proposal](n) for the new state. Its first"
            f" number: tanh({written_sum([float(past[0]), float(x_n[0])])})"
            f" = {written_sum([float(n[0])])}.",
            "n",
        ),
        Step(
            "The [update gate](z) is computed as the reset gate was, with other matrices. It"
            " decides what the state keeps.",
            "z",
            ask="Old state or proposal: who decides, for each number of the state?",
        ),
        Step("z times the old state is what is [kept](kept).", "kept"),
        Step("1 − z times the proposal is what is [taken](taken).", "taken"),
        Step(
            f"The sum is the [next state](next). Number {k + 1}: {written_sum([held, new])} ="
            f" [{written_sum([float(made[k])])}](next.{k}).",
            "next",
            ask=f"Of number {k + 1} the update gate is {z[k]:.2f}. Will the next state be nearer"
            " to the old one or to the proposal?",
        ),
        Step(
            f"It was [{written_sum([float(h[k])])}](h.{k}), the proposal was"
            f" [{written_sum([float(n[k])])}](n.{k}). Where z is near 1 a number stays as it is,"
            " however many words are read. Where z is near 0 it is replaced.",
            "next",
        ),
    ]
    lets = [arrow("past.*", "let.*", "state", drawn=False), arrow("r.*", "let.*", drawn=False)]
    if not after:
        lets = [arrow("h.*", "past.*", drawn=False), arrow("r.*", "past.*", drawn=False)]
    return Drawing(
        body,
        *(arrow(part, gate, drawn=False) for part in ("x", "h") for gate in ("r", "z")),
        *lets,
        *(arrow(f"{part}.*", "n.*", drawn=False) for part in ("let", "read")),
        arrow("h", "kept", "state", side="right"),
        arrow("z.*", "kept.*", drawn=False),
        *(arrow(f"{part}.*", "taken.*", drawn=False) for part in ("n", "z")),
        *(arrow(f"{part}.*", "next.*", drawn=False) for part in ("kept", "taken")),
        alt="Rows of numbers, a column for each number of the state: the word, the state, the reset"
        " gate, the past that it lets through, the proposal, the update gate, what is kept, what is"
        " taken, and their sum, the next state.",
        steps=steps,
        **options,
    )
