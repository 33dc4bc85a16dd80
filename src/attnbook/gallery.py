"""Five broken Transformers: each has one planted error, and runs without complaint.

Chapter 6 shows their symptoms and lets the reader guess. Do not read on before.
"""

import copy

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from attnbook.attention import MultiHeadAttention
from attnbook.data import Batch
from attnbook.masks import causal_mask, masked_softmax
from attnbook.positions import SinusoidalPositions
from attnbook.transformer import Transformer


class _StepByStep(MultiHeadAttention):
    """Attention in single steps, of which a subclass gets one wrong."""

    def weigh(self, q: Tensor, k: Tensor, mask: Tensor, crossing: bool) -> Tensor:
        """Weights `[batch head query key]`."""
        return masked_softmax(q @ k.mT / self.d_head**0.5, mask)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As in `MultiHeadAttention`, for as many heads of keys as of queries."""
        asked = x if memory is None else memory
        q, k, v = self._split(self.q(x)), self._split(self.k(asked)), self._split(self.v(asked))
        allowed = torch.ones(x.shape[1], asked.shape[1], dtype=torch.bool, device=x.device)
        if causal:
            allowed = causal_mask(len(allowed)).to(x.device)
        if mask is not None:
            allowed = allowed & mask[:, None]
        weights = self.weigh(q, k, allowed, memory is not None)
        out = self.out((weights @ v).transpose(1, 2).flatten(2))
        return out, weights if need_weights else None


class LateMask(_StepByStep):
    """Softmax over all keys, the forbidden ones set to zero afterwards: they are in the sum."""

    def weigh(self, q: Tensor, k: Tensor, mask: Tensor, crossing: bool) -> Tensor:
        """Rows that sum to less than 1, and to how much less tells of the forbidden keys."""
        return (q @ k.mT / self.d_head**0.5).softmax(-1) * mask


class Unscaled(_StepByStep):
    """Scores that are not divided by the root of their size."""

    def weigh(self, q: Tensor, k: Tensor, mask: Tensor, crossing: bool) -> Tensor:
        """Weights that are too sharp."""
        return masked_softmax(q @ k.mT, mask)


class SwappedCross(_StepByStep):
    """In cross-attention the memory asks and the decoder is asked."""

    def weigh(self, q: Tensor, k: Tensor, mask: Tensor, crossing: bool) -> Tensor:
        """In cross-attention columns, not rows, sum to 1: over the target, its future included."""
        if not crossing:
            return super().weigh(q, k, mask, crossing)
        return super().weigh(k, q, torch.ones_like(mask.mT), crossing).mT * mask


class TwicePositions(SinusoidalPositions):
    """Position vectors that are added two times."""

    def forward(
        self, x: Float[Tensor, "batch token d_model"]
    ) -> Float[Tensor, "batch token d_model"]:
        """x + 2 p."""
        return super().forward(super().forward(x))


class PaddingCounts(Transformer):
    """A translator whose loss is the mean over all places, padding among them."""

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Float[Tensor, ""]:
        """Cross-entropy in which padding is a word like any other."""
        logits = self(batch.source, batch.target[:, :-1]).logits
        right = batch.target[:, 1:]
        return cross_entropy(logits.transpose(1, 2), right, label_smoothing=smoothing)


ERRORS: dict[str, tuple[type, type]] = {  # what is replaced, by what
    "A": (SinusoidalPositions, TwicePositions),
    "B": (MultiHeadAttention, LateMask),
    "C": (Transformer, PaddingCounts),
    "D": (MultiHeadAttention, SwappedCross),
    "E": (MultiHeadAttention, Unscaled),
}


def patient(letter: str, model: Transformer) -> Transformer:
    """A copy of a model with an error in its code; its weights are the same.

    Args:
        letter: which error, "A" to "E".
        model: with sinusoidal positions and as many heads of keys as of queries. It is not changed.

    Raises:
        ValueError: if `letter` is another, or the model has nothing that the error could break.
    """
    if letter not in ERRORS:
        raise ValueError(f"letter must be one of {', '.join(ERRORS)}, got {letter!r}")
    sound, broken = ERRORS[letter]
    ill = copy.deepcopy(model)
    parts = [module for module in ill.modules() if type(module) is sound]
    config = model.encoder.config
    plain = config.n_kv_heads in (None, config.n_heads) and not config.qk_norm
    if not parts or not plain or config.positions == "rotary":
        raise ValueError(f"model must have a {sound.__name__}, and heads as in TINY, got {config}")
    for part in parts:
        part.__class__ = broken  # the same weights under other code
    return ill
