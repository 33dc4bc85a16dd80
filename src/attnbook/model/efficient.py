"""Attention whose work grows with the length of a text, not with its square."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from attnbook.checks import check_flags, check_mask, check_shapes, check_whole
from attnbook.model.attention import combine, finite, scaled_dots, uncast
from attnbook.model.masks import masked_softmax

LEAST_BLOCK = 16  # queries in a block of a narrow window: fewer would be many small products
CHUNK = 64  # queries in a chunk of causal linear attention, for which a sum is kept


def window_attention(
    q: Float[Tensor, "batch head n d_head"],
    k: Float[Tensor, "batch head n d_head"],
    v: Float[Tensor, "batch head n d_value"],
    window: int,
    *,
    causal: bool = False,
) -> Float[Tensor, "batch head n d_value"]:
    """Sliding window: attention to the keys that stand near the query.

        out_i = sum_j alpha_ij v_j,   alpha_i = softmax(q_i . k_j / sqrt(d_head))

    over the keys j with |i - j| <= window; causal: with i - window <= j <= i. Queries go in blocks
    of `window` (of 16 if it is narrower), each against the keys that its queries can reach, a
    window more on each side, so that work and memory are O(n window).

    Args:
        q: `[batch head n d_head]` queries.
        k: `[batch head n d_head]` keys.
        v: `[batch head n d_value]` values, one a key.
        window: how many neighbours on each side a query reaches; 0: itself alone.
        causal: no key may come after the query.

    Returns:
        out `[batch head n d_value]`, what full attention gives with that band as a mask.

    Raises:
        ValueError: if window is negative, or q, k and v differ in more than the size of a value.

    Source: Beltagy et al. 2020, section 3.1.
    """
    check_whole(0, window=window)
    check_flags(causal=causal)
    _check_sizes(q, k, v, paired=True)
    n = q.shape[2]
    behind = min(window, n - 1)
    ahead = 0 if causal else behind
    block = max(behind, LEAST_BLOCK)
    count = -(-n // block)
    more = count * block - n  # queries that fill the last block; each sees what the last one sees
    reach = behind + block + ahead
    i = torch.arange(count * block, device=q.device).clamp(max=n - 1).view(count, block, 1)
    j = torch.arange(reach, device=q.device) + i[:, :1] - behind  # [count 1 reach]
    mask = (i - behind <= j) & (j <= i + ahead) & (j >= 0) & (j < n)
    # A block is what a head is to PyTorch's attention: [batch*head count block d].
    q_blocks = pad(q, (0, 0, 0, more)).unflatten(2, (count, block)).flatten(0, 1)
    k_blocks, v_blocks = (
        pad(t, (0, 0, behind, more + ahead)).unfold(2, reach, block).mT.flatten(0, 1)
        for t in (k, v)
    )
    if finite(k, v):
        out = scaled_dot_product_attention(q_blocks, k_blocks, v_blocks, mask)
    else:  # a fused kernel would see what the mask hides
        weights = masked_softmax(scaled_dots(q_blocks, k_blocks), mask)
        out = combine(weights, v_blocks).to(v.dtype)
    return out.unflatten(0, q.shape[:2]).flatten(2, 3)[:, :, :n]


def linear_attention(
    q: Float[Tensor, "batch head query d_head"],
    k: Float[Tensor, "batch head key d_head"],
    v: Float[Tensor, "batch head key d_value"],
    *,
    causal: bool = False,
    mask: Bool[Tensor, "batch key"] | None = None,
) -> Float[Tensor, "batch head query d_value"]:
    """Linear attention: weights that are inner products, so that the keys are summed only once.

        out_i = phi(q_i) S / phi(q_i) z,   S = sum_j phi(k_j) v_j^T,   z = sum_j phi(k_j)

    with phi(x) = elu(x) + 1, which is positive: weights proportional to phi(q_i) . phi(k_j) take
    the place of a softmax. S `[d_head d_value]` and z `[d_head]` do not depend on the query, so
    work and memory are linear in the number of tokens. Causal: the sums of query i run over j <= i;
    they are kept for every 64th query, not for each.

    Args:
        q: `[batch head query d_head]` queries.
        k: `[batch head key d_head]` keys.
        v: `[batch head key d_value]` values, one a key.
        causal: no key may come after the query.
        mask: `[batch key]` True = may be attended, as from `padding_mask`; None = all may be.

    Returns:
        out `[batch head query d_value]`, of the type of v. A query that may attend to nothing gets
        zeros. Sums are made in float32 at least: 16 bits would overflow, or lose small weights. A
        key whose numbers are all below about -100 has no weight in float32.

    Raises:
        ValueError: if sizes do not fit, or causal with other than one query a key.

    Source: Katharopoulos et al. 2020, sections 3.2 and 3.3.
    """
    check_flags(causal=causal)
    _check_sizes(q, k, v, paired=causal)
    dtype = v.dtype
    if mask is None:
        q, k, v = _features(q, k, v)
    else:
        check_mask(mask, mask=(mask, "batch key"), batch=k.shape[0], key=k.shape[2])
        hidden = ~mask[:, None, :, None]
        q, k, v = _features(q, k.masked_fill(hidden, 0.0), v.masked_fill(hidden, 0.0))
        k = k.masked_fill(hidden, 0.0)
    with uncast(q):
        return _average(_causal_sums(q, k, v) if causal else q @ (k.mT @ v)).to(dtype)


def linear_attention_step(
    q: Float[Tensor, "batch head d_head"],
    k: Float[Tensor, "batch head d_head"],
    v: Float[Tensor, "batch head d_value"],
    state: Float[Tensor, "batch head d_head d_sum"] | None = None,
) -> tuple[Float[Tensor, "batch head d_value"], Float[Tensor, "batch head d_head d_sum"]]:
    """One step of causal linear attention as the recurrent network that it is.

        [S_i z_i] = [S_(i-1) z_(i-1)] + phi(k_i) [v_i 1]^T,   out_i = phi(q_i) S_i / phi(q_i) z_i

    Args:
        q: `[batch head d_head]` query of this token.
        k: `[batch head d_head]` its key.
        v: `[batch head d_value]` its value.
        state: `[batch head d_head d_value+1]` the sums S and z of the tokens before, side by side.
            They are as large after a thousand tokens as after one, and in float32 at least; None:
            there were none.

    Returns:
        out `[batch head d_value]`, as `linear_attention(..., causal=True)` gives for this token,
        and the new state.

    Raises:
        ValueError: if sizes do not fit.

    Source: Katharopoulos et al. 2020, section 3.4.
    """
    q, k, v = (t[:, :, None] for t in (q, k, v))
    _check_sizes(q, k, v, paired=True)
    dtype = v.dtype
    q, k, v = _features(q, k, v)
    with uncast(q):
        update = k.mT @ v
    if state is not None:
        sizes = dict(zip(("batch", "head", "d_head", "d_sum"), update.shape, strict=True))
        check_shapes(state=(state, "batch head d_head d_sum"), **sizes)
    state = update if state is None else state + update
    with uncast(q):
        return _average(q @ state)[:, :, 0].to(dtype), state


def _check_sizes(q: Tensor, k: Tensor, v: Tensor, *, paired: bool) -> None:
    """`paired`: there is one query for each key, and at least one key."""
    n_query, n_key = ("n", "n") if paired else ("query", "key")
    sizes = check_shapes(
        q=(q, f"batch head {n_query} d_head"),
        k=(k, f"batch head {n_key} d_head"),
        v=(v, f"batch head {n_key} d_value"),
    )
    if paired:
        check_whole(1, tokens=sizes["n"])


def _features(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """phi(q), phi(k), and v with a one at its end, whose sum is the sum of the weights.

    Where all numbers of a query are below zero, phi(q) is divided by its largest number: it is a
    factor of all weights of the query, and might be rounded to 0.
    """
    q, k, v = (t.to(torch.promote_types(t.dtype, torch.float32)) for t in (q, k, v))
    largest = q.detach().amax(-1, keepdim=True).clamp(max=0)
    return _phi(q - largest), _phi(k), pad(v, (0, 1), value=1.0)


def _phi(x: Tensor) -> Tensor:
    """elu(x) + 1: exp(x) below zero, written so that it is not rounded to 0 there."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _average(sums: Tensor) -> Tensor:
    """The sums of weighted values, divided by the sum of the weights in the last place."""
    total = sums[..., -1:]
    return sums[..., :-1] / total.where(total > 0, 1.0)


def _causal_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each query's sums over the keys up to it: those of earlier chunks, then those of its own."""
    n = q.shape[2]
    count = -(-n // CHUNK)
    q, k, v = (pad(t, (0, 0, 0, count * CHUNK - n)).unflatten(2, (count, CHUNK)) for t in (q, k, v))
    states = (k.mT @ v).cumsum(2)  # [batch head count d_head d_value+1]
    before = pad(states[:, :, :-1], (0, 0, 0, 0, 1, 0))
    sums = q @ before + combine((q @ k.mT).tril(), v)
    return sums.flatten(2, 3)[:, :, :n]
