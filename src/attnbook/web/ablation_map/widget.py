"""AblationMap: the whole Transformer, with stored runs of models trained without one part."""

import json
from typing import Any

import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.show.blocks import PARTS, Look
from attnbook.show.plots import BLUE
from attnbook.web._widget import Widget, WidgetError, as_list, check_size, format_number
from attnbook.web.ablation_map.runs import RUNS, checked
from attnbook.web.transformer_map.pictures import drawn


class AblationMap(Widget):
    """The drawing of `attnbook.show.transformer`: pressing a part takes it away.

    The run of a model trained without that part is then shown: its loss next to the full model's,
    the share of exactly right translations, and some translations. One part is missing at a time.

    Args:
        runs: a dict for each run, the full model's first:
            `off`: `[]` for the full model, otherwise one of `attnbook.show.blocks.PARTS`.
            `steps`: the training steps `[step]` at which the loss was measured, increasing.
            `loss`: `[step]`, or `[seed, step]`: then each seed is a thin line beside the mean.
            `exact`: share of exactly right translations in 0..1, one number for each seed.
            `translations`: a list of `[source, output, gold]`, three strings; sources and gold
            translations are the same in every run.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `off` (the missing part, "" for none) tracks the reader's choice; setting it
    changes what is shown. Losses are stored to four significant digits.

    Source: Vaswani et al. 2017, figure 1.
    """

    _esm, _css = bundles.load("AblationMap")

    picture = traitlets.Unicode().tag(sync=True)
    runs = traitlets.List().tag(sync=True)
    off = traitlets.Unicode("").tag(sync=True)

    def __init__(self, runs: Any, *, title: str = "", name: str | None = None) -> None:
        runs, picture = as_list(runs, *RUNS), drawn(Look(), "encoder-decoder")
        super().__init__(name=name, title=title, picture=picture, runs=runs)

    @traitlets.validate("runs")
    def _check_runs(self, proposal: Any) -> list[dict[str, Any]]:
        kept = checked(proposal["value"], PARTS)
        check_size(len(json.dumps(kept)), "the runs", "give fewer steps")
        if self.off and [self.off] not in [run["off"] for run in kept]:
            raise WidgetError(f"runs must keep the one without {self.off!r}, which is on view")
        return kept

    @traitlets.validate("off")
    def _check_off(self, proposal: Any) -> str:
        parts = ["", *self.parts()]
        if proposal["value"] not in parts:
            raise WidgetError(f"off must be one of {parts}, not {proposal['value']!r}")
        return proposal["value"]

    def content(self) -> bytes:
        return json.dumps(self.runs).encode()

    def parts(self) -> list[str]:
        """The parts that the runs leave out, in the order of the runs."""
        return [part for run in self.runs for part in run["off"]]

    def run(self) -> dict[str, Any]:
        """The run that is shown."""
        return next(run for run in self.runs if run["off"] == ([self.off] if self.off else []))

    def summary(self) -> str:
        seeds = len(self.runs[0]["exact"])
        return f"encoder and decoder, {len(self.parts())} parts to take away, {seeds} seeds"

    def draw(self, figure: Figure) -> None:
        axes = figure.subplots()
        names = ["whole model", *(f"no {part}" for part in self.parts())]
        shares = [sum(run["exact"]) / len(run["exact"]) for run in self.runs]
        drawn_bars = axes.barh(range(len(shares)), shares, color=BLUE)
        labels = [format_number(x, 2) for x in shares]
        axes.bar_label(drawn_bars, labels, padding=3, fontsize=8)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        now = names[1 + self.parts().index(self.off)] if self.off else names[0]
        axes.set_title(f"shown: {now}", fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.25)
        axes.set_xlabel("share exactly right", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
