"""AttentionPlane: queries, keys and values of two numbers as arrows that the reader drags."""

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.show.plots import ROLES
from attnbook.web._widget import Widget, WidgetError, as_array, as_tokens, short
from attnbook.web.softmax_temperature.widget import softmax

DIGITS = 4  # stored decimals of queries, keys and values
MOST = 20  # the largest absolute number in a vector
WORDS, WIDE = 8, 6  # most words, most numbers in a value
ARGUMENTS = {"q": "queries", "k": "keys", "v": "values"}


class AttentionPlane(Widget):
    """The query of one word and the keys of all in a plane; weights and output follow them.

        scores_j = q . k_j / sqrt(2),   weights = softmax(scores),   out = sum_j weights_j v_j

    q . k_j is the length of q times the length of the shadow that k_j casts on the line of q. The
    reader chooses whose query is used, and drags it and the keys. Values of two numbers can be
    dragged, too, in a plane of their own, as their numbers mean something else.

    Args:
        queries: `[asker 2]`, the query of each word that can be the asker.
        keys: `[word 2]`, the key of each word; 2 to 8 words.
        values: `[word d_v]`, the value of each word; d_v is at most 6. All three are stored with
            four decimals; everything else is computed from the stored numbers.
        words: the words, as text.
        query: the row of `queries` that is used at the start.
        askers: the words of `queries`, if they differ from `words`.
        outputs: names of the numbers of a value, and so of the output.
        key: the row of `keys` whose shadow is drawn first; -1: the one with the largest weight.
        root: whether, at the start, scores are divided by sqrt(2).
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `q`, `k`, `v` (the numbers), `query`, `key` and `root` track the reader's
    choices; setting them changes what is shown.

    Raises:
        ValueError: if queries, keys or values are not full tables of finite numbers whose shapes
            match each other and the words, or hold a number outside -20 .. 20.

    Source: Vaswani et al. 2017, section 3.2.1.
    """

    _esm, _css = bundles.load("AttentionPlane")

    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    askers = traitlets.List(traitlets.Unicode()).tag(sync=True)
    outputs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    edges = traitlets.List(traitlets.Float()).tag(sync=True)  # limits of the numbers in each plane
    q = traitlets.List().tag(sync=True)
    k = traitlets.List().tag(sync=True)
    v = traitlets.List().tag(sync=True)
    query = traitlets.Int(0).tag(sync=True)
    key = traitlets.Int(-1).tag(sync=True)
    root = traitlets.Bool(True).tag(sync=True)

    def __init__(
        self,
        queries: Any,
        keys: Any,
        values: Any,
        words: Sequence[str],
        *,
        query: int = 0,
        askers: Sequence[str] | None = None,
        outputs: Sequence[str] = (),
        key: int = -1,
        root: bool = True,
        title: str = "",
        name: str | None = None,
    ) -> None:
        known = as_tokens(words, "words")
        asking = known if askers is None else as_tokens(askers, "askers")
        given = (queries, keys, values)
        tables = {
            trait: _table(rows, what)
            for (trait, what), rows in zip(ARGUMENTS.items(), given, strict=True)
        }
        self._shapes = _shapes(tables, len(known), len(asking))
        super().__init__(
            name=name,
            title=title,
            words=known,
            askers=asking,
            edges=[_edge(tables["q"], tables["k"]), _edge(tables["v"])],
            **{trait: table.tolist() for trait, table in tables.items()},
            outputs=as_tokens(outputs, "outputs"),
            query=query,
            key=key,
            root=root,
        )

    @traitlets.validate(*ARGUMENTS)
    def _check_table(self, proposal: Any) -> list[list[float]]:
        trait = proposal["trait"].name
        table, what = _table(proposal["value"], ARGUMENTS[trait]), ARGUMENTS[trait]
        edge = self.edges[trait == "v"]
        if table.shape != self._shapes[trait]:
            raise WidgetError(f"{what} must be of shape {self._shapes[trait]}, not {table.shape}")
        if np.abs(table).max() > edge:
            most = np.abs(table).max()
            raise WidgetError(f"{what} must lie in the plane, -{edge:g} to {edge:g}, not {most:g}")
        return table.tolist()

    @traitlets.validate("words", "askers", "outputs")
    def _check_texts(self, proposal: Any) -> list[str]:
        trait = proposal["trait"].name
        value = as_tokens(proposal["value"], trait)
        table, axis = {"words": ("k", 0), "askers": ("q", 0), "outputs": ("v", 1)}[trait]
        size = self._shapes[table][axis]
        if len(value) != size and (value or trait != "outputs"):
            raise WidgetError(f"{trait} must be {size} texts, not {len(value)}")
        return value

    @traitlets.validate("query", "key")
    def _check_row(self, proposal: Any) -> int:
        trait, value = proposal["trait"].name, proposal["value"]
        low, high = -int(trait == "key"), self._shapes[trait[0]][0] - 1
        if not low <= value <= high:
            raise WidgetError(f"{trait} must be {low}..{high}, not {value}")
        return value

    def compute(self) -> dict[str, np.ndarray]:
        """What is shown: each word's product, score and weight, and the output."""
        q, k, v = (np.array(getattr(self, trait), float) for trait in ARGUMENTS)
        products = k @ q[self.query]
        scores = products / (math.sqrt(2) if self.root else 1)
        weights = softmax(scores)
        return {"products": products, "scores": scores, "weights": weights, "out": weights @ v}

    def content(self) -> bytes:
        return json.dumps([self.words, self.askers, self.q, self.k, self.v]).encode()

    def summary(self) -> str:
        asking, words, wide = self._shapes["q"][0], *self._shapes["v"]
        return f"{asking} queries, {words} keys, values of {wide}"

    def draw(self, figure: Figure) -> None:
        """Draw the query, the keys, and the weights as bars; also values of two numbers."""
        plane, bars, *second = figure.subplots(1, 2 + (self._shapes["v"][1] == 2))
        steps, names = self.compute(), [short(word, 10) for word in self.words]
        _arrows(plane, self.k, names, ROLES["key"])
        _arrows(plane, [self.q[self.query]], [f"{self.askers[self.query]}?"], ROLES["query"])
        limit = 1.15 * self.edges[0]
        plane.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
        bars.barh(names, steps["weights"], color=ROLES["weight"])
        bars.invert_yaxis()
        bars.set_xlim(0, 1)
        bars.set_xlabel("weight", fontsize=8)
        for axes in second:
            _arrows(axes, self.v, names, ROLES["value"])
            _arrows(axes, [steps["out"].tolist()], ["output"], ROLES["state"])
            limit = 1.15 * self.edges[1]
            axes.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
        for axes in (plane, bars, *second):
            axes.tick_params(labelsize=7)


