"""SoftmaxTemperature: what dividing the logits by a temperature does to their softmax."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.web._widget import (
    Widget,
    WidgetError,
    as_array,
    as_tokens,
    check_size,
    format_number,
    short,
)


def softmax(
    logits: np.ndarray, temperature: float | int = 1.0, counts: np.ndarray | None = None
) -> np.ndarray:
    """softmax(logits / temperature) of one row; at 0 its limit, split among the largest (greedy).

    The largest logit is subtracted first, so that nothing overflows at any temperature. A logit
    that stands for several, `counts` of them, gets the probability of all of them.
    """
    gap = logits - logits.max()  # at most 0
    with np.errstate(over="ignore"):  # a gap over a tiny temperature is minus infinity: weight 0
        powers = np.exp(gap / temperature) if temperature > 0 else (gap == 0).astype(float)
    powers = powers if counts is None else counts * powers
    return powers / powers.sum()


def fold_tail(logits: Any, keep: int, groups: int = 60) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Fold the least likely of many logits into groups, for `SoftmaxTemperature(counts=...)`.

    The columns that are most likely in any row are kept. Each row's other logits are sorted and cut
    into groups, small ones first. A group's logit is `log mean exp z`: its probability is exact at
    temperature 1, and nearly so at others.

    Args:
        logits: `[context, token]`.
        keep: number of columns to keep.
        groups: number of groups, or fewer if there are fewer tokens.

    Returns:
        Ids of the kept columns, the logits `[context, keep + group]`, and the number of tokens that
        each column stands for.

    Raises:
        WidgetError: if `logits` is not two-dimensional, or `keep` is not in 1 .. tokens.
    """
    rows = as_array(logits, "logits").astype(np.float64)
    if rows.ndim != 2 or not 1 <= keep <= rows.shape[-1]:
        raise WidgetError(
            f"logits must be [context, token], keep one to all tokens, not {rows.shape} and {keep}"
        )
    shares = np.exp(rows - rows.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    kept = np.argsort(-shares.max(0), kind="stable")[:keep]
    rest = -np.sort(-np.delete(rows, kept, axis=1), axis=-1)
    size = rest.shape[-1]
    ends = np.unique(np.geomspace(1, size, groups).round().astype(int)) if size else []
    folded, counts, begin = [rows[:, kept]], [1] * keep, 0
    for end in map(int, ends):
        part = rest[:, begin:end]
        top = part[:, :1]
        folded.append(top + np.log(np.exp(part - top).mean(-1, keepdims=True)))
        counts.append(end - begin)
        begin = end
    return kept, np.concatenate(folded, 1), counts


def _to_bytes(logits: np.ndarray, _: Any = None) -> bytes:
    """The logits as float32 if that loses nothing (as for PyTorch's), else as float64."""
    with np.errstate(over="ignore"):
        small = logits.astype("<f4")
    return (small if np.array_equal(small, logits) else logits.astype("<f8")).tobytes()


def _from_bytes(data: Any, widget: "SoftmaxTemperature") -> np.ndarray:
    size = widget.logits.size
    kind = "<f4" if len(data) == 4 * size else "<f8"
    return np.frombuffer(data, kind).astype(np.float64).reshape(widget.logits.shape)


class SoftmaxTemperature(Widget):
    """Bars of softmax(logits / temperature), with their entropy and perplexity.

    p_i = exp(z_i / t) / sum_j exp(z_j / t), with z the logits and t the temperature: as t nears 0,
    the largest logit gets everything (greedy), t = 1 is the plain softmax, t > 1 flattens it.

    Args:
        logits: `[label]`, or `[context, label]` with a selector of contexts; finite, or minus
            infinity where masked. At most 1 MB in all.
        labels: a name for each logit; any text.
        counts: how many equal logits each one stands for, by default 1 (see `fold_tail`).
        temperature: where the slider starts; 0 is greedy.
        contexts: a name for each row of `[context, label]`.
        context: the row that is shown first.
        hottest: the upper end of the slider.
        greedy: whether there is a button for temperature 0.
        perplexity: whether the line below the curve gives the entropy in nats and the perplexity.
        bar_label, score_label, share_label, context_label, temperature_label: names of a
            bar, its logit, its probability, a context and the temperature.
        top: largest number of bars; with more labels the largest logits are shown, in decreasing
            order, and the rest share one bar.
        editable: whether the reader may drag the logits.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `temperature`, `context` and `logits` track the reader's choices; setting them
    changes what is shown.
    """

    _esm, _css = bundles.load("SoftmaxTemperature")

    logits = traitlets.Instance(np.ndarray).tag(sync=True, to_json=_to_bytes, from_json=_from_bytes)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    counts = traitlets.List(traitlets.Int()).tag(sync=True)
    contexts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    context = traitlets.Int(0).tag(sync=True)
    top = traitlets.Int(10).tag(sync=True)
    editable = traitlets.Bool(False).tag(sync=True)
    hottest = traitlets.Float(20.0).tag(sync=True)
    greedy = traitlets.Bool(True).tag(sync=True)
    perplexity = traitlets.Bool(True).tag(sync=True)
    bar_label = traitlets.Unicode("token").tag(sync=True)
    score_label = traitlets.Unicode("logit").tag(sync=True)
    share_label = traitlets.Unicode("probability").tag(sync=True)
    context_label = traitlets.Unicode("context").tag(sync=True)
    temperature_label = traitlets.Unicode("temperature").tag(sync=True)

    def __init__(
        self,
        logits: Any,
        labels: Sequence[str],
        *,
        temperature: float | int = 1.0,
        counts: Sequence[int] | None = None,
        contexts: Sequence[str] | None = None,
        context: int = 0,
        hottest: float | int = 20.0,
        greedy: bool = True,
        perplexity: bool = True,
        bar_label: str = "token",
        score_label: str = "logit",
        share_label: str = "probability",
        context_label: str = "context",
        temperature_label: str = "temperature",
        top: int = 10,
        editable: bool = False,
        title: str = "",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            title=title,
            logits=as_array(logits, "logits"),
            labels=as_tokens(labels, "labels"),
            counts=[] if counts is None else list(counts),
            contexts=as_tokens([] if contexts is None else contexts, "contexts"),
            context=context,
            hottest=hottest,
            greedy=greedy,
            perplexity=perplexity,
            bar_label=bar_label,
            score_label=score_label,
            share_label=share_label,
            context_label=context_label,
            temperature_label=temperature_label,
            temperature=temperature,
            top=top,
            editable=editable,
        )

    @traitlets.validate("temperature")
    def _check_temperature(self, proposal: Any) -> float:
        value = proposal["value"]
        if not 0 <= value < np.inf:
            raise WidgetError(f"temperature must be a number of at least 0, not {value}")
        return value

    @traitlets.validate("hottest")
    def _check_hottest(self, proposal: Any) -> float:
        if not 1 < proposal["value"] <= 100:
            raise WidgetError(f"hottest must be above 1 and at most 100, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("context")
    def _check_context(self, proposal: Any) -> int:
        value, size = proposal["value"], max(1, len(self.contexts))
        if not 0 <= value < size:
            raise WidgetError(f"context must be 0..{size - 1}, not {value}")
        return value

    @traitlets.validate("logits")
    def _check_logits(self, proposal: Any) -> np.ndarray:
        values = as_array(proposal["value"], "logits")
        if values.ndim not in (1, 2) or 0 in values.shape:
            raise WidgetError(
                f"logits must be [label] or [context, label] and not empty, not {values.shape}"
            )
        labels, contexts = len(self.labels), len(self.contexts)
        if values.shape != ((contexts, labels) if contexts else (labels,)):
            raise WidgetError(
                f"logits must be of a shape for {labels} labels and {contexts} contexts,"
                f" not {values.shape}"
            )
        rows = np.atleast_2d(values)
        wrong = ~((rows < np.inf).all(-1) & (rows > -np.inf).any(-1))  # NaN fails the first
        if wrong.any():
            row = int(np.argmax(wrong))
            what = "only minus infinity" if (rows[row] == -np.inf).all() else "NaN or plus infinity"
            raise WidgetError(f"logits: row {row} holds {what}; its sum is {rows[row].sum():g}")
        size = len(_to_bytes(values)) + len(self._texts())
        check_size(size, "logits and labels", "show fewer contexts or labels")
        return values

    @traitlets.validate("labels", "contexts")
    def _check_texts(self, proposal: Any) -> list[str]:
        trait, value = proposal["trait"].name, as_tokens(proposal["value"], proposal["trait"].name)
        *contexts, labels = self.logits.shape
        size = labels if trait == "labels" else sum(contexts)
        if len(value) != size:
            raise WidgetError(f"{trait} must be {size} texts, not {len(value)}")
        return value

    @traitlets.validate("counts")
    def _check_counts(self, proposal: Any) -> list[int]:
        value, size = proposal["value"], self.logits.shape[-1]
        if value and (len(value) != size or min(value) < 1):
            raise WidgetError(
                f"counts must be {size} numbers of at least 1, not {len(value)} from {min(value)}"
            )
        return value

    @traitlets.validate("top")
    def _check_top(self, proposal: Any) -> int:
        if proposal["value"] < 1:
            raise WidgetError(f"top must be at least 1, not {proposal['value']}")
        return proposal["value"]

    def _texts(self) -> bytes:
        return "\0".join([*self.labels, *self.contexts]).encode("utf8")

    def content(self) -> bytes:
        return (
            _to_bytes(self.logits) + self._texts() + repr(self.counts).encode() * bool(self.counts)
        )

    def row(self) -> np.ndarray:
        """The logits of the context on view."""
        return self.logits[self.context] if self.logits.ndim == 2 else self.logits

    def summary(self) -> str:
        parts = [f"{self._total()} labels"]
        if self.contexts:
            parts.append(f"{len(self.contexts)} contexts")
        return ", ".join([*parts, f"{self.temperature_label} {self.temperature:g}"])

    def _total(self) -> int:
        return sum(self.counts) or len(self.labels)

    def draw(self, figure: Figure) -> None:
        p = softmax(self.row(), self.temperature, np.array(self.counts) if self.counts else None)
        order = np.arange(len(p))
        if len(p) > self.top:
            order = np.argsort(-self.row(), kind="stable")[: self.top]
        names, values = [short(self.labels[i], 24) for i in order], list(p[order])
        if len(order) < len(p):
            names.append(f"{self._total() - len(order)} others")
            values.append(1 - sum(values))
        axis = figure.subplots()
        bars = axis.barh(range(len(values)), values, color="#2b6cb0")
        axis.bar_label(bars, [format_number(v) for v in values], padding=3, fontsize=8)
        axis.set_yticks(range(len(values)), names, fontsize=8, parse_math=False)
        axis.invert_yaxis()
        axis.set_xlim(0, 1.1)
        label = f"{self.share_label} at {self.temperature_label} {self.temperature:g}"
        axis.set_xlabel(label, fontsize=9, parse_math=False)
        axis.spines[["top", "right"]].set_visible(False)
