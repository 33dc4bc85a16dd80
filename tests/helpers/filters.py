"""The page's filters of a next token, and what `transformers` leaves of a distribution."""

from typing import Any

import numpy as np
import torch
from transformers import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

FILTERS = [
    {"temperature": 1.0, "topK": 0, "topP": 1.0, "minP": 0.0},
    {"temperature": 0.7, "topK": 5, "topP": 1.0, "minP": 0.0},
    {"temperature": 1.3, "topK": 0, "topP": 0.8, "minP": 0.0},
    {"temperature": 1.0, "topK": 0, "topP": 1.0, "minP": 0.1},
    {"temperature": 1.5, "topK": 20, "topP": 0.9, "minP": 0.05},
    {"temperature": 1.5, "topK": 6, "topP": 0.7, "minP": 0.0},
    {"temperature": 0.5, "topK": 3, "topP": 0.01, "minP": 1.0},
    {"temperature": 2.0, "topK": 99, "topP": 0.999, "minP": 0.001},
]


def warped(logits: torch.Tensor, filters: dict[str, Any]) -> np.ndarray:
    """The distribution that `transformers` draws from."""
    scores = TemperatureLogitsWarper(filters["temperature"])(None, logits[None])  # type: ignore[arg-type]
    if filters["topK"]:
        scores = TopKLogitsWarper(filters["topK"])(None, scores)  # type: ignore[arg-type]
    if filters["topP"] < 1:
        scores = TopPLogitsWarper(filters["topP"])(None, scores)  # type: ignore[arg-type]
    if filters["minP"]:
        scores = MinPLogitsWarper(filters["minP"])(None, scores)  # type: ignore[arg-type]
    return scores[0].softmax(-1).numpy()
