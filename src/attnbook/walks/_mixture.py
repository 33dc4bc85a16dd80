"""One vector through a mixture of experts: scores, the best two, their gates, and the sum."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from attnbook.checks import check_choice, check_range, check_shapes
from attnbook.model.decoding import evaluating
from attnbook.model.mixture import Mixture
from attnbook.model.recording import calls
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, column, grid
from attnbook.walks._pieces import brief, small, written_sum
from attnbook.web import Drawing, Step

SHOWN = 6  # numbers shown of a vector
WIDE = 33  # units: the width of a network's column


class Passed(NamedTuple):
    """What happens to a vector; the two chosen networks are in the order of their numbers."""

    x: Tensor  # [d_model]
    scores: Tensor  # [expert]
    chosen: list[int]
    gates: Tensor  # [2]
    made: list[Tensor]  # the result of each of the two, [d_model]
    y: Tensor  # [d_model]


def mixture_step(mixture: Mixture, x: Tensor, *, word: str, **options: Any) -> Drawing:
    """One vector through a mixture of experts: the router's scores, two networks, gates, the sum.

        s = W_r x,   g = softmax of the two largest of s,   y = sum_(e chosen) g_e FF_e(x)

    with x and y `[d_model]`, s `[expert]`, W_r `[expert d_model]`.

    Args:
        mixture: three to eight networks, of which each token uses two.
        x: `[d_model]` the vector.
        word: the token whose vector it is, a short text.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if `mixture` has or uses another number of networks, or x does not match it or
            is not finite.

    Source: Shazeer et al. 2017, section 2; Jiang et al. 2024, section 2.1.
    """
    check_range(3, 8, networks=len(mixture.experts))
    check_choice((2,), top=mixture.top)
    check_shapes(x=(x, "d_model"), d_model=mixture.router.in_features)
    if not x.isfinite().all():
        raise ValueError(f"x must be finite, got {x[~x.isfinite()][0].item()}")
    passed = _passed(mixture, x)
    held = [sum(p.numel() for p in expert.parameters()) for expert in mixture.experts]
    return Drawing(
        _body(passed, word),
        arrow("x", "s", drawn=False),
        *(arrow(f"s.{e}", f"net.{i}", "state") for i, e in enumerate(passed.chosen)),
        arrow("net", "gate", "state"),
        arrow("x", "out", drawn=False),
        arrow("out", "given", drawn=False),
        arrow("given", "y", drawn=False),
        alt=f"The vector of {word}. Below, the router's scores for {len(held)} networks; under the"
        " two largest scores the networks that are chosen, with their gates. Then the results of"
        " these two networks, the results times their gates, and at the bottom their sum, y.",
        steps=[*_choosing(passed, word, len(held)), *_summing(passed, word, held)],
        **options,
    )


def _passed(mixture: Mixture, x: Tensor) -> Passed:
    with evaluating(mixture), calls(mixture) as seen:
        y = mixture(x)
    scores = seen["router"][1][0]
    chosen = sorted(scores.topk(2).indices.tolist())
    made = [seen[f"experts.{e}"][1][0] for e in chosen]
    return Passed(x, scores, chosen, scores[chosen].softmax(-1), made, y)


def _body(passed: Passed, word: str) -> Part:
    x, made, gates, y = passed.x, passed.made, passed.gates, passed.y
    high = float(max(v.abs().max() for v in (*made, y))) or 1.0

    def strip(words: str, name: str, vector: Tensor, role: str, **look: Any) -> list[Part]:
        numbers = cells(vector[:SHOWN], role, name=name, digits=2, width=38, **look)
        return [small(words, name), numbers]

    pairs = [*zip(passed.chosen, gates, made, strict=True)]
    results = [
        *(strip(f"FF{e + 1}(x)", "out", out, "value", span=(-high, high)) for e, _, out in pairs),
        *(
            strip(f"{g:.2f} × FF{e + 1}(x)", "given", g * out, "value", span=(-high, high))
            for e, g, out in pairs
        ),
        strip("y", "y", y, "state", span=(-high, high)),
    ]
    more = f", {SHOWN} of {len(x)}" if len(x) > SHOWN else ""
    return column(
        grid([strip(f"x of “{word}”{more}", "x", x, "state")]),
        grid(_router(passed), gap=(5, 14), align="rc"),
        grid(results, gap=(8, 6), align="rc"),
        gap=22,
    )


def _router(passed: Passed) -> list[list[Part | None]]:
    """Rows with a column for each network: its number, score, whether it is chosen, and gate."""
    most = float(passed.scores.abs().max()) or 1.0

    def line(words: str, name: str, parts: Iterable[Part], at: Iterable[int]) -> list[Part | None]:
        inside = dict(zip(at, parts, strict=True))
        return [small(words, name), *(inside.get(e) for e in every)]

    def number(name: str, value: Tensor, digits: int, least: float, most: float) -> Part:
        look: Any = {"name": name, "digits": digits, "width": WIDE, "span": (least, most)}
        return cells([value], "weight", **look)

    every, chosen = range(len(passed.scores)), passed.chosen
    nets = [box(f"FF{e + 1}", "state", name="net", size=SMALL, width=WIDE) for e in chosen]
    return [
        line("network", "s", [small(str(e + 1), "s") for e in every], every),
        line("score", "s", [number("s", s, 1, -most, most) for s in passed.scores], every),
        line("chosen", "net", nets, chosen),
        line("gate", "gate", [number("gate", g, 2, 0.0, 1.0) for g in passed.gates], chosen),
    ]


def _choosing(passed: Passed, word: str, n: int) -> list[Step]:
    scores = passed.scores
    a, b = (f"FF{e + 1}" for e in passed.chosen)
    of_a, of_b = (brief(scores[e], 1) for e in passed.chosen)
    g_a, g_b = map(brief, passed.gates)
    rest = "other one does" if n == 3 else f"other {n - 2} do"
    return [
        Step(
            f"The [vector x](x) of “{word}” comes to {n} networks. Each of them could take it.",
            "x",
        ),
        Step(
            "The router multiplies x by a matrix: [a score](s) for each network. Network 1 gets"
            f" [{brief(scores[0], 1)}](s.0).",
            "s",
        ),
        Step(
            f"The two with the largest scores: [{a}](net.0) with {of_a} and [{b}](net.1) with"
            f" {of_b}. The {rest} not compute.",
            "net",
            ask=f"Two of the {n} networks will work. Which two?",
        ),
        Step(
            "A softmax over these two scores alone makes the [gates](gate):"
            f" e^({of_a}) / (e^({of_a}) + e^({of_b})) = [{g_a}](gate.0), and"
            f" [{g_b}](gate.1) for {b}. Their sum is 1.",
            "gate",
        ),
    ]


def _summing(passed: Passed, word: str, held: Sequence[int]) -> list[Step]:
    chosen, gates, n = passed.chosen, passed.gates, len(held)
    a, b = (f"FF{e + 1}" for e in chosen)
    first = [out[0] for out in passed.made]
    given = [g * out for g, out in zip(gates, first, strict=True)]
    g_a, g_b, out_a, out_b = map(brief, (*gates, *first))
    return [
        Step(
            f"Now x goes through both networks. [{a}(x)](out.0) begins with {out_a},"
            f" [{b}(x)](out.1) with {out_b}.",
            "out",
        ),
        Step(
            f"Each result is multiplied by its gate. [First numbers](given): {g_a} × {out_a} ="
            f" {brief(given[0])}, and {g_b} × {out_b} = {brief(given[1])}.",
            "given",
        ),
        Step(
            f"Their sum is [y](y), what the layer gives: {written_sum([*map(float, given)])} ="
            f" [{brief(passed.y[0])}](y.0).",
            "y",
        ),
        Step(
            f"No operations, but memory: all {n} networks hold {sum(held):,} parameters, of which"
            f" “{word}” used {sum(held[e] for e in chosen):,}. Another token may need others.",
            ask=f"Two of {n} networks computed. What do all others cost?",
        ),
    ]
