"""Which keys a query may attend to: a mask is boolean, and True means "may attend"."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnbook.checks import check_ids, check_kind, check_mask, check_whole


def padding_mask(tokens: Int[Tensor, "batch key"], pad: int) -> Bool[Tensor, "batch key"]:
    """True where a token is a word, False where it is padding.

    Args:
        tokens: `[batch key]` token ids.
        pad: id of padding, as `vocab.pad`.

    Raises:
        ValueError: if tokens are no batch of ids.

    In other libraries: `attention_mask` of `transformers`; PyTorch's `key_padding_mask` is the
    reverse, True at padding.
    """
    check_ids("tokens", tokens)
    check_whole(0, pad=pad)
    return tokens != pad


def causal_mask(n: int, past: int = 0) -> Bool[Tensor, "query key"]:
    """True where a key does not come after the query.

        mask_ij = (j <= past + i),   i = 0 .. n - 1,   j = 0 .. past + n - 1

    Args:
        n: number of queries.
        past: number of keys that stand before the first query.

    Raises:
        ValueError: if n or past is negative.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    check_whole(0, n=n, past=past)
    return torch.ones(n, past + n, dtype=torch.bool).tril(past)


def masked_softmax(
    scores: Float[Tensor, "*batch key"], mask: Bool[Tensor, "*#batch key"] | None = None
) -> Float[Tensor, "*batch key"]:
    """Softmax over the keys that a query may attend to.

        weights_j = mask_j exp(scores_j) / sum_k mask_k exp(scores_k)

    Args:
        scores: `[... key]` any real numbers; those that are masked may be anything.
        mask: `[... key]` True = may attend, shaped to broadcast; None = all may be attended.

    Returns:
        `[... key]` weights in 0..1 that sum to 1. A query that may attend to nothing gets zeros,
        never NaN.

    Raises:
        ValueError: if the mask is not boolean, or does not fit the scores.
    """
    check_kind(Tensor, scores=scores)
    if mask is None:
        return scores.softmax(-1)
    check_mask(mask, scores=(scores, "... key"), mask=(mask, "#... key"))
    hidden = scores.masked_fill(~mask, -torch.inf)
    hidden = hidden.masked_fill(~mask.any(-1, keepdim=True), 0.0)  # else a row of NaN
    return torch.where(mask, hidden.softmax(-1), 0.0)
