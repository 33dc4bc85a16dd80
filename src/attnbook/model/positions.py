"""Where a token stands: vectors added to its embedding, or a change inside attention."""

from functools import lru_cache
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnbook.checks import (
    check_choice,
    check_mask,
    check_positive,
    check_range,
    check_shapes,
    check_whole,
    numbers,
)

FEW = 64  # positions at once that are remembered
Pairing = Literal["half", "interleaved"]


def sinusoidal(n: int, d_model: int, base: float = 10000.0) -> Float[Tensor, "n d_model"]:
    """Position vectors made of sine and cosine waves, from fast to slow.

        p_(i, 2m) = sin(i / base^(2m / d)),   p_(i, 2m+1) = cos(i / base^(2m / d))

    Args:
        n: number of positions i = 0 .. n - 1.
        d_model: size d of a vector; even, since each of the d/2 waves m takes two numbers.
        base: the wavelengths are 2 pi base^(2m/d) positions: from 2 pi to nearly 2 pi base.

    Raises:
        ValueError: if n is negative, d_model is odd, or base is not above 0.

    Source: Vaswani et al. 2017, section 3.5.
    """
    check_whole(0, n=n)
    return _waves(torch.arange(n), d_model, base)


def _waves(
    positions: Int[Tensor, "*batch n"], d_model: int, base: float = 10000.0
) -> Float[Tensor, "*batch n d_model"]:
    angles = _angles(positions, d_model, base, torch.float32)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def _check_wave(size: int, base: float, name: str) -> None:
    check_whole(2, **{name: size})
    if size % 2:
        raise ValueError(f"{name} must be even, two numbers for each wave, got {size}")
    check_positive(base=base)


def _angles(
    positions: Int[Tensor, "*batch n"], size: int, base: float, dtype: torch.dtype
) -> Float[Tensor, "*batch n half"]:
    """i / base^(2m/size) for positions i and waves m."""
    _check_wave(size, base, "d_model")
    speed = base ** -(torch.arange(0, size, 2, dtype=dtype, device=positions.device) / size)
    return positions[..., None].to(dtype) * speed


def positions_of(mask: Bool[Tensor, "batch token"]) -> Int[Tensor, "batch token"]:
    """The position of each token when padding does not count: 0 for the first word.

    Args:
        mask: `[batch token]` True at words, False at padding, which may stand on either side.

    In other libraries: `position_ids` of `transformers`.
    """
    check_mask(mask, mask=(mask, "batch token"))
    return (mask.cumsum(-1) - 1).clamp(min=0)


class SinusoidalPositions(nn.Module):
    """Adds the sinusoidal position vectors to a sentence of any length.

        out_i = x_i + p_i

    Raises:
        ValueError: in `forward`, if the vectors are of odd size, or positions do not fit.

    Source: Vaswani et al. 2017, section 3.5.

    In other libraries: `MarianSinusoidalPositionalEmbedding` of `transformers`, which has all sines
    before all cosines.
    """

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        positions: Int[Tensor, "#batch token"] | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """x `[batch token d_model]` with the vectors of its positions, 0, 1, .. by default."""
        n = check_shapes(x=(x, "batch token d_model"))["token"]
        if positions is None:
            positions = torch.arange(n, device=x.device)[None]
        check_shapes(positions=(positions, "#batch token"), batch=x.shape[0], token=n)
        return x + _waves(positions, x.shape[2]).to(x)


