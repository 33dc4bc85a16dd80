"""AttentionHeatmap: one attention map or many, to be explored by pointer, touch and keyboard."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.web._widget import (
    Widget,
    WidgetError,
    as_array,
    as_list,
    as_tokens,
    check_size,
    short,
)

MAX_SIDE = 128
LEVELS = 65535  # a weight is stored as a 16-bit multiple of 1/65535
TOLERANCE = 1e-3  # of a row's sum
HALVES = (torch.bfloat16, torch.float16)
AXES = ("axes", "a name and its labels for each leading dimension")


def _to_bytes(weights: np.ndarray | None, _: Any = None) -> bytes:
    return b"" if weights is None else np.rint(weights * LEVELS).astype("<u2").tobytes()


class AttentionHeatmap(Widget):
    """Who looks at whom: weights[..., i, j] is how much query i attends to key j.

    Queries are rows and keys are columns. Hovering, tapping or the arrow keys show a weight;
    choosing a query also shows the keys as text, weighted by its row.

    Args:
        weights: `[..., query, key]`, numbers in 0..1; each row sums to 1 (within 1e-3 and the
            rounding error of bfloat16 or float16), or is zero for a query that may attend to
            nothing. Leading dimensions become selectors. At most 128 x 128 per map and 1 MB in all.
            Weights are stored in 16 bits, with an error of at most 0.000008; `widget.weights` has
            the stored values, which the widget shows.
        queries, keys: the tokens of the rows and of the columns; any text.
        other: a second map to show beside the first under the same cursor (gold links, another
            model), of the shape of `weights`, or one `[query, key]` map for all.
        names: titles of the two maps.
        axes: `(name, labels)` for each leading dimension, such as `[("layer", ["1", "2"])]`.
        query_label, key_label, weight_label: names of a row, a column and a cell.
        ordered: names of ordered axes, such as training steps: each becomes a slider with a play
            button.
        compare: the name of an axis; two of its positions are shown side by side. Not with `other`.
        index, against, query, key: what is shown at first; by default the first position of
            each axis, compared with the second, and no selected cell.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.
        masked: booleans of the shape of `weights`, or one `[query, key]` for all: True where a mask
            hides a weight, which must be 0. Such cells are crossed out.
        stretch: whether the deepest colour stands for the largest weight on view instead of 1, so
            that small weights can be told apart; the reader can switch it. Numbers do not change.

    With a kernel, `query`, `key` (-1: none), `index` (one position per axis), `against` (of the
    second map, on the axis `compare`) and `stretch` track the reader's choices; setting them
    changes what is shown.
    """

    _esm, _css = bundles.load("AttentionHeatmap")

    weights = traitlets.Instance(np.ndarray).tag(sync=True, to_json=_to_bytes)
    other = traitlets.Instance(np.ndarray, allow_none=True).tag(sync=True, to_json=_to_bytes)
    query_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    key_tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    axes = traitlets.List().tag(sync=True)
    query_label = traitlets.Unicode().tag(sync=True)
    key_label = traitlets.Unicode().tag(sync=True)
    weight_label = traitlets.Unicode("weight").tag(sync=True)
    ordered = traitlets.List(traitlets.Unicode()).tag(sync=True)
    compare = traitlets.Unicode().tag(sync=True)
    query = traitlets.Int(-1).tag(sync=True)
    key = traitlets.Int(-1).tag(sync=True)
    index = traitlets.List(traitlets.Int()).tag(sync=True)
    against = traitlets.Int(0).tag(sync=True)
    stretch = traitlets.Bool(False).tag(sync=True)
    masked = traitlets.List(traitlets.Int()).tag(sync=True)  # flat indices into `weights`

    def __init__(
        self,
        weights: Any,
        queries: Sequence[str],
        keys: Sequence[str],
        *,
        other: Any = None,
        names: Sequence[str] = ("weights", "other"),
        axes: Sequence[tuple[str, Sequence[str]]] | None = None,
        query_label: str = "query",
        key_label: str = "key",
        weight_label: str = "weight",
        ordered: Sequence[str] = (),
        compare: str = "",
        index: Sequence[int] | None = None,
        against: int = 1,
        query: int = -1,
        key: int = -1,
        title: str = "",
        name: str | None = None,
        stretch: bool = False,
        masked: Any = None,
    ) -> None:
        maps = as_array(weights, "weights")
        selectors = _numbered(maps.shape[:-2]) if axes is None else _named(axes)
        super().__init__(
            name=name,
            title=title,
            weights=maps,
            other=None if other is None else as_array(other, "other"),
            query_tokens=as_tokens(queries, "queries"),
            key_tokens=as_tokens(keys, "keys"),
            names=as_tokens(names, "names"),
            axes=selectors,
            query_label=query_label,
            key_label=key_label,
            weight_label=weight_label,
            ordered=as_tokens(ordered, "ordered"),
            compare=compare,
            index=[0] * len(selectors) if index is None else as_list(index, "index", "1"),
            against=against if compare else 0,
            query=query,
            key=key,
            stretch=stretch,
            masked=_places(masked, maps),
        )

    @traitlets.validate("query", "key")
    def _check_cursor(self, proposal: Any) -> int:
        trait, value = proposal["trait"].name, proposal["value"]
        size = len(self.query_tokens if trait == "query" else self.key_tokens)
        if not -1 <= value < size:
            raise WidgetError(f"{trait} must be -1 (none) or 0..{size - 1}, not {value}")
        return value

    @traitlets.validate("index")
    def _check_index(self, proposal: Any) -> list[int]:
        sizes = [len(labels) for _, labels in self.axes]
        value = proposal["value"]
        if len(value) != len(sizes) or not all(
            0 <= i < size for i, size in zip(value, sizes, strict=True)
        ):
            raise WidgetError(f"index must hold one position below each of {sizes}, not {value}")
        return value

    @traitlets.validate("ordered", "compare")
    def _check_names(self, proposal: Any) -> Any:
        what, value = proposal["trait"].name, proposal["value"]
        names = [name for name, _ in self.axes]
        for name in value if what == "ordered" else filter(None, [value]):
            if name not in names:
                raise WidgetError(f"{what} must name one of the axes {names}, not {name!r}")
        if what == "compare" and value:
            self._check_one_way(self.other)
            if names.count(value) > 1:
                raise WidgetError(f"compare must name one axis, not each of {names.count(value)}")
            size = len(dict(self.axes)[value])
            if self.against >= size:
                raise WidgetError(f"against must be 0..{size - 1}, not {self.against}")
        return value

    def _check_one_way(self, other: Any) -> None:
        if other is not None:
            raise WidgetError("compare and other are two ways to a second map; give one of them")

    @traitlets.validate("against")
    def _check_against(self, proposal: Any) -> int:
        value, size = proposal["value"], len(dict(self.axes).get(self.compare, [""]))
        if not 0 <= value < size:
            raise WidgetError(f"against must be 0..{size - 1}, not {value}")
        return value

    @traitlets.validate("weights", "other")
    def _check_maps(self, proposal: Any) -> np.ndarray | None:
        """Check that maps, even if set later (as during training), fit the tokens and axes."""
        what, maps = proposal["trait"].name, proposal["value"]
        if maps is None:
            return None
        rows, columns = len(self.query_tokens), len(self.key_tokens)
        shape = (*(len(labels) for _, labels in self.axes), rows, columns)
        if what == "other" and maps.shape not in (shape, shape[-2:]):
            raise WidgetError(
                f"other has shape {maps.shape}; it must be {shape} like weights,"
                f" or one map of {shape[-2:]} for all"
            )
        if what == "weights" and maps.shape != shape:
            raise WidgetError(
                f"weights must be [..., query, key] of shape {shape}, as axes, queries and keys"
                f" have it, not of shape {maps.shape}"
            )
        if what == "other" and self.compare:
            self._check_one_way(maps)
        if 0 in maps.shape:
            raise WidgetError(f"{what} of shape {maps.shape} holds no weight")
        if max(rows, columns) > MAX_SIDE:
            raise WidgetError(f"{what} is {rows} x {columns}; a map has at most 128 x 128 weights")
        beside: Any = self.weights if what == "other" else self.other
        size = 2 * (maps.size + (0 if beside is None else beside.size))
        check_size(size, "the maps, 2 bytes a weight,", "show fewer layers, heads or steps")
        return _kept(as_array(maps, what), self.query_tokens, self.axes, what)

    @traitlets.validate("masked")
    def _check_masked(self, proposal: Any) -> list[int]:
        value = proposal["value"]
        if not all(0 <= place < self.weights.size for place in value):
            raise WidgetError(f"masked must be places below {self.weights.size}, not {value!r:.60}")
        return value

    @traitlets.validate("query_tokens", "key_tokens", "names")
    def _check_texts(self, proposal: Any) -> list[str]:
        trait, value = proposal["trait"].name, as_tokens(proposal["value"], proposal["trait"].name)
        rows, columns = self.weights.shape[-2:]
        size = {"query_tokens": rows, "key_tokens": columns, "names": 2}[trait]
        if len(value) != size:
            raise WidgetError(f"{trait} must be {size} texts, not {len(value)}")
        return value

    @traitlets.validate("axes")
    def _check_axes(self, proposal: Any) -> list[list[Any]]:
        axes = _named(proposal["value"])
        sizes, leading = tuple(len(labels) for _, labels in axes), self.weights.shape[:-2]
        if sizes != leading:
            raise WidgetError(
                f"axes give {sizes} labels; the leading dimensions of weights are {leading}"
            )
        return axes

    def content(self) -> bytes:
        maps: list[Any] = [self.weights, self.other]
        tokens = "\0".join([*self.query_tokens, *self.key_tokens])
        return b"".join(map(_to_bytes, maps)) + tokens.encode("utf8")

    def shown(self) -> list[np.ndarray]:
        """The map or maps `[query, key]` on view."""
        both = [maps for maps in (self.weights, self.other) if isinstance(maps, np.ndarray)]
        if self.compare:
            return [self.weights[tuple(index)] for index in self._compared()]
        return [maps[tuple(self.index)] if maps.ndim > 2 else maps for maps in both]

    def crossed(self) -> list[np.ndarray]:
        """For each map on view, the cells that a mask hides."""
        hidden = np.zeros(self.weights.shape, bool)
        hidden.flat[self.masked] = True
        places = self._compared() if self.compare else [self.index]
        none = [np.zeros(self.weights.shape[-2:], bool)]
        return [hidden[tuple(place)] for place in places] + none * (self.other is not None)

    def _compared(self) -> list[list[int]]:
        """The indices of the two maps of `compare`: a position on each axis."""
        axis = [name for name, _ in self.axes].index(self.compare)
        return [self.index, [*self.index[:axis], self.against, *self.index[axis + 1 :]]]

    def called(self) -> list[str]:
        """The names of the two maps on view."""
        if not self.compare:
            return self.names
        axis = [name for name, _ in self.axes].index(self.compare)
        labels = [self.axes[axis][1][index[axis]] for index in self._compared()]
        return [f"{self.compare} {label}" if label.isdecimal() else label for label in labels]

    def summary(self) -> str:
        rows, columns = len(self.query_tokens), len(self.key_tokens)
        parts = [f"{rows} {self.query_label} x {columns} {self.key_label}"]
        parts += [f"{len(labels)} {name}" for name, labels in self.axes]
        if self.other is not None:
            parts.append(" beside ".join(self.names))
        return ", ".join(parts)

    def draw(self, figure: Figure) -> None:
        maps = self.shown()
        most = float(max(map(np.max, maps))) if self.stretch else 1.0
        panels = figure.subplots(1, len(maps), squeeze=False)[0]
        looks = zip(panels, maps, self.crossed(), self.called(), strict=False)
        for panel, values, crossed, name in looks:
            image = panel.imshow(
                values, cmap="Blues", vmin=0, vmax=most or 1, aspect="auto", interpolation="nearest"
            )
            for i, j in np.argwhere(crossed):
                panel.plot((j - 0.5, j + 0.5), (i + 0.5, i - 0.5), color="#8a8a8a", linewidth=0.7)
            for side, tokens, label in (
                (panel.xaxis, self.key_tokens, self.key_label),
                (panel.yaxis, self.query_tokens, self.query_label),
            ):
                ticks = range(0, len(tokens), math.ceil(len(tokens) / 24))
                texts = [short(tokens[tick]) for tick in ticks]
                side.set_ticks(ticks, texts, fontsize=8, parse_math=False)
                side.set_label_text(label, fontsize=9, parse_math=False)
            panel.tick_params(axis="x", rotation=90)
            if len(maps) > 1:
                panel.set_title(name, fontsize=9, parse_math=False)
            if panel is panels[-1]:
                figure.colorbar(image, ax=list(panels), label=self.weight_label, shrink=0.8)


def _numbered(shape: tuple[int, ...]) -> list[list[Any]]:
    """The default selectors: `map`, or `map 1`, `map 2`, ... for several leading dimensions."""
    names = ["map"] if len(shape) == 1 else [f"map {d + 1}" for d in range(len(shape))]
    return [
        [name, [str(i + 1) for i in range(size)]] for name, size in zip(names, shape, strict=True)
    ]


def _named(axes: Any) -> list[list[Any]]:
    pairs = [as_list(axis, "each of axes", "name and labels") for axis in as_list(axes, *AXES)]
    if wrong := [pair for pair in pairs if len(pair) != 2 or not isinstance(pair[0], str)]:
        raise WidgetError(f"{AXES[0]} must be a list of {AXES[1]}, not {wrong[0]!r} in it")
    return [[name, as_tokens(labels, f"axes: labels of {name!r}")] for name, labels in pairs]


def _places(masked: Any, weights: np.ndarray) -> list[int]:
    """Where `masked` is true, as flat indices into the weights."""
    if masked is None:
        return []
    table = as_array(masked, "masked")
    if table.shape not in (weights.shape, weights.shape[-2:]) or not np.isin(table, (0, 1)).all():
        raise WidgetError(f"masked must be booleans of shape {weights.shape}, or of one map")
    hidden = np.broadcast_to(table > 0, weights.shape)
    if weights[hidden].any():
        raise WidgetError("masked must be true only where weights are 0")
    return np.flatnonzero(hidden).tolist()


def _kept(weights: np.ndarray, queries: list[str], axes: list[list[Any]], what: str) -> np.ndarray:
    """The weights rounded to 16 bits, after checking that each row is a distribution or zero."""
    kept = np.minimum(np.rint(weights * LEVELS), LEVELS) / LEVELS
    sums = weights.sum(-1)
    fine = np.isfinite(weights).all(-1) & (weights >= 0).all(-1)
    fine &= (np.abs(sums - 1) <= _slack(weights, kept)) | (weights == 0).all(-1)
    if not fine.all():
        *lead, row = np.argwhere(~fine)[0]
        values = weights[(*lead, row)]
        place = "".join(
            f", {name} {labels[i]}" for (name, labels), i in zip(axes, lead, strict=False)
        )
        if np.isnan(values).any():
            fault = "holds NaN"
        elif (values < 0).any():
            fault = f"holds the negative weight {values.min():g}"
        else:
            fault = "must sum to 1, or be all zero for a query that may attend to nothing"
        raise WidgetError(
            f"{what}: row {row} ({queries[row]!r}){place} {fault}; its sum is {values.sum():.6g}"
        )
    return kept


def _slack(weights: np.ndarray, kept: np.ndarray) -> float:
    """How far a row's sum may be from 1.

    A softmax in bfloat16 or float16 rounds each weight by at most half the spacing of its numbers,
    and the sum by as much. Such weights are recognised by their values, which that type represents
    exactly even after a conversion.
    """
    coarse = torch.finfo(torch.bfloat16).eps
    if np.array_equal(kept, weights):
        # A widget must accept its own stored weights: allow half a level more per key.
        return TOLERANCE + coarse + weights.shape[-1] / (2 * LEVELS)
    values = torch.from_numpy(weights)
    types = [kind for kind in HALVES if torch.equal(values.to(kind).double(), values)]
    return TOLERANCE + max((torch.finfo(kind).eps for kind in types), default=0.0)
