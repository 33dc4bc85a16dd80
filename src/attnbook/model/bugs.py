"""Five broken Transformers: each has one planted error, and runs without complaint.

Chapter 6 shows their symptoms and lets the reader guess. Do not read on before.
"""

import copy
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnbook.checks import check_choice
from attnbook.model.attention import MultiHeadAttention
from attnbook.model.positions import SinusoidalPositions
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Pairs


class LateMask(MultiHeadAttention):
    """Softmax over all keys, the forbidden ones set to zero afterwards: they are in the sum."""

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Rows that sum to less than 1, and to how much less tells of the forbidden keys."""
        weights = scores.softmax(-1)
        return weights if mask is None else weights * mask


class Unscaled(MultiHeadAttention):
    """Scores that are not divided by the root of their size."""

    def scores(self, q: Tensor, k: Tensor, bias: Tensor | None = None) -> Tensor:
        """Scores that are too far apart, so that weights are too sharp."""
        return super().scores(q, k, bias) * self.d_head**0.5


class SoftmaxOverQueries(MultiHeadAttention):
    """In cross-attention the softmax runs over the wrong axis: over the queries of each key."""

    def weights(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        """Columns, not rows, sum to 1: over the target, its future included."""
        weights = scores.softmax(-2)
        return weights if mask is None else weights * mask


class TwicePositions(SinusoidalPositions):
    """Position vectors that are added two times."""

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        positions: Int[Tensor, "#batch token"] | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """x + 2 p."""
        return super().forward(super().forward(x, positions), positions)


class PaddingCounts(Transformer):
    """A translator whose loss is the mean over all places, padding among them."""

    def loss(self, batch: Pairs, smoothing: float = 0.0) -> Float[Tensor, ""]:
        """Cross-entropy in which padding is a word like any other."""
        logits = self(batch.source, batch.target[:, :-1])
        right = batch.target[:, 1:]
        return cross_entropy(logits.transpose(1, 2), right, label_smoothing=smoothing)


ERRORS: dict[str, tuple[type, type]] = {  # what is replaced, by what
    "A": (SinusoidalPositions, TwicePositions),
    "B": (MultiHeadAttention, LateMask),
    "C": (Transformer, PaddingCounts),
    "D": (MultiHeadAttention, SoftmaxOverQueries),
    "E": (MultiHeadAttention, Unscaled),
}


def patient(letter: str, model: Transformer) -> Transformer:
    """A copy of a model with an error in its code; its weights are the same.

    Args:
        letter: which error, "A" to "E".
        model: with sinusoidal positions for "A". It is not changed.

    Raises:
        ValueError: if `letter` is another, or the model has nothing that the error could break.
    """
    check_choice(ERRORS, letter=letter)
    sound, broken = ERRORS[letter]
    ill = copy.deepcopy(model)
    parts: list[tuple[str, Any]] = [
        (path, part) for path, part in ill.named_modules() if type(part) is sound
    ]
    if broken is SoftmaxOverQueries:
        parts = [(path, part) for path, part in parts if path.endswith("cross")]
    if not parts:
        raise ValueError(f"model must have a {sound.__name__}, got {model.encoder.stack.config}")
    for _, part in parts:
        part.__class__ = broken  # the same parameters under other code
    return ill