class LearnedPositions(nn.Module):
    """Adds a trained vector for each position.

        out_i = x_i + P_i

    Args:
        max_len: number of positions that have a vector; P is `[max_len d_model]`.
        d_model: size of the vectors.

    Raises:
        ValueError: if a size is below 1; in `forward`, if x has vectors of another size, or a
            position has no vector.

    Source: Gehring et al. 2017, section 3.1; Vaswani et al. 2017, table 3, row E.

    In other libraries: `wpe` of GPT-2, `position_embeddings` of BERT.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        check_whole(1, max_len=max_len, d_model=d_model)
        self.embedding = nn.Embedding(max_len, d_model)

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        positions: Int[Tensor, "#batch token"] | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """x `[batch token d_model]` with the vectors of its positions, 0, 1, .. by default."""
        max_len, d_model = self.embedding.weight.shape
        n = check_shapes(x=(x, "batch token d_model"), d_model=d_model)["token"]
        if positions is None and n > max_len:
            raise ValueError(f"x must have at most {max_len} tokens, got {n}")
        if positions is None:
            return x + self.embedding.weight[:n]
        check_shapes(positions=(positions, "#batch token"), batch=x.shape[0], token=n)
        for place in (numbers(*positions.aminmax()) if n else None) or ():
            check_range(0, max_len - 1, positions=place)
        return x + self.embedding(positions)


class ScorePositions(nn.Module):
    """What a scheme of positions may change inside attention; by itself it changes nothing."""

    def rotate(
        self, x: Float[Tensor, "batch head n d_head"], positions: Int[Tensor, "#batch n"]
    ) -> Float[Tensor, "batch head n d_head"]:
        """Queries or keys, changed by their own positions."""
        return x

    def bias(
        self,
        q: Float[Tensor, "batch head query d_head"],
        positions: Int[Tensor, "#batch query"],
        key_positions: Int[Tensor, "#batch key"],
    ) -> Float[Tensor, "#batch head query key"] | None:
        """What is added to the scaled scores of each pair of positions, or None."""
        return None

    @staticmethod
    def _check(q: Tensor, positions: Tensor, key_positions: Tensor, **sizes: int) -> None:
        shapes = {
            "positions": (positions, "#batch query"),
            "key_positions": (key_positions, "#batch key"),
        }
        check_shapes(q=(q, "batch n_heads query d_head"), **shapes, **sizes)


Turn = tuple[Tensor, Tensor]  # cosines and sines of angles


def _turn(positions: Tensor, size: int, base: float, dtype: torch.dtype) -> Turn:
    """Cosines and sines at some positions, computed once for all layers of a generation step."""
    few = positions.device.type == "cpu" and positions.numel() <= FEW
    if not few or (places := numbers(positions.flatten())) is None:
        return _computed(positions, size, base, dtype)
    return _remembered(tuple(places[0]), positions.shape, size, base, dtype)


def _computed(positions: Tensor, size: int, base: float, dtype: torch.dtype) -> Turn:
    angles = _angles(positions, size, base, dtype)
    return angles.cos(), angles.sin()


@lru_cache(maxsize=64)
def _remembered(places: tuple[int, ...], shape: torch.Size, *rest: Any) -> Turn:
    with torch.inference_mode(False):  # training may ask for them, too
        return _computed(torch.tensor(places).view(shape), *rest)


class Rotary(ScorePositions):
    """Rotary position embedding (RoPE): each pair of numbers is turned by an angle that grows.

        (a, b) -> (a cos t - b sin t, a sin t + b cos t),   t = i / base^(2m / d_head)

    for the pair m = 0 .. d_head/2 - 1 of a query or key at position i. With R_i for this turn,
    (R_i q) . (R_j k) = q . R_(j-i) k: the inner product depends on the distance alone.

    Args:
        d_head: size of queries and keys, even.
        base: as in `sinusoidal`.
        pairing: which two numbers form pair m: "half", m and m + d_head/2 (GPT-NeoX, and Llama as
            `transformers` stores it), or "interleaved", 2m and 2m + 1 (the paper, GPT-J, and Llama
            as its authors do). Weights trained with one do not fit the other unless the columns of
            W_Q and W_K are put in its order.

    Raises:
        ValueError: if d_head is odd, base is not above 0, the pairing is another word; in
            `forward`, if a vector has another size or is not of floating point.

    Source: Su et al. 2021, section 3.2.2.

    In other libraries: base is `rope_theta` of `transformers`.
    """

    def __init__(self, d_head: int, base: float = 10000.0, pairing: Pairing = "half"):
        super().__init__()
        check_choice(get_args(Pairing), pairing=pairing)
        _check_wave(d_head, base, "d_head")
        self.d_head, self.base, self.pairing = d_head, base, pairing

    def forward(
        self,
        x: Float[Tensor, "*batch n d_head"],
        positions: Int[Tensor, "*#batch n"] | None = None,
    ) -> Float[Tensor, "*batch n d_head"]:
        """Turn vectors `[... n d_head]` that stand at `positions`, by default 0 .. n - 1."""
        if positions is None:
            n = check_shapes(x=(x, "... n d_head"), d_head=self.d_head)["n"]
            positions = torch.arange(n, device=x.device)
        else:
            shapes = {"x": (x, "... n d_head"), "positions": (positions, "#... n")}
            check_shapes(**shapes, d_head=self.d_head)
        if not x.is_floating_point():
            raise ValueError(f"x must be of floating point, got {x.dtype}")
        dtype = torch.promote_types(x.dtype, torch.float32)  # half precision has too few positions
        cos, sin = (t.to(x) for t in _turn(positions, self.d_head, self.base, dtype))
        if self.pairing == "half":
            a, b = x.chunk(2, dim=-1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)

    def rotate(
        self, x: Float[Tensor, "batch head n d_head"], positions: Int[Tensor, "#batch n"]
    ) -> Float[Tensor, "batch head n d_head"]:
        """Queries or keys, each turned by its position."""
        return self(x, positions[:, None])


class RelativePositions(ScorePositions):
    """Relative positions (Shaw): a trained vector for each distance, up to a largest one.

        score_ij = q_i . (k_j + a_r) / sqrt(d_head),   r = clip(j - i, -max_distance, max_distance)

    The vectors a `[2 max_distance + 1, d_head]` serve all heads. The paper also adds vectors to the
    values, and finds that this changes nothing (its table 3): here keys alone have them.

    Args:
        d_head: size of queries and keys.
        max_distance: distances beyond it share a vector.

    Raises:
        ValueError: if d_head is below 1 or max_distance negative, or a query is not of size d_head.

    Source: Shaw et al. 2018, equations 2 and 4.

    In other libraries: `position_embedding_type="relative_key"` of BERT in `transformers` 4.
    """

    def __init__(self, d_head: int, max_distance: int):
        super().__init__()
        check_whole(1, d_head=d_head)
        check_whole(0, max_distance=max_distance)
        self.max_distance = max_distance
        self.a = nn.Parameter(torch.randn(2 * max_distance + 1, d_head) * d_head**-0.5)

    def distance(
        self, positions: Int[Tensor, "#batch query 1"], key_positions: Int[Tensor, "#batch 1 key"]
    ) -> Int[Tensor, "#batch query key"]:
        """How far a key is from a query: j - i. Override it for positions that are no line."""
        return key_positions - positions

    def bias(
        self,
        q: Float[Tensor, "batch head query d_head"],
        positions: Int[Tensor, "#batch query"],
        key_positions: Int[Tensor, "#batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """q_i . a_r / sqrt(d_head), computed once for each r and then looked up."""
        d_head = self.a.shape[1]
        self._check(q, positions, key_positions, d_head=d_head)
        r = self.distance(positions[:, :, None], key_positions[:, None])
        r = r.clamp(-self.max_distance, self.max_distance) + self.max_distance
        each = (q / d_head**0.5) @ self.a.T  # [batch head query r]
        return each.gather(-1, r[:, None].expand(*each.shape[:-1], -1))


class Alibi(ScorePositions):
    """Attention with linear biases (ALiBi): the farther a key, the lower its score.

        score_ij = q_i . k_j / sqrt(d_head) - slope_l |i - j|,   slope_l = 2^(-8 l / n_heads)

    for head l = 1 .. n_heads. Nothing is trained. If n_heads is no power of two, the slopes are
    those of the power below, then every second one of the power above.

    Args:
        n_heads: number of heads.

    Raises:
        ValueError: if n_heads is below 1, or the attention has another number of heads.

    Source: Press et al. 2022, section 3.

    In other libraries: `build_alibi_tensor` of BLOOM in `transformers`.
    """

    slopes: Tensor

    def __init__(self, n_heads: int):
        super().__init__()
        check_whole(1, n_heads=n_heads)
        below = 1 << (int(n_heads).bit_length() - 1)
        steps = [8 * (i + 1) / below for i in range(below)]
        steps += [4 * (2 * i + 1) / below for i in range(n_heads - below)]
        self.register_buffer("slopes", 2.0 ** -torch.tensor(steps), persistent=False)

    def bias(
        self,
        q: Float[Tensor, "batch head query d_head"],
        positions: Int[Tensor, "#batch query"],
        key_positions: Int[Tensor, "#batch key"],
    ) -> Float[Tensor, "#batch head query key"]:
        """- slope_l |i - j|; far keys stay apart in half precision too, since it is in float32."""
        self._check(q, positions, key_positions, n_heads=len(self.slopes))
        far = (key_positions[:, None] - positions[:, :, None]).abs()
        dtype = torch.promote_types(q.dtype, torch.float32)
        return -self.slopes[:, None, None].to(dtype) * far[:, None]


def tree_distance(parents: list[int]) -> Int[Tensor, "n n"]:
    """Number of edges between any two words of a dependency tree.

    Args:
        parents: for each word the index of the word that it depends on, -1 for the root.

    Raises:
        ValueError: if there is not exactly one root, or the words do not form one tree.

    Source: Wang et al. 2019, section 3.
    """
    n = len(parents)
    if parents.count(-1) != 1 or not all(-1 <= parent < n for parent in parents):
        raise ValueError(f"parents must be indices of {n} words and -1 exactly once, got {parents}")
    distance = torch.full((n, n), n)
    distance.fill_diagonal_(0)
    for word, parent in enumerate(parents):
        if parent >= 0:
            distance[word, parent] = distance[parent, word] = 1
    for k in range(n):  # Floyd and Warshall: is the way through word k shorter?
        distance = torch.minimum(distance, distance[:, k, None] + distance[k])
    if (distance == n).any():
        raise ValueError(f"parents must form one tree, got {parents}")
    return distance
