"""Where a token stands: vectors added to its embedding, or a change inside attention."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoidal(n: int, d_model: int, base: float = 10000.0) -> Float[Tensor, "n d_model"]:
    """Position vectors made of sine and cosine waves, from fast to slow.

        p_(i, 2m) = sin(i / base^(2m / d)),   p_(i, 2m+1) = cos(i / base^(2m / d))

    Args:
        n: number of positions i = 0 .. n - 1.
        d_model: size d of a vector; even, since each of the d/2 waves m takes two numbers.
        base: the wavelengths are 2 pi base^(2m/d) positions: from 2 pi to nearly 2 pi base.

    Raises:
        ValueError: if d_model is odd.

    Source: Vaswani et al. 2017, section 3.5.
    """
    angles = _angles(n, d_model, base, torch.float32)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def _angles(n: int, size: int, base: float, dtype: torch.dtype) -> Float[Tensor, "n half"]:
    """i / base^(2m/size) for positions i and waves m."""
    if size % 2:
        raise ValueError(f"size of a vector must be even, two numbers for each wave, got {size}")
    speed = base ** -(torch.arange(0, size, 2, dtype=dtype) / size)
    return torch.arange(n, dtype=dtype)[:, None] * speed


class SinusoidalPositions(nn.Module):
    """Adds the sinusoidal position vectors to a sentence of any length.

        out_i = x_i + p_i

    Raises:
        ValueError: in `forward`, if the vectors are of odd size.

    Source: Vaswani et al. 2017, section 3.5.
    """

    def forward(
        self, x: Float[Tensor, "batch token d_model"]
    ) -> Float[Tensor, "batch token d_model"]:
        """x `[batch token d_model]` with `sinusoidal` vectors added; d_model must be even."""
        return x + sinusoidal(x.shape[1], x.shape[2]).to(x)


class LearnedPositions(nn.Module):
    """Adds a trained vector for each position.

        out_i = x_i + P_i

    Args:
        max_len: number of positions that have a vector; P is `[max_len d_model]`.
        d_model: size of the vectors.

    Raises:
        ValueError: in `forward`, if a sentence is longer than `max_len`: there is no vector there.

    Source: Gehring et al. 2017, section 3.1; Vaswani et al. 2017, table 3, row E.
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(max_len, d_model)

    def forward(
        self, x: Float[Tensor, "batch token d_model"]
    ) -> Float[Tensor, "batch token d_model"]:
        """x `[batch token d_model]` with the vectors of the first positions added."""
        n, max_len = x.shape[1], self.embedding.num_embeddings
        if n > max_len:
            raise ValueError(f"x must have at most {max_len} tokens, those with a vector, got {n}")
        return x + self.embedding.weight[:n]


class ScorePositions(nn.Module):
    """What a scheme of positions may change inside attention; by itself it changes nothing."""

    def rotate(
        self, q: Float[Tensor, "batch head n d_head"], k: Float[Tensor, "batch kv_head n d_head"]
    ) -> tuple[Float[Tensor, "batch head n d_head"], Float[Tensor, "batch kv_head n d_head"]]:
        """Queries and keys, changed by their own positions."""
        return q, k

    def bias(
        self, q: Float[Tensor, "batch head n d_head"], k: Float[Tensor, "batch kv_head n d_head"]
    ) -> Float[Tensor, "#batch head n n"] | None:
        """What is added to the scaled scores of each pair of positions, or None."""
        return None