def _arrows(axes: Axes, vectors: list[list[float]], names: list[str], colour: str) -> None:
    for (x, y), name in zip(vectors, names, strict=True):
        axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": colour})
        axes.annotate(name, (x, y), fontsize=8, color=colour, parse_math=False)


def _table(values: Any, what: str) -> np.ndarray:
    """The numbers rounded to `DIGITS` decimals, after checking them."""
    table = as_array(values, what)
    if table.ndim != 2 or 0 in table.shape:
        raise WidgetError(f"{what} must have a row for each word, not be of shape {table.shape}")
    if not (np.abs(table) <= MOST).all():  # NaN fails
        worst = table.ravel()[np.argmax(~(np.abs(table.ravel()) <= MOST))]
        raise WidgetError(f"{what} must hold numbers from -{MOST} to {MOST}, not {worst:g}")
    return np.round(table, DIGITS) + 0.0  # no negative zero


def _shapes(tables: dict[str, np.ndarray], n: int, asking: int) -> dict[str, tuple[int, ...]]:
    """The shapes, after checking that they match each other."""
    if not 2 <= n <= WORDS:
        raise WidgetError(f"words must be 2 to {WORDS}, not {n}")
    for trait, rows in (("q", asking), ("k", n), ("v", n)):
        table, what = tables[trait], ARGUMENTS[trait]
        whose = "askers" if trait == "q" else "words"
        if len(table) != rows:
            raise WidgetError(f"{what} must be {rows} rows, as {whose} are, not {len(table)}")
        if trait == "v" and table.shape[1] > WIDE:
            raise WidgetError(f"{what} must be 1 to {WIDE} wide, not {table.shape[1]}")
        if trait != "v" and table.shape[1] != 2:
            raise WidgetError(f"{what} must be two numbers a word, not {table.shape[1]}")
    return {trait: table.shape for trait, table in tables.items()}


def _edge(*tables: np.ndarray) -> float:
    """The limit of a plane for these vectors: a tenth beyond them, rounded up to a quarter."""
    largest = max(float(np.abs(table).max()) for table in tables)
    return max(1.0, math.ceil(4.4 * largest) / 4)
