"""BlockDiagram: the Transformer's blocks, with stored runs of models trained without one part."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
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
    format_number,
)

PARTS = tuple(json.loads(Path(__file__).with_name("parts.json").read_text("utf-8")))
KEYS = ("off", "steps", "loss", "exact", "translations")
RUNS = ("runs", "dicts, the whole model's first")


class BlockDiagram(Widget):
    """A diagram of encoder and decoder blocks; each part is a switch to a model without it.

    Switching a part off shows the run of a model trained without it: its loss beside that of the
    full model, the share of exactly right translations, and some of them. One part is off at a
    time. A part without a run is drawn without a switch.

    Args:
        runs: a dict for each run, that of the full model first:
            `off`: `[]` for the full model, otherwise one of `PARTS`, as `["residual"]`.
            `steps`: the training steps `[step]` at which the loss was measured, increasing.
            `loss`: `[step]`, or `[seed, step]`: then each seed is a thin line beside the mean.
            `exact`: share of exactly right translations in 0..1, one number for each seed.
            `translations`: `[source, output, gold]`, three texts; sources and gold translations are
            the same in every run.
        norm: where the layer norm is drawn: "pre", before a sublayer, or "post", after adding.
        n_heads, n_layers: numbers written into the diagram.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    `off` (the part left out, "" for none) follows the reader where there is a kernel, and sets
    what is shown. Losses are kept to four digits.

    Source: Vaswani et al. 2017, figure 1.
    """

    _esm, _css = bundles.load("BlockDiagram")

    runs = traitlets.List().tag(sync=True)
    norm = traitlets.Unicode("pre").tag(sync=True)
    n_heads = traitlets.Int(4).tag(sync=True)
    n_layers = traitlets.Int(2).tag(sync=True)
    off = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        runs: Any,
        *,
        norm: str = "pre",
        n_heads: int = 4,
        n_layers: int = 2,
        title: str = "",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name=name,
            title=title,
            runs=as_list(runs, *RUNS),
            norm=norm,
            n_heads=n_heads,
            n_layers=n_layers,
        )

    @traitlets.validate("runs")
    def _check_runs(self, proposal: Any) -> list[dict[str, Any]]:
        kept = _checked(proposal["value"])
        check_size(len(json.dumps(kept)), "the runs", "give fewer steps")
        if self.off and [self.off] not in [run["off"] for run in kept]:
            raise WidgetError(f"runs must keep the one without {self.off!r}, which is on view")
        return kept

    @traitlets.validate("norm")
    def _check_norm(self, proposal: Any) -> str:
        if proposal["value"] not in ("pre", "post"):
            raise WidgetError(f"norm must be 'pre' or 'post', not {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("n_heads", "n_layers")
    def _check_number(self, proposal: Any) -> int:
        if proposal["value"] < 1:
            name = proposal["trait"].name
            raise WidgetError(f"{name} must be at least 1, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("off")
    def _check_off(self, proposal: Any) -> str:
        parts = ["", *self.parts()]
        if proposal["value"] not in parts:
            raise WidgetError(f"off must be one of {parts}, not {proposal['value']!r}")
        return proposal["value"]

    def content(self) -> bytes:
        return json.dumps([self.runs, self.norm, self.n_heads, self.n_layers]).encode()

    def parts(self) -> list[str]:
        """The parts that the runs leave out, in the order of the runs."""
        return [part for run in self.runs for part in run["off"]]

    def run(self) -> dict[str, Any]:
        """The run that is shown."""
        return next(run for run in self.runs if run["off"] == ([self.off] if self.off else []))

    def summary(self) -> str:
        seeds = len(self.runs[0]["exact"])
        return f"encoder and decoder, {len(self.parts())} parts to leave out, {seeds} seeds"

    def draw(self, figure: Figure) -> None:
        losses, bars = figure.subplots(1, 2)
        for run, colour, line in ((self.runs[0], "#777777", "--"), (self.run(), "#2b6cb0", "-")):
            losses.plot(run["steps"], np.mean(run["loss"], axis=0), line, color=colour)
        losses.set_yscale("log")
        losses.set_xlabel("training step", fontsize=8)
        solid = f"{_without(self.off)}; dashed: whole model" if self.off else "whole model"
        losses.set_ylabel(f"loss, {solid}", fontsize=8)
        names = ["whole model", *(_without(part) for part in self.parts())]
        shares = [float(np.mean(run["exact"])) for run in self.runs]
        drawn = bars.barh(range(len(shares)), shares, color="#2b6cb0")
        bars.bar_label(drawn, [format_number(x, 2) for x in shares], padding=3, fontsize=8)
        bars.set_yticks(range(len(names)), names, fontsize=8)
        bars.invert_yaxis()
        bars.set_xlim(0, 1.25)
        bars.set_xlabel("share exactly right", fontsize=8)
        for axes in (losses, bars):
            axes.tick_params(labelsize=7)
            axes.spines[["top", "right"]].set_visible(False)


def _without(part: str) -> str:
    return "one head" if part == "heads" else f"no {part}"


def _checked(runs: list[Any]) -> list[dict[str, Any]]:
    """The runs in stored form, after a check: one full model, and models without one part."""
    if not runs:
        raise WidgetError(f"runs must be a list of {RUNS[1]}, not []")
    kept = [_checked_run(run, n) for n, run in enumerate(runs)]
    parts = [part for run in kept for part in run["off"]]
    if kept[0]["off"] or len(parts) != len(kept) - 1:
        raise WidgetError("runs[0] must be the whole model's (off: []), and no other")
    if len(set(parts)) < len(parts):
        raise WidgetError(f"runs must leave out each part once, not {parts}")
    fixed = [[(source, gold) for source, _, gold in run["translations"]] for run in kept]
    for n, pairs in enumerate(fixed):
        if pairs != fixed[0]:
            raise WidgetError(f"runs[{n}] must translate the same sources as runs[0], gold alike")
    return kept


def _checked_run(run: Any, n: int) -> dict[str, Any]:
    keys = set(run) if isinstance(run, Mapping) else run
    if keys != set(KEYS):
        raise WidgetError(f"runs[{n}] must be a dict with the keys {', '.join(KEYS)}, not {keys!r}")
    off = (
        [run["off"]]
        if isinstance(run["off"], str)
        else as_list(run["off"], f"runs[{n}]: off", "parts")
    )
    if off not in ([], *([part] for part in PARTS)):
        raise WidgetError(f"runs[{n}]: off must be [] or one of {', '.join(PARTS)}, not {off}")
    steps = as_array(run["steps"], f"runs[{n}]: steps")
    if steps.ndim != 1 or len(steps) < 2 or not (np.diff(steps) > 0).all():
        raise WidgetError(f"runs[{n}]: steps must be two or more increasing numbers")
    loss = np.atleast_2d(as_array(run["loss"], f"runs[{n}]: loss"))
    if loss.ndim != 2 or loss.shape[1] != len(steps):
        raise WidgetError(
            f"runs[{n}]: loss must be [step] or [seed, step] for {len(steps)} steps,"
            f" not {loss.shape}"
        )
    if not (np.isfinite(loss) & (loss >= 0)).all():
        raise WidgetError(f"runs[{n}]: loss must be numbers of at least 0; NaN or infinity in it")
    exact = as_array(run["exact"], f"runs[{n}]: exact")
    if exact.ndim != 1 or not len(exact) or not ((exact >= 0) & (exact <= 1)).all():
        raise WidgetError(f"runs[{n}]: exact must be a share 0..1 for each seed, not {exact}")
    if len(loss) not in (1, len(exact)):
        raise WidgetError(f"runs[{n}]: {len(loss)} curves of loss for {len(exact)} seeds in exact")
    what = f"runs[{n}]: translations"
    triples = [
        as_tokens(each, what) for each in as_list(run["translations"], what, "lists of three texts")
    ]
    if any(len(triple) != 3 for triple in triples):
        raise WidgetError(f"runs[{n}]: translations must be [source, output, gold] each")
    return {
        "off": off,
        "steps": steps.tolist(),
        "loss": [[float(f"{x:.4g}") for x in curve] for curve in loss],
        "exact": exact.tolist(),
        "translations": triples,
    }
