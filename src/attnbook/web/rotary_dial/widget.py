"""RotaryDial: a query and a key rotated by their positions; their score depends only on i - j."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.show.plots import ROLES
from attnbook.web._widget import Widget, WidgetError, as_array, as_tokens

LAST = 64  # positions 0..64
LONGEST = 2.0  # largest length of q and k
MODES = tuple(json.loads(Path(__file__).with_name("modes.json").read_text("utf-8")))
LOWER = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def positioned(vector: Any, position: Any, theta: float | int, mode: str) -> np.ndarray:
    """A vector of two numbers at each position, `[..., 2]`: rotated, or a sinusoid added to it.

    turn: (x cos a - y sin a, x sin a + y cos a);  add: (x + cos a, y + sin a);  a = position theta
    """
    (x, y), angle = vector, np.asarray(position) * theta
    s, c = np.sin(angle), np.cos(angle)
    new = (x + c, y + s) if mode == "add" else (x * c - y * s, x * s + y * c)
    return np.stack(new, axis=-1)


class RotaryDial(Widget):
    """Two vectors in the plane and the score of q at position i with k at position j.

    rotate: score = R(i theta) q . R(j theta) k = |q| |k| cos(phi + (i - j) theta)
    add:    score = (q + p_i) . (k + p_j) = q.k + q.p_j + p_i.k + p_i.p_j,
            p_i = (cos i theta, sin i theta)

    with R a rotation and phi the angle from k to q. Moving both positions by one leaves the first
    score unchanged, but not the second: its two middle terms depend on more than i - j.

    Args:
        q, k: vectors of two numbers, of length at most 2; the reader can drag them.
        i, j: the positions of q and k, 0 to 64.
        theta: the angle per position, in radians, 0 to pi (the slider ends at 1).
        words: the words of q and k, written beside them.
        mode: "rotate" (RoPE) or "add" (one pair of sinusoidal dimensions).
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `q`, `k`, `i`, `j`, `theta` and `mode` track the reader's choices; setting them
    changes what is shown.

    Source: Su et al. 2021, section 3.2.1; Vaswani et al. 2017, section 3.5.
    """

    _esm, _css = bundles.load("RotaryDial")

    q = traitlets.List().tag(sync=True)
    k = traitlets.List().tag(sync=True)
    i = traitlets.Int(0).tag(sync=True)
    j = traitlets.Int(0).tag(sync=True)
    theta = traitlets.Float(0.2).tag(sync=True)
    mode = traitlets.Unicode("rotate").tag(sync=True)
    words = traitlets.List(traitlets.Unicode(), ["", ""]).tag(sync=True)

    def __init__(
        self,
        q: Any = (1.6, 0.3),
        k: Any = (0.6, 1.2),
        *,
        i: int = 0,
        j: int = 0,
        theta: float | int = 0.2,
        mode: str = "rotate",
        words: Sequence[str] = ("", ""),
        title: str = "",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            title=title,
            q=as_array(q, "q").tolist(),
            k=as_array(k, "k").tolist(),
            i=i,
            j=j,
            theta=theta,
            mode=mode,
            words=as_tokens(words, "words"),
        )

    @traitlets.validate("q", "k")
    def _check_vector(self, proposal: Any) -> list[float]:
        trait, value = proposal["trait"].name, as_array(proposal["value"], proposal["trait"].name)
        if value.shape != (2,) or not np.hypot(*value) <= LONGEST + 1e-9:
            raise WidgetError(f"{trait} must be two numbers of length at most 2, not {value}")
        return value.tolist()

    @traitlets.validate("i", "j")
    def _check_position(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] <= LAST:
            name = proposal["trait"].name
            raise WidgetError(f"{name} must be 0..{LAST}, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("theta")
    def _check_theta(self, proposal: Any) -> float:
        if not 0 <= proposal["value"] <= np.pi:
            raise WidgetError(f"theta must be 0 to pi, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("mode")
    def _check_mode(self, proposal: Any) -> str:
        if proposal["value"] not in MODES:
            raise WidgetError(f"mode must be 'rotate' or 'add', not {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("words")
    def _check_words(self, proposal: Any) -> list[str]:
        if len(proposal["value"]) != 2:
            raise WidgetError(f"words must be two, of q and of k, not {proposal['value']}")
        return proposal["value"]

    def content(self) -> bytes:
        return f"{self.q} {self.k} {self.theta:g} {self.mode}".encode()

    def vectors(self) -> np.ndarray:
        """q at position i and k at position j, `[2 2]`."""
        return np.stack(
            [
                positioned(vector, position, self.theta, self.mode)
                for vector, position in ((self.q, self.i), (self.k, self.j))
            ]
        )

    def score(self) -> float:
        """The inner product of q at position i and k at position j."""
        q, k = self.vectors()
        return float(q @ k)

    def summary(self) -> str:
        q, k = (", ".join(f"{part:g}" for part in vector) for vector in (self.q, self.k))
        return f"q ({q}) and k ({k}), {self.mode}, angle {self.theta:g}"

    def draw(self, figure: Figure) -> None:
        plane, scores = figure.subplots(1, 2)
        starts = np.array([self.q, self.k])
        colours = (ROLES["query"], ROLES["key"])
        for start, now, name, word, position, colour in zip(
            starts, self.vectors(), "qk", self.words, (self.i, self.j), colours, strict=True
        ):
            plane.annotate("", start, (0, 0), arrowprops={"arrowstyle": "->", "color": "#999999"})
            plane.annotate("", now, (0, 0), arrowprops={"arrowstyle": "->", "color": colour})
            plane.annotate(name, start, fontsize=9, color="#777777")
            label = f"{name}{str(position).translate(LOWER)} {word}"
            plane.annotate(label, now, fontsize=10, color=colour, parse_math=False)
        plane.set(xlim=(-3.1, 3.1), ylim=(-3.1, 3.1), aspect="equal")
        all_i = np.arange(LAST + 1)
        every = [positioned(v, all_i, self.theta, self.mode) for v in (self.q, self.k)]
        distance = np.subtract.outer(all_i, all_i)
        scores.plot(distance.ravel(), (every[0] @ every[1].T).ravel(), ",", color="#2b6cb0")
        scores.plot(self.i - self.j, self.score(), "o", color="black")
        scores.set_xlabel("distance i − j, all pairs", fontsize=8)
        scores.set_ylabel("score", fontsize=8)
        for axes in (plane, scores):
            axes.tick_params(labelsize=7)
