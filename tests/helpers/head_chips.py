"""Arguments for a HeadChips."""

from typing import Any

import numpy as np

N, HEADS, SIDE = 5, 3, 4  # checkpoints, heads, tokens


def options(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    maps = rng.random((N, HEADS, SIDE, SIDE))
    return {
        "maps": maps / maps.sum(-1, keepdims=True),
        "right": rng.random((N, 2, 2**HEADS)),
        "steps": [0, 10, 20, 40, 80],
        "losses": [2.75, 2.5, 1.0, 0.5, 0.123456],
        "scores": {"before": rng.random((N, HEADS)), "after": rng.random((N, HEADS))},
        "name": "chips",
        **changes,
    }
