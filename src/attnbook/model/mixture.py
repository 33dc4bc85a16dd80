"""Mixture of experts: many feed-forward networks, of which each token uses a few."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.model.block import FeedForward
from attnbook.model.config import TransformerConfig


class Mixture(nn.Module):
    """In place of a feed-forward network, several: a router sends each token to the best few.

        y = sum_(e chosen) g_e FF_e(x),   g = softmax of the chosen scores among s = W_r x

    with x and y `[d_model]`, W_r `[n_experts d_model]`, s `[n_experts]`, and the `top` largest
    scores chosen. Only the networks that are chosen compute. With `top` 1 the gate is always 1, and
    `imbalance` alone trains the router.

    Args:
        config: each network's configuration: gives d_model, d_ff, activation, gated and bias.
        n_experts: how many networks.
        top: how many of them a token uses.

    Raises:
        ValueError: if `n_experts` is below 1, `top` is below 1 or above `n_experts`, or x has
            another width.

    Source: Shazeer et al. 2017, section 2; Jiang et al. 2024, section 2.1 (Mixtral: 8 networks, the
    best 2, and this softmax).

    In other libraries: `MixtralSparseMoeBlock`, whose `gate` is `router` here.
    """

    def __init__(self, config: TransformerConfig, n_experts: int = 8, top: int = 2):
        super().__init__()
        check_whole(1, n_experts=n_experts, top=top)
        check_range(1, n_experts, top=top)
        self.top = top
        self.router = nn.Linear(config.d_model, n_experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(config) for _ in range(n_experts))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each vector by itself."""
        check_shapes(x=(x, "... d_model"), d_model=self.router.in_features)
        tokens = x.reshape(-1, x.shape[-1])  # [token d_model]
        best, chosen = self.router(tokens).topk(self.top)  # [token top]
        gates = best.softmax(-1)
        out = torch.zeros_like(tokens)
        for e, expert in enumerate(self.experts):
            token, place = (chosen == e).nonzero(as_tuple=True)
            given = gates[token, place, None] * expert(tokens[token])
            out = out.index_add(0, token, given.to(out.dtype))
        return out.view_as(x)


def load(scores: Float[Tensor, "*batch expert"], top: int) -> Float[Tensor, " expert"]:
    """The share of all choices that falls on each network; 1 / n_experts each is even.

    Args:
        scores: the router's scores.
        top: how many networks a token uses.
    """
    chosen: Int[Tensor, "*batch top"] = scores.topk(top).indices
    counts = chosen.flatten().bincount(minlength=scores.shape[-1])
    return counts / counts.sum()


def imbalance(scores: Float[Tensor, "*batch expert"], top: int) -> Float[Tensor, ""]:
    """A loss that is 1 where the load is even, and above 1 where the networks that are chosen most
    have the highest probabilities, too.

        n_experts sum_e f_e P_e

    with f_e the share of choices that falls on network e, and P_e the mean of its softmax over all
    networks, through which the gradient flows.

    Args:
        scores: the router's scores.
        top: how many networks a token uses.

    Source: Fedus et al. 2022, section 2.2, equation 4.
    """
    probabilities = scores.softmax(-1).reshape(-1, scores.shape[-1]).mean(0)
    return scores.shape[-1] * (load(scores, top) * probabilities).sum()
