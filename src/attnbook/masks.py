"""Which keys a query may attend to: a mask is boolean, and True means "may attend"."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnbook.data import PAD


def padding_mask(tokens: Int[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """True where a token is a word, False where it is padding.

    Args:
        tokens: `[batch key]` token ids, 0 is padding.
    """
    return tokens != PAD


def causal_mask(n: int) -> Bool[Tensor, "query key"]:
    """True where a key does not come after the query.

        mask_ij = (j <= i),   i, j = 0 .. n - 1

    Args:
        n: number of tokens.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return torch.ones(n, n, dtype=torch.bool).tril()


def masked_softmax(
    scores: Float[Tensor, "*batch key"], mask: Bool[Tensor, "*#batch key"] | None = None
) -> Float[Tensor, "*batch key"]:
    """Softmax over the keys that a query may attend to.

        weights_j = mask_j exp(scores_j) / sum_k mask_k exp(scores_k)

    Args:
        scores: `[... key]` any real numbers.
        mask: `[... key]` True = may attend, shaped to broadcast; None = all may be attended.

    Returns:
        `[... key]` weights in 0..1 that sum to 1. A query that may attend to nothing gets zeros,
        never NaN.
    """
    if mask is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return torch.where(mask, weights, 0.0)
