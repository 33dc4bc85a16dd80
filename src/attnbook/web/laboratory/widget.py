"""Laboratory: a small Transformer that trains in the page, with parts that the reader chooses."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import traitlets
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.text.number_words import number_pair
from attnbook.web._widget import Widget, WidgetError, as_tokens, check_size

CHOICES = {
    name: (label, values, start)
    for name, label, values, start in json.loads(
        Path(__file__).with_name("choices.json").read_text("utf-8")
    )
}
LARGEST = 999  # the largest number in the task of number words
LEAST, LONGEST = 200, 20_000  # fewest and most characters of a text
TEXT = (
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, "
    "conceived in Liberty, and dedicated to the proposition that all men are created equal. Now "
    "we are engaged in a great civil war, testing whether that nation, or any nation so conceived "
    "and so dedicated, can long endure. We are met on a great battle-field of that war. We have "
    "come to dedicate a portion of that field, as a final resting place for those who here gave "
    "their lives that that nation might live. It is altogether fitting and proper that we should "
    "do this."
)
VIEWS = ("steps", "compute", "size")
TESTED = ("step", "loss", "exact", "tokens")


@cache
def number_table() -> str:
    """The numbers 1..999, one per line, as in `forty two=zwei und vierzig`."""
    pairs = map(number_pair, range(1, LARGEST + 1))
    return "\n".join(f"{' '.join(pair.source)}={' '.join(pair.target)}" for pair in pairs)


class Laboratory(Widget):
    """A decoder that the reader trains in the page: a task, switches for its parts, a run, a bet.

        loss = - mean log P(output token | input, output before it)

    A worker trains it in plain JavaScript, from initial parameters distributed as in PyTorch; one
    in eight inputs is held out for testing. A ledger lists each run by its changes, with the
    reader's bet and a verdict, which compares five seeds with five or says that one cannot tell.
    The reader's runs stay in the browser, under the widget's name, and go into a link or a file.

    Args:
        runs: rows of a table (`tables.load`): earlier runs, which begin the ledger and are drawn in
            the picture. Columns are `step`, `loss` (on held-out items, in nats per token), `exact`
            and `tokens` (shares of correct items and tokens), and settings; a setting without a
            column has its default in `CHOICES`.
        text: the training text of the task "text", 200 to 20,000 characters; the reader can replace
            it.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.
        settings: where the switches start: `task`, `n_layers`, `d_model`, `n_heads`, `positions`,
            `norm`, `residual`, `causal`, `network`, `activation`, `optimizer`, `lr`, `schedule`,
            `warmup`, `decay_steps`, `clip`, `batch`, `steps`, `seed`, named as in
            `TransformerConfig` where it has them. `CHOICES` lists their values.
        view: what the charts are plotted against: "steps", "compute" (operations so far), or
            "size", at equal compute.

    With a kernel, `settings` and `view` track the reader's choices; setting them changes what is
    shown.

    Raises:
        ValueError: if a setting, its value or the view is unknown, a column is missing, or the text
            is too short or too long.

    Source: Loshchilov and Hutter 2019 (AdamW); Jordan et al. 2024 (Muon); Hoffmann et al. 2022
    (the best size for a compute budget).
    """

    _esm, _css = bundles.load("Laboratory")

    settings = traitlets.Dict().tag(sync=True)
    runs = traitlets.List(traitlets.Dict()).tag(sync=True)
    table = traitlets.Unicode().tag(sync=True)
    text = traitlets.Unicode(TEXT).tag(sync=True)
    view = traitlets.Unicode(VIEWS[0]).tag(sync=True)

    def __init__(
        self,
        *,
        runs: Any = None,
        text: str = TEXT,
        title: str = "",
        name: str | None = None,
        view: str = VIEWS[0],
        **settings: Any,
    ) -> None:
        super().__init__(
            name=name,
            title=title,
            settings=settings,
            runs=[] if runs is None else _runs(np.atleast_1d(runs)),
            text=text,
            view=view,
            table=number_table(),
        )

    @traitlets.validate("settings")
    def _check_settings(self, proposal: Any) -> dict[str, Any]:
        return _settled(proposal["value"])

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        (value,) = as_tokens([proposal["value"]], "text")
        if not LEAST <= len(value) <= LONGEST:
            raise WidgetError(
                f"text must have {LEAST} to {LONGEST:,} characters, not {len(value):,}"
            )
        return value

    @traitlets.validate("view")
    def _check_view(self, proposal: Any) -> str:
        if proposal["value"] not in VIEWS:
            raise WidgetError(f"view must be one of {VIEWS}, not {proposal['value']!r}")
        return proposal["value"]

    def content(self) -> bytes:
        return repr((self.settings, self.runs, self.text, self.view)).encode()

    def summary(self) -> str:
        shown = self.settings
        sizes = f"{shown['n_layers']} layers of {shown['d_model']}"
        stored = sum(len(run["seeds"]) for run in self.runs)
        return f"{shown['task']}, {sizes}, {stored} stored runs"

    def figure_size(self) -> tuple[float, float]:
        return 5.6, 2.8 if self.runs else 1.8

    def draw(self, figure: Figure) -> None:
        if not self.runs:
            words = [f"{label}: {self.settings[name]}" for name, (label, _, _) in CHOICES.items()]
            figure.supxlabel("\n".join(map(" · ".join, np.array_split(words, 6))), fontsize=8)
            return
        left, right = figure.subplots(1, 2)
        for run in self.runs:
            label = _told(run["settings"], self.settings)
            _band(left, run, "loss", label)
            _band(right, run, "tokens" if run["settings"]["task"] == "text" else "exact", label)
        left.set(yscale="log", xlabel="step", ylabel="loss on held-out items (nats)")
        right.set(ylim=(0, 1.02), xlabel="step", ylabel="held-out items right")
        left.legend(fontsize=7)
        for axis in (left, right):
            axis.spines[["top", "right"]].set_visible(False)


def _settled(given: dict[str, Any]) -> dict[str, Any]:
    """All settings; those that are not given have their defaults."""
    for name, value in given.items():
        if name not in CHOICES:
            raise WidgetError(f"settings must be of {', '.join(CHOICES)}, not {name!r}")
        if value not in CHOICES[name][1]:
            raise WidgetError(f"{name} must be one of {CHOICES[name][1]}, not {value!r}")
    return {
        name: next((v for v in values if v == given.get(name)), start)
        for name, (_, values, start) in CHOICES.items()
    }


def _runs(table: np.ndarray) -> list[dict[str, Any]]:
    """The table's rows as runs; those that differ only in their seed are one run."""
    columns = table.dtype.names or ()
    if missing := [name for name in TESTED if name not in columns]:
        raise WidgetError(f"runs must have the columns of the table, not miss {missing}")
    found: dict[str, dict[str, Any]] = {}
    for row in table:
        settings = _settled({name: row[name].item() for name in CHOICES if name in columns})
        key = repr({**settings, "seed": None})
        seeds = found.setdefault(key, {"settings": settings, "seeds": {}})["seeds"]
        test = {name: row[name].item() for name in TESTED}
        seeds.setdefault(settings["seed"], []).append(test)
    kept = [
        {**run, "seeds": [{"seed": seed, "tests": tests} for seed, tests in run["seeds"].items()]}
        for run in found.values()
    ]
    check_size(len(repr(kept)), "runs", "take fewer")
    return kept


def _told(settings: dict[str, Any], base: dict[str, Any]) -> str:
    """The settings in which a run differs from `base`, as text."""
    names = [name for name in CHOICES if name != "seed" and settings[name] != base[name]]
    return ", ".join(f"{CHOICES[name][0]}: {settings[name]}" for name in names) or "as it stands"


def _band(axis: Axes, run: dict[str, Any], name: str, label: str) -> None:
    """Draw the mean of the seeds at each step, in a band from the least to the largest."""
    values = np.array([[test[name] for test in seed["tests"]] for seed in run["seeds"]], float)
    steps = [test["step"] for test in run["seeds"][0]["tests"]]
    (line,) = axis.plot(steps, values.mean(0), label=label)
    axis.fill_between(steps, values.min(0), values.max(0), color=line.get_color(), alpha=0.2)
