"""Heads that look at what came after a token before, and a model without some of its heads."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from attnbook.checks import check_choice
from attnbook.model.transformer import TransformerDecoder


def induction(
    weights: Float[Tensor, "batch head query key"], tokens: Int[Tensor, "batch token"]
) -> Float[Tensor, " head"]:
    r"""How much each head looks at the places after earlier occurrences of the token that asks.

        score_h = mean over i of the sum over j of A_h[i, j + 1], with j < i and x_j = x_i

    Args:
        weights: A, the attention weights of a layer, as `recorded` gives them.
        tokens: x, what was read; only tokens that stood there before are asked.

    Returns:
        `[head]` in 0 .. 1. A head of even weights has about one over the number of keys.

    Raises:
        ValueError: if the shapes do not fit, or no token stands twice in a row.

    Source: Olsson et al. 2022, "prefix matching score".
    """
    batch, n = tokens.shape
    if weights.ndim != 4 or (len(weights), *weights.shape[2:]) != (batch, n, n):
        raise ValueError(
            f"weights must be [batch head token token] for tokens {list(tokens.shape)},"
            f" got {list(weights.shape)}"
        )
    after = (tokens[:, :, None] == tokens[:, None]).tril(-1).roll(1, -1)  # [batch query key]
    asks = after.any(-1)
    if not asks.any():
        raise ValueError("tokens must hold a token twice in a row, got none")
    return (weights * after[:, None]).sum(-1).mT[asks].mean(0)


@contextmanager
def silenced(model: TransformerDecoder, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Inside the `with` block these heads of a decoder add nothing.

        with silenced(model, [(1, 0)]):  # the second layer's first head
            model(tokens)

    Args:
        model: has its parameters back afterwards, also after an error.
        heads: layer and head of each, both from 0.

    Raises:
        ValueError: if there is no such layer or head.

    Source: Michel et al. 2019, section 2.
    """
    blocks: Any = model.stack.blocks
    n, size = model.stack.config.n_heads, model.stack.config.head_size
    kept = {}
    for layer, head in (heads := [*heads]):
        check_choice(range(len(blocks)), layer=layer)
        check_choice(range(n), head=head)
    try:
        for layer, head in heads:
            out = blocks[layer].attention.out.weight.data  # [d_model, n size]
            kept.setdefault(layer, out.clone())
            out[:, head * size : (head + 1) * size] = 0
        yield
    finally:
        for layer, out in kept.items():
            blocks[layer].attention.out.weight.data.copy_(out)
