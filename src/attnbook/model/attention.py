"""Attention: the weighted sum of values that a query asks for, once or in many heads."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attnbook.checks import (
    check_flags,
    check_kind,
    check_mask,
    check_shapes,
    check_whole,
    numbers,
    transformed,
)
from attnbook.model.masks import causal_mask, masked_softmax
from attnbook.model.norms import RMSNorm
from attnbook.model.positions import ScorePositions
from attnbook.model.scores import Score

Kept = tuple[Tensor, ...]  # keys and values that are computed, and positions where a scheme asks
Cache = dict[nn.Module, Kept]  # of each attention of a model
STEPS = ("scores", "weights", "combine")


def attend(
    scores: Float[Tensor, "*batch key"],
    values: Float[Tensor, "*#batch key d_value"],
    mask: Bool[Tensor, "*#batch key"] | None = None,
) -> tuple[Float[Tensor, "*batch d_value"], Float[Tensor, "*batch key"]]:
    """Attention: a weighted sum of values, the weights being a softmax of a query's scores.

        out = sum_j alpha_j v_j,   alpha = softmax(scores)

    Args:
        scores: `[... key]` how well each key answers the query, any real numbers.
        values: `[... key d_value]` what is averaged, one value v_j a key, with as many dimensions
            in front as the scores, shaped to broadcast.
        mask: `[... key]` True = may attend, shaped to broadcast; None = all may be attended.

    Returns:
        out `[... d_value]`, of the same size however many values there are, and the weights alpha
        `[... key]`. A query that may attend to nothing gets zeros for both. What a masked value
        holds is not seen, not even NaN.

    Raises:
        ValueError: if scores, values and mask do not fit.

    Source: Bahdanau et al. 2015, equations 5 and 6.
    """
    check_kind(Tensor, scores=scores, values=values)
    if values.ndim != scores.ndim + 1:
        raise ValueError(
            "values must have one dimension more than scores, [... key] and [... key d_value], got"
            f" {list(values.shape)} for {list(scores.shape)}"
        )
    check_shapes(scores=(scores, "... key"), values=(values, "#... key d_value"))
    weights = masked_softmax(scores, mask)
    return combine(weights[..., None, :], values)[..., 0, :], weights


def combine(
    weights: Shaped[Tensor, "*batch query key"], values: Shaped[Tensor, "*#batch key d_value"]
) -> Shaped[Tensor, "*batch query d_value"]:
    """Sums of values by their weights; what has the weight 0 is not seen, not even NaN.

        out_i = sum_j alpha_ij v_j

    Args:
        weights: `[... query key]` alpha; whole numbers, as of `one_hot`, are taken as the values'
            type.
        values: `[... key d_value]`, shaped to broadcast.

    Raises:
        ValueError: if they do not fit.
    """
    check_shapes(weights=(weights, "... query key"), values=(values, "#... key d_value"))
    if not weights.is_floating_point():
        weights = weights.to(torch.promote_types(weights.dtype, values.dtype))
    values = values.to(weights.dtype)
    if finite(values):
        return weights @ values
    products = weights[..., None] * values[..., None, :, :]  # [... query key d_value]
    return torch.where(weights[..., None] == 0, 0.0, products).sum(-2)


def scaled_dots(
    q: Float[Tensor, "*batch query d_head"], k: Float[Tensor, "*batch key d_head"]
) -> Float[Tensor, "*batch query key"]:
    """Scores q k^T / sqrt(d_head), in float32 at least: half precision would overflow."""
    check_shapes(q=(q, "... query d_head"), k=(k, "#... key d_head"))
    dtype = torch.promote_types(q.dtype, torch.float32)
    with uncast(q):
        return (q.to(dtype) / q.shape[-1] ** 0.5) @ k.to(dtype).mT


def uncast(x: Tensor) -> AbstractContextManager[Any]:
    """A context in which autocast does not lower the precision of products.

    Args:
        x: a tensor on the device that computes them.
    """
    kind = x.device.type
    known = torch.amp.is_autocast_available(kind)
    return torch.autocast(kind, enabled=False) if known else nullcontext()


def finite(*tensors: Tensor) -> bool:
    """Whether no number is NaN or infinite, so that 0 times each is 0.

    Where code can't branch on numbers, that is taken for granted: in a graph that is compiled or
    exported, and inside `torch.func.vmap`.

    Args:
        tensors: they may have any shapes.
    """
    if torch.compiler.is_compiling():
        return True
    totals = [t.detach().sum(dtype=torch.promote_types(t.dtype, torch.float32)) for t in tensors]
    found = numbers(sum(totals[1:], totals[0]))
    return found is None or isfinite(found[0])


def fused_attention(
    q: Float[Tensor, "batch head query d_head"],
    k: Float[Tensor, "batch kv_head key d_head"],
    v: Float[Tensor, "batch kv_head key d_head"],
    mask: Bool[Tensor, "#batch 1 #query key"] | None = None,
    causal: bool = False,
    bias: Float[Tensor, "#batch #head query key"] | None = None,
) -> Float[Tensor, "batch head query d_head"]:
    """The three steps of `MultiHeadAttention` in one of PyTorch's kernels.

    Args:
        q: `[batch head query d_head]`.
        k, v: `[batch kv_head key d_head]`; the number of their heads divides that of the queries.
        mask: `[batch 1 query key]` True = may attend; None with `causal`.
        causal: each query may attend only to its own key and those before it.
        bias: `[batch head query key]` added to the scores. Where its type is wider than that of q,
            attention is computed in the wider one.
    """
    if bias is not None:
        if causal:
            mask, causal = causal_mask(q.shape[2]).to(q.device)[None, None], False
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    # While a trace is made, sizes are tensors.
    options: dict[str, Any] = {"is_causal": causal, "enable_gqa": bool(k.shape[1] < q.shape[1])}
    if bias is None or bias.dtype == q.dtype:
        return scaled_dot_product_attention(q, k, v, mask, **options)
    with uncast(q):  # in the precision of the bias
        wide_q, wide_k, wide_v = (t.to(bias.dtype) for t in (q, k, v))
        out = scaled_dot_product_attention(wide_q, wide_k, wide_v, mask, **options)
        return out.to(q.dtype)


def _with_causal(
    mask: Tensor | None, causal: bool, x: Tensor, n_past: int
) -> tuple[Tensor | None, bool]:
    """The mask with the causal one in it; `causal` alone stays where a kernel needs no mask."""
    n = x.shape[1]
    if not causal or n == 1:  # nothing comes after a single query
        return mask, False
    if mask is None and not n_past:
        return None, True
    before = causal_mask(n, n_past).to(x.device)[None]
    return before if mask is None else mask & before, False


class Attention(nn.Module):
    """What every attention has: steps that can be replaced one at a time, and a way to watch it.

        out = combine(weights(scores(queries, keys), mask), values)

    A subclass computes the scores. `recorded` sees what `weights` gives.
    """

    def __init__(self) -> None:
        super().__init__()
        self.record: Callable[[Tensor], None] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in STEPS and isinstance(value, nn.Module):  # it would be put where no one looks
            raise ValueError(f"{name} must be a function or a subclass's method, got {value!r}")
        super().__setattr__(name, value)

    def weights(
        self,
        scores: Float[Tensor, "*batch query key"],
        mask: Bool[Tensor, "*#batch #query key"] | None,
    ) -> Float[Tensor, "*batch query key"]:
        """Scores to weights: a softmax over the keys that may be attended."""
        return masked_softmax(scores, mask)

    def combine(
        self,
        weights: Float[Tensor, "*batch query key"],
        values: Float[Tensor, "*batch key d_value"],
    ) -> Float[Tensor, "*batch query d_value"]:
        """Weights and values to what each query gets."""
        return combine(weights, values)


class ScoredAttention(Attention):
    """One query a sentence asks all keys by a score function; the keys are the values too.

        out = sum_j alpha_j h_j,   alpha = softmax_j score(s, h_j)

    with s the query and h_j the keys.

    Args:
        score: a score function of `attnbook.model.scores`.

    Raises:
        ValueError: if the score is no `Score`; in `forward`, if keys, scores and mask do not fit.

    Source: Bahdanau et al. 2015, section 3.1; Luong et al. 2015, section 3.1.
    """

    def __init__(self, score: Score):
        super().__init__()
        if not isinstance(score, Score):
            raise ValueError(f"score must be a Score of attnbook.model.scores, got {score!r}")
        self.score = score

    def prepare(self, keys: Float[Tensor, "batch key d_key"]) -> Tensor:
        """What the score needs of the keys, whatever the query: computed once a sentence."""
        return self.score.prepare(keys)

    def scores(
        self, query: Float[Tensor, "batch d_query"], prepared: Tensor
    ) -> Float[Tensor, "batch 1 key"]:
        """Query and prepared keys to scores."""
        return self.score(query, prepared)[:, None]

    def forward(
        self,
        query: Float[Tensor, "batch d_query"],
        keys: Float[Tensor, "batch key d_key"],
        prepared: Tensor,
        mask: Bool[Tensor, "batch key"] | None = None,
    ) -> Float[Tensor, "batch d_key"]:
        """The context of each query.

        Args:
            query: `[batch d_query]`.
            keys: `[batch key d_key]`, which are the values too.
            prepared: what `prepare` made of the keys.
            mask: `[batch key]` True = may attend; None: all may be attended.
        """
        scores = self.scores(query, prepared)
        check_shapes(keys=(keys, "batch key d_key"), scores=(scores, "batch 1 key"))
        weights = self.weights(scores, None if mask is None else mask[:, None])
        if self.record is not None:
            self.record(weights)
        return self.combine(weights, keys)[:, 0]


class MultiHeadAttention(Attention):
    """Several attentions side by side, each in a small space of its own, joined by a linear map.

        q_l = x W_l^Q,   k_l = m W_l^K,   v_l = m W_l^V          for each head l = 1 .. n_heads
        out = [head_1 ... head_h] W^O,   head_l = softmax(q_l k_l^T / sqrt(d_head)) v_l

    where x `[query d_model]` are the vectors that ask and m `[key d_model]` those that are asked:
    x itself (self-attention) or a memory (cross-attention). W_l^Q, W_l^K, W_l^V are
    `[d_model d_head]` and W^O is `[n_heads*d_head d_model]`. The maps of all heads lie side by side
    in `q`, `k`, `v`; `out` is W^O.

    The steps `scores`, `weights` and `combine` can be replaced one at a time. Where they are the
    class's own and nobody records the weights, PyTorch's fused attention does their work at once.

    Args:
        d_model: size of the vectors.
        n_heads: number of heads.
        d_head: size of a head's queries, keys and values. None: d_model / n_heads.
        n_kv_heads: number of heads of keys and values; each serves `n_heads / n_kv_heads` heads of
            queries. None: as many as `n_heads`.
        bias: whether the four maps have a bias.
        positions: what positions change in queries, keys or scores; None: nothing.
        qk_norm: whether each head's queries and keys are normalised by an `RMSNorm`, before
            positions and scores, with a gain that all heads share.
        norm_eps: eps of that norm.

    Raises:
        ValueError: if a size is below 1, n_heads does not divide d_model and d_head is not given,
            n_kv_heads does not divide n_heads, or a flag is not True or False; in `forward`, if a
            vector is not of size d_model, if a mask is not boolean with three dimensions and one
            column for each key, if `positions` or `causal` meets a memory, or positions, scheme or
            cache do not fit.

    Source: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 (fewer heads of keys);
    `qk_norm` as in Qwen 3; in Henry et al. 2020, whose idea it is, vectors of length 1 and one
    learnt number stand in place of the root.

    In other libraries: `torch.nn.MultiheadAttention`, whose boolean masks are the reverse;
    `BertSelfAttention` with `BertSelfOutput.dense`, `LlamaAttention` (`q_proj`, .., `o_proj`).
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_head: int | None = None,
        n_kv_heads: int | None = None,
        bias: bool = True,
        positions: ScorePositions | None = None,
        qk_norm: bool = False,
        norm_eps: float = 1e-5,
    ):
        super().__init__()
        check_flags(bias=bias, qk_norm=qk_norm)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        check_whole(1, d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
        if d_head is None and d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, {d_model}, got {n_heads}")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_kv_heads must divide n_heads, {n_heads}, got {n_kv_heads}")
        d_head = d_model // n_heads if d_head is None else d_head
        check_whole(1, d_head=d_head)
        if not isinstance(positions, ScorePositions | None):
            raise ValueError(f"positions must be ScorePositions or None, got {positions!r}")
        self.d_model, self.d_head = d_model, d_head
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.q = nn.Linear(d_model, n_heads * d_head, bias)
        self.k = nn.Linear(d_model, n_kv_heads * d_head, bias)
        self.v = nn.Linear(d_model, n_kv_heads * d_head, bias)
        self.out = nn.Linear(n_heads * d_head, d_model, bias)
        self.positions = positions
        self.q_norm = RMSNorm(d_head, norm_eps) if qk_norm else None
        self.k_norm = RMSNorm(d_head, norm_eps) if qk_norm else None

    def scores(
        self,
        q: Float[Tensor, "batch head query d_head"],
        k: Float[Tensor, "batch head key d_head"],
        bias: Float[Tensor, "#batch #head query key"] | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """Queries and keys to scores, q k^T / sqrt(d_head) + bias."""
        scores = scaled_dots(q, k)
        return scores if bias is None else scores + bias

    def forward(
        self,
        x: Float[Tensor, "batch query d_x"],
        memory: Float[Tensor, "batch key d_memory"] | None = None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        positions: Int[Tensor, "#batch query"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend from x to the memory, or to x itself.

        Args:
            x: `[batch query d_model]` the vectors that ask.
            memory: `[batch key d_model]` the vectors that are asked; None: x.
            mask: `[batch query key]`, or with 1 for batch or query: True = may attend. For padding,
                `padding_mask(tokens, pad)[:, None]`.
            causal: each vector may attend only to itself and those before it, in addition to
                `mask`.
            positions: `[batch query]` where the vectors of x stand; None: one after another, after
                those in the cache.
            cache: keys and values of earlier calls. Those of x are put behind them, and all are
                attended, so that `mask` counts them too; those of a memory are computed once, for
                all later masks: so NaN in what a mask hides reaches the gradients, if not the
                outputs.

        Returns:
            `[batch query d_model]`. A query that may attend to nothing gets zeros from every head.
            A key that no query may attend to is not seen at all, nor is what a query may not
            attend to, not even NaN.
        """
        q, k, v, mask, causal, bias = self._prepare(x, memory, mask, causal, positions, cache)
        if self._is_fused(k, v, masked=causal or mask is not None):
            heads = fused_attention(q, k, v, mask, causal, bias)
        else:
            if causal:
                mask = causal_mask(q.shape[2]).to(q.device)[None, None]
            k, v = (t.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1) for t in (k, v))
            weights = self.weights(self.scores(q, k, bias), mask)
            if self.record is not None:
                self.record(weights)
            heads = self.combine(weights, v).to(q.dtype)
        return self.out(heads.transpose(1, 2).flatten(2))

    def _prepare(
        self,
        x: Tensor,
        memory: Tensor | None,
        mask: Tensor | None,
        causal: bool,
        positions: Tensor | None,
        cache: Cache | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, bool, Tensor | None]:
        """Check the arguments of `forward`, and compute what the heads attend with.

        Returns:
            q `[batch head query d_head]`, k and v `[batch kv_head key d_head]` with those of the
            cache in front, the mask `[batch 1 query key]`, whether the attention is causal without
            a mask, and the bias of the scores.
        """
        past = None if cache is None else cache.get(self)
        n_past = self._check(x, memory, mask, causal, positions, past)
        origin = x if memory is None else memory
        mask, causal = _with_causal(mask, causal, x, n_past)
        if positions is None:
            positions = torch.arange(n_past, n_past + origin.shape[1], device=x.device)[None]
        q = self._split(self.q(x), self.q_norm)
        if self.positions is not None:
            positions = positions.expand(x.shape[0], -1)
            q = self.positions.rotate(q, positions)
        if mask is not None and cache is None:  # what nobody sees has no gradient, even of NaN
            origin = origin.masked_fill(~mask.any(1)[:, :, None], 0.0)
        if past is None or memory is None:
            past = self._keys(origin, positions, past)
        if cache is not None:
            cache[self] = past
        k, v, *places = past
        bias = None if self.positions is None else self.positions.bias(q, positions, *places)
        return q, k, v, None if mask is None else mask[:, None], causal, bias

    def _check(
        self,
        x: Tensor,
        memory: Tensor | None,
        mask: Tensor | None,
        causal: bool,
        positions: Tensor | None,
        past: Kept | None,
    ) -> int:
        """Check the arguments of `forward`; returns the number of keys in the cache before x."""
        check_flags(causal=causal)
        if memory is not None and (causal or self.positions or positions is not None):
            raise ValueError("memory must be None with causal or positions: they compare x with x")
        origin = x if memory is None else memory
        check_kind(Tensor, x=x, memory=origin)
        shapes = {"x": (x, "batch query d_model"), "memory": (origin, "batch key d_model")}
        n_past = 0
        if past is not None:
            kept = "batch head past d_head" if memory is None else "batch head key d_head"
            shapes["cache"] = (past[0], kept)
            n_past = past[0].shape[2] if memory is None else 0
        check_shapes(**shapes, d_model=self.d_model)
        sizes = {"batch": x.shape[0], "query": x.shape[1], "key": n_past + origin.shape[1]}
        if mask is not None:
            check_mask(mask, mask=(mask, "#batch #query key"), **sizes)
        if positions is not None:
            check_shapes(positions=(positions, "#batch query"), **sizes)
        return n_past

    def _split(self, x: Tensor, norm: nn.Module | None = None) -> Tensor:
        heads = x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)  # [batch head token d_head]
        return heads if norm is None else norm(heads)

    def _keys(self, origin: Tensor, positions: Tensor, past: Kept | None) -> Kept:
        """Keys, values and positions of vectors, behind those of the past."""
        k, v = self._split(self.k(origin), self.k_norm), self._split(self.v(origin))
        new = k, v
        if self.positions is not None:
            new = self.positions.rotate(k, positions), v, positions
        if past is None:
            return new
        return tuple(torch.cat(pair, dim) for *pair, dim in zip(past, new, (2, 2, 1), strict=False))

    def _is_fused(self, k: Tensor, v: Tensor, *, masked: bool) -> bool:
        """Whether PyTorch's fused attention computes the same as the three steps."""
        return not (
            self.record is not None
            or any(map(self._is_replaced, STEPS))
            or transformed()
            or (masked and not finite(k, v))
        )

    def _is_replaced(self, step: str) -> bool:
        own = getattr(type(self), step) is getattr(MultiHeadAttention, step)
        return step in vars(self) or not own

    def load_torch(self, reference: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy the weights of PyTorch's module of the same sizes, not its dropout; returns self.

        Raises:
            ValueError: if the module has other sizes, a bias where this one has none, keys of
                another size, or additional keys; or this one has positions or norms of queries.
        """
        theirs = (reference.embed_dim, reference.num_heads, reference.in_proj_bias is not None)
        mine = (self.d_model, self.n_heads, self.q.bias is not None)
        plain = self.n_kv_heads == self.n_heads and self.n_heads * self.d_head == self.d_model
        plain = plain and self.q_norm is None and self.positions is None
        plain = plain and reference.bias_k is None and not reference.add_zero_attn
        if theirs != mine or not plain or reference.in_proj_weight is None:
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
