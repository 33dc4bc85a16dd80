"""Attention: score functions, the weighted sum of values that they steer, and many heads of it."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnbook.masks import causal_mask, masked_softmax
from attnbook.norms import RMSNorm, check_size
from attnbook.positions import ScorePositions


def attend(
    scores: Float[Tensor, "*batch key"],
    values: Float[Tensor, "*#batch key d_value"],
    mask: Bool[Tensor, "*#batch key"] | None = None,
) -> tuple[Float[Tensor, "*batch d_value"], Float[Tensor, "*batch key"]]:
    """Attention: a weighted sum of values, the weights being a softmax of a query's scores.

        out = sum_j alpha_j v_j,   alpha = softmax(scores)

    Args:
        scores: `[... key]` how well each key answers the query, any real numbers.
        values: `[... key d_value]` what is averaged, one value v_j a key, shaped to broadcast.
        mask: `[... key]` True = may attend, shaped to broadcast; None = all may be attended.

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
        check_size("keys", keys, self.w.in_features)
        return self.w(keys)

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_prepared"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        check_size("query", query, self.w.out_features)
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
        check_size("keys", keys, self.w1.in_features)
        return self.w1(keys)

    def forward(
        self,
        query: Float[Tensor, "batch d_query"],
        prepared: Float[Tensor, "batch key d_hidden"],
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        check_size("query", query, self.w2.in_features)
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
        check_size("keys", keys, self.d_key)
        return keys

    def forward(
        self, query: Float[Tensor, "batch d_query"], prepared: Float[Tensor, "batch key d_key"]
    ) -> Float[Tensor, "batch key"]:
        """Scores of one query a sentence against its prepared keys."""
        check_size("query", query, self.d_query)
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


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each in a small space of its own, joined by a linear map.

        q_l = x W_l^Q,   k_l = m W_l^K,   v_l = m W_l^V          for each head l = 1 .. n_heads
        out = [head_1 ... head_h] W^O,   head_l = softmax(q_l k_l^T / sqrt(d_head)) v_l

    where x `[query d_model]` are the vectors that ask and m `[key d_model]` those that are asked:
    x itself (self-attention) or a memory (cross-attention). W_l^Q, W_l^K, W_l^V are
    `[d_model d_head]`, d_head = d_model / n_heads, and W^O is `[d_model d_model]`. The maps of all
    heads lie side by side in `q`, `k`, `v`; `out` is W^O.

    Args:
        d_model: size of the vectors.
        n_heads: number of heads.
        n_kv_heads: number of heads of keys and values; each serves `n_heads / n_kv_heads` heads of
            queries. None: as many as `n_heads`.
        bias: whether the four maps have a bias.
        positions: what positions change in queries, keys or scores; None: nothing.
        qk_norm: whether each head's queries and keys are divided by their root mean square, with a
            gain that all heads share, before positions and scores.

    Raises:
        ValueError: if n_heads does not divide d_model, or n_kv_heads does not divide n_heads; in
            `forward`, if a vector is not of size d_model, if a mask is not boolean with three
            dimensions, if `positions` or `causal` meets a memory, or if `positions` is made for
            other heads.

    Source: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 (fewer heads of keys);
    `qk_norm` as in Qwen 3; in Henry et al. 2020, whose idea it is, vectors of length 1 and one
    learnt number stand in place of the root.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        bias: bool = True,
        positions: ScorePositions | None = None,
        qk_norm: bool = False,
    ):
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, {d_model}, got {n_heads}")
        if n_kv_heads < 1 or n_heads % n_kv_heads:
            raise ValueError(f"n_kv_heads must divide n_heads, {n_heads}, got {n_kv_heads}")
        self.d_model, self.d_head = d_model, d_model // n_heads
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.q = nn.Linear(d_model, d_model, bias)
        self.k = nn.Linear(d_model, n_kv_heads * self.d_head, bias)
        self.v = nn.Linear(d_model, n_kv_heads * self.d_head, bias)
        self.out = nn.Linear(d_model, d_model, bias)
        self.positions = positions
        self.q_norm = RMSNorm(self.d_head) if qk_norm else nn.Identity()
        self.k_norm = RMSNorm(self.d_head) if qk_norm else nn.Identity()

    def forward(
        self,
        x: Float[Tensor, "batch query d_x"],
        memory: Float[Tensor, "batch key d_memory"] | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch query d_model"], Float[Tensor, "batch head query key"] | None]:
        """Attend from x to the memory, or to x itself.

        Args:
            x: `[batch query d_model]` the vectors that ask.
            memory: `[batch key d_model]` the vectors that are asked; None: x.
            mask: `[batch query key]`, or with 1 for batch or query: True = may attend. For padding,
                `padding_mask(tokens)[:, None]`.
            causal: each vector may attend only to itself and those before it, in addition to
                `mask`.
            need_weights: give the weights too, computed step by step; without them PyTorch's fused
                attention is used, which never stores them.

        Returns:
            out `[batch query d_model]`, and the weights `[batch head query key]` or None. A query
            that may attend to nothing gets zeros from every head.
        """
        if memory is not None and (causal or self.positions):
            raise ValueError("memory must be None with causal or positions: they compare x with x")
        asked = x if memory is None else memory
        check_size("x", x, self.d_model)
        check_size("memory", asked, self.d_model)
        if mask is not None and (mask.ndim != 3 or mask.dtype != torch.bool):
            raise ValueError(
                "mask must be boolean [batch query key]: padding_mask(tokens)[:, None],"
                f" causal_mask(n)[None], got {mask.dtype} of shape {tuple(mask.shape)}"
            )
        q, k, v = self._split(self.q(x)), self._split(self.k(asked)), self._split(self.v(asked))
        q, k = self.q_norm(q), self.k_norm(k)
        bias = None
        if self.positions:
            q, k = self.positions.rotate(q, k)
            bias = self.positions.bias(q, k)
        if mask is not None:
            mask = mask[:, None]
        if causal and (need_weights or mask is not None or bias is not None):
            ahead = causal_mask(x.shape[1]).to(x.device)
            mask = ahead if mask is None else mask & ahead
        if need_weights:
            group = self.n_heads // self.n_kv_heads
            k, v = (t.repeat_interleave(group, dim=1) for t in (k, v))
            scores = q @ k.mT / self.d_head**0.5
            heads, weights = attend(scores if bias is None else scores + bias, v[:, :, None], mask)
        else:
            heads, weights = self._fused(q, k, v, mask, bias, causal), None
        return self.out(heads.transpose(1, 2).flatten(2)), weights

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # [batch head token d_head]

    def _fused(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        causal: bool,
    ) -> Tensor:
        """PyTorch's attention; its mask is added to the scores when it is not boolean."""
        if bias is not None and mask is not None:
            mask = bias.masked_fill(~mask, -torch.inf)
        elif bias is not None:
            mask = bias
        return scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            is_causal=causal and mask is None,
            enable_gqa=self.n_kv_heads < self.n_heads,
        )

    def load_torch(self, reference: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy the weights of PyTorch's module of the same sizes, not its dropout; returns self.

        Raises:
            ValueError: if the module has other sizes, a bias where this one has none, keys of
                another size, or additional keys.
        """
        theirs = (reference.embed_dim, reference.num_heads, reference.in_proj_bias is not None)
        mine = (self.d_model, self.n_heads, self.q.bias is not None)
        odd = reference.bias_k is not None or reference.add_zero_attn
        odd = odd or isinstance(self.q_norm, RMSNorm)
        if (
            theirs != mine
            or odd
            or reference.in_proj_weight is None
            or self.n_kv_heads < self.n_heads
        ):
            raise ValueError(
                "reference must have the sizes of this module, (d_model, n_heads, bias) ="
                f" {mine}, one size of keys and no additional keys, got {reference} {theirs}"
            )
        maps = (self.q, self.k, self.v)
        with torch.no_grad():
            for own, weight in zip(maps, reference.in_proj_weight.chunk(3), strict=True):
                own.weight.copy_(weight)
            if reference.in_proj_bias is not None:
                for own, bias in zip(maps, reference.in_proj_bias.chunk(3), strict=True):
                    own.bias.copy_(bias)
        self.out.load_state_dict(reference.out_proj.state_dict())
        return self
