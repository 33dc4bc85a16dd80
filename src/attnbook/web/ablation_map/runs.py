"""Stored runs of models that were trained without one part, as an AblationMap shows them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnbook.web._widget import WidgetError, as_array, as_list, as_tokens

KEYS = ("off", "steps", "loss", "exact", "translations")
RUNS = ("runs", "dicts, the whole model's first")


def checked(runs: list[Any], parts: Sequence[str]) -> list[dict[str, Any]]:
    """The runs in stored form, checked: one full model, and models without one part each."""
    if not runs:
        raise WidgetError(f"runs must be a list of {RUNS[1]}, not []")
    kept = [_checked_run(run, n, parts) for n, run in enumerate(runs)]
    off = [part for run in kept for part in run["off"]]
    if kept[0]["off"] or len(off) != len(kept) - 1:
        raise WidgetError("runs[0] must be the whole model's (off: []), and no other")
    if len(set(off)) < len(off):
        raise WidgetError(f"runs must leave out each part once, not {off}")
    fixed = [[(source, gold) for source, _, gold in run["translations"]] for run in kept]
    for n, pairs in enumerate(fixed):
        if pairs != fixed[0]:
            raise WidgetError(f"runs[{n}] must translate the same sources as runs[0], gold alike")
    return kept


def _checked_run(run: Any, n: int, parts: Sequence[str]) -> dict[str, Any]:
    keys = set(run) if isinstance(run, Mapping) else run
    if keys != set(KEYS):
        raise WidgetError(f"runs[{n}] must be a dict with the keys {', '.join(KEYS)}, not {keys!r}")
    off = (
        [run["off"]]
        if isinstance(run["off"], str)
        else as_list(run["off"], f"runs[{n}]: off", "parts")
    )
    if off not in ([], *([part] for part in parts)):
        raise WidgetError(f"runs[{n}]: off must be [] or one of {', '.join(parts)}, not {off}")
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