class Rotary(ScorePositions):
    """Rotary position embedding (RoPE): each pair of numbers is turned by an angle that grows.

        (a, b) -> (a cos t - b sin t, a sin t + b cos t),   t = i / base^(2m / d_head)

    for the pair m = 0 .. d_head/2 - 1 of a query or key at position i. Turning q by i and k by j
    leaves an inner product that depends on i - j alone.

    Args:
        d_head: size of queries and keys, even.
        base: as in `sinusoidal`.
        pairing: which two numbers form pair m: "half", m and m + d_head/2 (Llama, GPT-NeoX), or
            "interleaved", 2m and 2m + 1 (the paper, GPT-J). Weights trained with one do not fit
            the other unless their columns are put in its order.

    Raises:
        ValueError: if d_head is odd, the pairing is another word, or a vector has another size.

    Source: Su et al. 2021, section 3.2.2.
    """

    def __init__(
        self,
        d_head: int,
        base: float = 10000.0,
        pairing: str = "half",
    ):
        super().__init__()
        if pairing not in ("half", "interleaved"):
            raise ValueError(f"pairing must be 'half' or 'interleaved', got {pairing!r}")
        if d_head % 2:
            raise ValueError(f"d_head must be even, two numbers for each pair, got {d_head}")
        self.d_head, self.base, self.pairing = d_head, base, pairing

    def forward(
        self, x: Float[Tensor, "*batch n d_head"], start: int = 0
    ) -> Float[Tensor, "*batch n d_head"]:
        """Turn vectors `[... n d_head]` that stand at positions start .. start + n - 1."""
        if x.shape[-1] != self.d_head:
            raise ValueError(f"x must be of size {self.d_head}, got {x.shape[-1]}")
        dtype = torch.promote_types(x.dtype, torch.float32)  # half precision has too few positions
        angles = _angles(start + x.shape[-2], self.d_head, self.base, dtype)[start:]
        cos, sin = angles.cos().to(x), angles.sin().to(x)
        if self.pairing == "half":
            a, b = x.chunk(2, dim=-1)
            return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)

    def rotate(
        self, q: Float[Tensor, "batch head n d_head"], k: Float[Tensor, "batch kv_head n d_head"]
    ) -> tuple[Float[Tensor, "batch head n d_head"], Float[Tensor, "batch kv_head n d_head"]]:
        """Queries and keys, each turned by its position."""
        return self(q), self(k)


class RelativePositions(ScorePositions):
    """Relative positions (Shaw): a trained vector for each distance, up to a largest one.

        score_ij = q_i . (k_j + a_r) / sqrt(d_head),   r = clip(j - i, -max_distance, max_distance)

    The vectors a `[2 max_distance + 1, d_head]` serve all heads. The paper also adds vectors to the
    values, and finds that this changes nothing (its table 3): here keys alone have them.

    Args:
        d_head: size of queries and keys.
        max_distance: distances beyond it share a vector.

    Raises:
        ValueError: if max_distance is negative, or a query is not of size d_head.

    Source: Shaw et al. 2018, equations 2 and 4.
    """

    def __init__(self, d_head: int, max_distance: int):
        super().__init__()
        if max_distance < 0:
            raise ValueError(f"max_distance must be at least 0, got {max_distance}")
        self.max_distance = max_distance
        self.a = nn.Parameter(torch.randn(2 * max_distance + 1, d_head) * d_head**-0.5)

    def distance(self, n: int) -> Int[Tensor, "n n"]:
        """How far key j is from query i: j - i. Override it for positions that are no line."""
        i = torch.arange(n)
        return i - i[:, None]

    def bias(
        self, q: Float[Tensor, "batch head n d_head"], k: Float[Tensor, "batch kv_head n d_head"]
    ) -> Float[Tensor, "batch head n n"]:
        """q_i . a_r / sqrt(d_head), computed once for each r and then looked up."""
        n, d_head = q.shape[-2:]
        if d_head != self.a.shape[1]:
            raise ValueError(f"q must be of size {self.a.shape[1]}, got {d_head}")
        r = self.distance(n).clamp(-self.max_distance, self.max_distance) + self.max_distance
        each = q @ self.a.T / d_head**0.5  # [batch head n r]
        return each.gather(-1, r.to(q.device).expand(*each.shape[:-1], n))


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
    """

    slopes: Tensor

    def __init__(self, n_heads: int):
        super().__init__()
        if n_heads < 1:
            raise ValueError(f"n_heads must be at least 1, got {n_heads}")
        below = 1 << (n_heads.bit_length() - 1)
        steps = [8 * (i + 1) / below for i in range(below)]
        steps += [4 * (2 * i + 1) / below for i in range(n_heads - below)]
        self.register_buffer("slopes", 2.0 ** -torch.tensor(steps), persistent=False)

    def bias(
        self, q: Float[Tensor, "batch head n d_head"], k: Float[Tensor, "batch kv_head n d_head"]
    ) -> Float[Tensor, "1 head n n"]:
        """- slope_l |i - j|, the same for every sentence."""
        if q.shape[1] != len(self.slopes):
            raise ValueError(f"q must have {len(self.slopes)} heads, got {q.shape[1]}")
        i = torch.arange(q.shape[-2], device=q.device)
        return (-self.slopes[:, None, None] * (i - i[:, None]).abs())[None].to(q)


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
