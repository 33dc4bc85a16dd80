"""Score functions: how well a key answers a query."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnbook.checks import check_shapes, check_whole


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


def _check(query: Tensor, d_query: int, prepared: Tensor, d_key: int) -> None:
    shapes = {"query": (query, "batch d_query"), "prepared": (prepared, "batch key d_key")}
    check_shapes(**shapes, d_query=d_query, d_key=d_key)


class DotScore(Score):
    """Dot product of query and key, which must be of the same size d.

        score(s, h_j) = s . h_j

    Raises:
        ValueError: if query `[d]` and key `[d]` differ in size.

    Source: Luong et al. 2015, section 3.1.

    In other libraries: `keras.layers.Attention`.
    """

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key d_key"]:
        """The keys as they are."""
        return keys

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        check_shapes(keys=(prepared, "batch key d"), query=(query, "batch d"))
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

    In other libraries: `LuongAttention` of TensorFlow Addons.
    """

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        check_whole(1, d_query=d_query, d_key=d_key)
        self.w = nn.Linear(d_key, d_query, bias=False)

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key d_query"]:
        """W h_j, the part that no query changes."""
        check_shapes(keys=(keys, "batch key d_key"), d_key=self.w.in_features)
        return self.w(keys)

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_prepared"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        _check(query, self.w.out_features, prepared, self.w.out_features)
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

    In other libraries: `BahdanauAttention` of TensorFlow Addons; Keras's `AdditiveAttention`,
    which has v alone.
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        check_whole(1, d_query=d_query, d_key=d_key, d_hidden=d_hidden)
        self.w1 = nn.Linear(d_key, d_hidden, bias=False)
        self.w2 = nn.Linear(d_query, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def prepare(
        self, keys: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key d_hidden"]:
        """W1 h_j, the part that no query changes."""
        check_shapes(keys=(keys, "batch key d_key"), d_key=self.w1.in_features)
        return self.w1(keys)

    def forward(
        self,
        query: Float[Tensor, "batch d_query"],
        prepared: Float[Tensor, "batch key d_hidden"],
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        _check(query, self.w2.in_features, prepared, self.v.in_features)
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
        check_whole(1, d_query=d_query, d_key=d_key, d_hidden=d_hidden)
        self.d_query, self.d_key = d_query, d_key
        self.w = nn.Linear(d_query + d_key, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Float[Tensor, "batch key d_key"]:
        """The keys as they are: nothing can be computed before the query is known."""
        check_shapes(keys=(keys, "batch key d_key"), d_key=self.d_key)
        return keys

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        _check(query, self.d_query, prepared, self.d_key)
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
        n = check_shapes(keys=(keys, "batch key d_key"))["key"]
        dtype = torch.promote_types(keys.dtype, torch.float32)  # 16 bits end at 65504
        steps = torch.arange(1 - n, 1, device=keys.device, dtype=dtype)
        return (1000 * steps).expand(keys.shape[:2])

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key"]
    ) -> Float[Tensor, "batch key"]:
        """The prepared scores, whatever the query."""
        check_shapes(query=(query, "batch d_query"), prepared=(prepared, "batch key"))
        return prepared
