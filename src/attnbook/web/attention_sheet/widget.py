"""AttentionSheet: a whole small self-attention as cells that show how they were computed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.show.plots import INK, ROLES
from attnbook.web._widget import Widget, WidgetError, as_array, as_tokens, format_number, short
from attnbook.web.softmax_temperature.widget import softmax

DIGITS = 2  # stored decimals of x and of the matrices
MOST = 9.99  # the largest number that fits a cell
WORDS, WIDE = 6, 4  # most words, most numbers in a vector
INPUTS = ("x", "w_q", "w_k", "w_v")
LOOKS = {
    "x": "state",
    "q": "query",
    "k": "key",
    "v": "value",
    "scores": "weight",
    "weights": "weight",
    "out": "state",
}


class AttentionSheet(Widget):
    """Every number of a self-attention layer, to inspect and to change.

        q, k, v = x W_Q, x W_K, x W_V
        scores = q k^T / sqrt(d_k),   weights = softmax(scores),   out = weights v

    Touching a cell outlines the two vectors that it is computed from and shows its arithmetic. The
    reader can change x and the three matrices; everything else is recomputed.

    Args:
        x: `[word d]`, the vector of each word. At most 6 words and 4 numbers. x and the matrices
            are stored with two decimals; everything else is computed from the stored numbers.
        w_q, w_k: `[d d_k]`, the matrices of queries and keys; d_k is at most 4.
        w_v: `[d d_v]`, the matrix of values; d_v is at most 4.
        tokens: the words, as text.
        mask: whether, at the start, a word may attend only to itself and to earlier words.
        root: whether, at the start, scores are divided by sqrt(d_k).
        words: vectors of other words that the reader can insert, `{word: d numbers}`.
        outputs: names of the numbers of a value, and so of an output.
        cell: the cell shown at the start, such as "weights.3.2" (row, column), of `x`, `w_q`,
            `w_k`, `w_v`, `q`, `k`, `v`, `scores`, `weights` or `out`; "" for none.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `x`, `w_q`, `w_k`, `w_v`, `tokens`, `mask`, `root` and `cell` track the reader's
    choices; setting them changes what is shown.

    Raises:
        ValueError: if a matrix is not a full table of numbers in -9.99 .. 9.99, or sizes do not
            match each other or are too large.

    Source: Vaswani et al. 2017, section 3.2.1.
    """

    _esm, _css = bundles.load("AttentionSheet")

    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    x = traitlets.List().tag(sync=True)
    w_q = traitlets.List().tag(sync=True)
    w_k = traitlets.List().tag(sync=True)
    w_v = traitlets.List().tag(sync=True)
    mask = traitlets.Bool(False).tag(sync=True)
    root = traitlets.Bool(True).tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    outputs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    cell = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        x: Any,
        w_q: Any,
        w_k: Any,
        w_v: Any,
        tokens: Sequence[str],
        *,
        mask: bool = False,
        root: bool = True,
        words: Mapping[str, Any] | None = None,
        outputs: Sequence[str] = (),
        cell: str = "",
        title: str = "",
        name: str | None = None,
    ) -> None:
        given = {
            what: as_array(m, what) for what, m in zip(INPUTS, (x, w_q, w_k, w_v), strict=True)
        }
        kept = as_tokens(tokens, "tokens")
        self._shapes = _shapes(given, len(kept))
        super().__init__(
            name=name,
            title=title,
            tokens=kept,
            **{what: matrix.tolist() for what, matrix in given.items()},
            mask=mask,
            root=root,
            words=_words(words, given["x"].shape[1]),
            outputs=as_tokens(outputs, "outputs"),
            cell=cell,
        )

    @traitlets.validate(*INPUTS)
    def _check_matrix(self, proposal: Any) -> list[list[float]]:
        what = proposal["trait"].name
        value, shape = as_array(proposal["value"], what), self._shapes[what]
        if value.shape != shape:
            raise WidgetError(f"{what} must be of shape {shape}, not {value.shape}")
        return _kept(value, what).tolist()

    @traitlets.validate("tokens")
    def _check_tokens(self, proposal: Any) -> list[str]:
        value, size = as_tokens(proposal["value"], "tokens"), self._shapes["x"][0]
        if len(value) != size:
            raise WidgetError(f"tokens must be {size} texts, not {len(value)}")
        return value

    @traitlets.validate("words")
    def _check_words(self, proposal: Any) -> dict[str, list[float]]:
        words = _words(proposal["value"], self._shapes["x"][1])
        missing = [token for token in self.tokens if token not in words]
        if words and missing:
            raise WidgetError(f"words must hold every token; {missing[0]!r} is not there")
        return words

    @traitlets.validate("outputs")
    def _check_outputs(self, proposal: Any) -> list[str]:
        value, size = as_tokens(proposal["value"], "outputs"), self._shapes["w_v"][1]
        if len(value) not in (0, size):
            raise WidgetError(f"outputs must be {size} texts, not {len(value)}")
        return value

    @traitlets.validate("cell")
    def _check_cell(self, proposal: Any) -> str:
        value = proposal["value"]
        block, *at = value.split(".")
        shape = self.compute()[block].shape if block in (*INPUTS, *LOOKS) else ()
        fits = len(at) == len(shape) and all(each.isdecimal() for each in at)
        if value and not (
            shape and fits and all(int(n) < m for n, m in zip(at, shape, strict=True))
        ):
            raise WidgetError(
                f"cell must be like 'weights.0.1', a cell of the sheet, not {value!r}"
            )
        return value

    def compute(self) -> dict[str, np.ndarray]:
        """Every block of the current sheet: x, the matrices, and what is computed from them."""
        x, w_q, w_k, w_v = (np.array(getattr(self, what), float) for what in INPUTS)
        q, k, v = x @ w_q, x @ w_k, x @ w_v
        scores = q @ k.T / (np.sqrt(w_q.shape[1]) if self.root else 1)
        if self.mask:
            scores[np.triu_indices(len(x), 1)] = -np.inf
        weights = np.stack([softmax(row) for row in scores])
        steps = {"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "out": weights @ v}
        return dict(zip(INPUTS, (x, w_q, w_k, w_v), strict=True)) | steps

    def content(self) -> bytes:
        return json.dumps([self.tokens, *(getattr(self, what) for what in INPUTS)]).encode()

    def summary(self) -> str:
        (n, d), (_, d_k), (_, d_v) = (self._shapes[what] for what in ("x", "w_k", "w_v"))
        return f"{n} words, d {d}, d_k {d_k}, d_v {d_v}"

    def figure_size(self) -> tuple[float, float]:
        return 5.6, 1.2 + 0.7 * len(self.tokens)

    def draw(self, figure: Figure) -> None:
        """Draw x, queries, keys, values, scores, weights and outputs, but not the matrices."""
        all_axes = figure.subplots(2, 4).ravel()
        steps = self.compute()
        for axes, (block, role) in zip(all_axes, LOOKS.items(), strict=False):
            _table(axes, steps[block], role, block == "weights")
            axes.set_title(block, fontsize=8)
            axes.set_yticks(range(len(self.tokens)), [short(token, 8) for token in self.tokens])
            axes.tick_params(labelsize=6, length=0)
        all_axes[-1].set_axis_off()


def _table(axes: Axes, values: np.ndarray, role: str, share: bool) -> None:
    """Draw numbers on shaded cells: the larger, the deeper."""
    colour, low = np.array(to_rgb(ROLES[role])), 0 if share else -3
    depth = 0.04 + 0.44 * np.clip((values - low) / ((1 if share else 3) - low), 0, 1)
    axes.imshow(1 - depth[..., None] * (1 - colour), aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        text = {"ha": "center", "va": "center", "fontsize": 6, "color": INK}
        axes.text(j, i, format_number(float(value), DIGITS), text)
    axes.set_xticks([])


def _kept(value: np.ndarray, what: str) -> np.ndarray:
    """The numbers rounded to `DIGITS` decimals, after checking their range."""
    if not (np.abs(value) <= MOST + 1e-9).all():  # NaN fails
        worst = value.ravel()[np.argmax(~(np.abs(value.ravel()) <= MOST))]
        raise WidgetError(f"{what} must hold numbers from -{MOST} to {MOST}, not {worst:g}")
    return np.round(value, DIGITS) + 0.0  # no negative zero


def _shapes(given: Mapping[str, np.ndarray], n: int) -> dict[str, tuple[int, ...]]:
    """The shapes, after checking that they match each other."""
    for what, matrix in given.items():
        if matrix.ndim != 2 or not 1 <= matrix.shape[1] <= WIDE:
            wanted = "[word d]" if what == "x" else f"[d d_{'v' if what == 'w_v' else 'k'}]"
            raise WidgetError(f"{what} must be {wanted}, 1 to {WIDE} wide, not {matrix.shape}")
    rows, d = given["x"].shape
    if rows != n or not 2 <= n <= WORDS:
        raise WidgetError(f"x must have a row for each of 2 to {WORDS} tokens, not {rows} for {n}")
    for what in INPUTS[1:]:
        if len(given[what]) != d:
            raise WidgetError(
                f"{what} must have {d} rows, as x has columns, not {len(given[what])}"
            )
    wide = given["w_q"].shape[1], given["w_k"].shape[1]
    if wide[0] != wide[1]:
        raise WidgetError(f"w_k must have as many columns as w_q, {wide[0]}, not {wide[1]}")
    return {what: matrix.shape for what, matrix in given.items()}


def _words(words: Any, d: int) -> dict[str, list[float]]:
    if not isinstance(words or {}, Mapping):
        raise WidgetError(f"words must be numbers by word, not {words!r:.60}")
    known = {}
    for word, values in (words or {}).items():
        what = f"words[{word!r}]"
        as_tokens([word], "words")
        vector = as_array(values, what)
        if vector.shape != (d,):
            raise WidgetError(f"{what} must be {d} numbers, not of shape {vector.shape}")
        known[word] = _kept(vector, what).tolist()
    return known
