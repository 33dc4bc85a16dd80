"""Stored runs of the laboratory, made up."""

from typing import Any

import numpy as np

from attnbook.web import Laboratory


def table(*runs: tuple[dict[str, Any], list[float]]) -> np.ndarray:
    """Rows as `attnbook.learn.tables.load` gives them: a test each 25 steps, loss 1 - exact."""
    rows = [
        {**Laboratory(**given).settings, "step": 25 * n, "loss": 1.0 - x, "exact": x, "tokens": x}
        for given, shares in runs
        for n, x in enumerate(map(float, shares))
    ]
    kinds = [(name, "U20" if isinstance(x, str) else type(x)) for name, x in rows[0].items()]
    return np.array([tuple(row.values()) for row in rows], dtype=kinds)
