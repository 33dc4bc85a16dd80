"""Score functions: how well each key answers a query, before the softmax."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Score(nn.Module):
    """What every score function offers; what depends on the keys alone is computed once."""

    @abstractmethod
    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Tensor:
        """What the score needs of the keys of a sentence, whatever the query."""

    @abstractmethod
    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Tensor
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against the prepared keys."""


class AdditiveScore(Score):
    """Additive score: a network with one hidden layer reads query and key.

        score(s, h_j) = v . tanh(W1 h_j + W2 s)

    Args:
        d_query: size of a query s.
        d_key: size of a key h_j.
        d_hidden: size of the hidden layer: v `[d_hidden]`, W1 `[d_hidden d_key]`,
            W2 `[d_hidden d_query]`, all without bias.

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        self.w1 = nn.Linear(d_key, d_hidden, bias=False)
        self.w2 = nn.Linear(d_query, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def prepare(
        self, keys: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key d_hidden"]:
        """W1 h_j, the part that no query changes."""
        return self.w1(keys)

    def forward(
        self,
        query: Float[Tensor, "batch d_query"],
        prepared: Float[Tensor, "batch key d_hidden"],
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        return self.v(torch.tanh(prepared + self.w2(query)[:, None])).squeeze(-1)


class LastKeyScore(Score):
    """A score that ignores the query: each key scores far above the key before it.

        score(s, h_j) = 10000 (j - n),   j = 1 .. n

    The softmax over the keys of a sentence is then exactly 1 on the last one and 0 elsewhere, a
    Kronecker delta, since exp(-10000) is 0 in floating point. An attending decoder with this score
    is the plain decoder that reads the encoder's last state at every step (Cho et al. 2014).
    """

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key"]:
        """Scores that rise by 10000 from key to key and end in 0."""
        n = keys.shape[1]
        steps = torch.arange(1 - n, 1, device=keys.device, dtype=keys.dtype)
        return (10_000 * steps).expand(keys.shape[:2])

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key"]
    ) -> Float[Tensor, "batch key"]:
        """The prepared scores, whatever the query."""
        return prepared
