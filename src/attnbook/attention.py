"""Attention: score functions, and the weighted sum of values that they steer."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnbook.masks import masked_softmax


def attend(
    scores: Float[Tensor, "*batch key"],
    values: Float[Tensor, "*batch key d_value"],
    mask: Bool[Tensor, "*batch key"] | None = None,
) -> tuple[Float[Tensor, "*batch d_value"], Float[Tensor, "*batch key"]]:
    """Attention: a weighted sum of values, the weights being a softmax of a query's scores.

        out = sum_j alpha_j v_j,   alpha = softmax(scores)

    Args:
        scores: `[... key]` how well each key answers the query, any real numbers.
        values: `[... key d_value]` what is averaged, one value v_j for each key.
        mask: `[... key]` True = may attend; None = all may be attended.

    Returns:
        out `[... d_value]`, of the same size however many values there are, and the weights alpha
        `[... key]`. A query that may attend to nothing gets zeros for both.

    Source: Bahdanau et al. 2015, equations 5 and 6.
    """
    weights = masked_softmax(scores, mask)
    return torch.einsum("...j,...jd->...d", weights, values), weights


class Score(nn.Module, ABC):
    """What every score function offers; what depends on the keys alone is computed once."""

    @abstractmethod
    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Tensor:
        """What the score needs of the keys of a sentence, whatever the query."""

    @abstractmethod
    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Tensor
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against the prepared keys."""


def _check_size(name: str, vectors: Tensor, size: int) -> None:
    if vectors.shape[-1] != size:
        raise ValueError(f"{name} must be of size {size}, got {vectors.shape[-1]}")


class DotScore(Score):
    """Dot product of query and key, which must be of the same size d.

        score(s, h_j) = s . h_j

    Raises:
        ValueError: if query `[d]` and key `[d]` differ in size.

    Source: Luong et al. 2015, section 3.1.
    """

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key d_key"]:
        """The keys as they are."""
        return keys

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        d_query, d_key = query.shape[-1], prepared.shape[-1]
        if d_query != d_key:
            raise ValueError(
                f"query must be of the size of a key for a dot product, {d_key}, got {d_query}:"
                " BilinearScore and AdditiveScore take any two sizes"
            )
        return torch.einsum("bd,bjd->bj", query, prepared)


class ScaledDotScore(DotScore):
    """Dot product divided by the root of the size d of query and key.

        score(s, h_j) = s . h_j / sqrt(d)

    Raises:
        ValueError: if query `[d]` and key `[d]` differ in size.

    Source: Vaswani et al. 2017, section 3.2.1.
    """

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        return super().forward(query, prepared) / query.shape[-1] ** 0.5


class BilinearScore(Score):
    """Dot product of the query with a linear map of the key. Also called general, multiplicative.

        score(s, h_j) = s . W h_j

    Args:
        d_query: size of a query s.
        d_key: size of a key h_j; W is `[d_query d_key]`, without bias.

    Raises:
        ValueError: if a query or a key is of another size.

    Source: Luong et al. 2015, section 3.1.
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        self.w = nn.Linear(d_key, d_query, bias=False)

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key d_query"]:
        """W h_j, the part that no query changes."""
        _check_size("keys", keys, self.w.in_features)
        return self.w(keys)

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_prepared"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        _check_size("query", query, self.w.out_features)
        return torch.einsum("bd,bjd->bj", query, prepared)


class AdditiveScore(Score):
    """Additive score: a network with one hidden layer reads query and key.

        score(s, h_j) = v . tanh(W1 h_j + W2 s)

    Args:
        d_query: size of a query s.
        d_key: size of a key h_j.
        d_hidden: size of the hidden layer: v `[d_hidden]`, W1 `[d_hidden d_key]`,
            W2 `[d_hidden d_query]`, all without bias.

    Raises:
        ValueError: if a query or a key is of another size.

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
        _check_size("keys", keys, self.w1.in_features)
        return self.w1(keys)

    def forward(
        self,
        query: Float[Tensor, "batch d_query"],
        prepared: Float[Tensor, "batch key d_hidden"],
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        _check_size("query", query, self.w2.in_features)
        return self.v(torch.tanh(prepared + self.w2(query)[:, None])).squeeze(-1)


class ConcatScore(Score):
    """A network with one hidden layer reads query and key end to end.

        score(s, h_j) = v . tanh(W [s; h_j])

    The same function as `AdditiveScore` with W = [W2 W1], which computes W1 h_j only once.

    Args:
        d_query: size of a query s.
        d_key: size of a key h_j.
        d_hidden: size of the hidden layer: v `[d_hidden]`, W `[d_hidden d_query+d_key]`, both
            without bias.

    Raises:
        ValueError: if a query or a key is of another size.

    Source: Luong et al. 2015, section 3.1.
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        self.d_query, self.d_key = d_query, d_key
        self.w = nn.Linear(d_query + d_key, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key d_key"]:
        """The keys as they are: nothing can be computed before the query is known."""
        _check_size("keys", keys, self.d_key)
        return keys

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        _check_size("query", query, self.d_query)
        queries = query[:, None].expand(-1, prepared.shape[1], -1)
        return self.v(torch.tanh(self.w(torch.cat([queries, prepared], dim=-1)))).squeeze(-1)


class LastKeyScore(Score):
    """A score that ignores the query: each key scores far above the key before it.

        score(s, h_j) = 1000 (j - n),   j = 1 .. n

    The softmax over the keys of a sentence is then exactly 1 on the last one and 0 elsewhere, a
    Kronecker delta, since exp(-1000) is 0 in floating point. An attending decoder with this score
    after a one-way encoder reads that encoder's last state at every step (Cho et al. 2014).
    """

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key"]:
        """Scores that rise by 1000 from key to key and end in 0."""
        n = keys.shape[1]
        steps = torch.arange(1 - n, 1, device=keys.device, dtype=keys.dtype)
        return (1000 * steps).expand(keys.shape[:2])

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key"]
    ) -> Float[Tensor, "batch key"]:
        """The prepared scores, whatever the query."""
        return prepared
