"""Normalisation of vectors: layer norm and its simpler form, root mean square.

Both compute with PyTorch's functions: for layer norm that is a fused kernel, several times faster
in training than the same equation in single steps. Chapter 6 writes it out, and the tests hold the
two equal.
"""

from math import inf

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attnbook.checks import check_flags, check_range, check_shapes, check_whole


class LayerNorm(nn.Module):
    """Each vector is moved to zero mean and scaled to unit standard deviation.

        out = gain * (x - mean) / sqrt(variance + eps) + bias
        mean = sum_i x_i / d,   variance = sum_i (x_i - mean)^2 / d

    with x, out, gain and bias `[d]`, and * elementwise. Gain starts at 1 and bias at 0; they are
    called `weight` and `bias`, as in `torch.nn.LayerNorm`, whose `state_dict` can be loaded.

    Args:
        d: size of the vectors.
        eps: keeps the root away from zero; in the unit of a variance.
        affine: whether there are a gain and a bias.

    Raises:
        ValueError: if d is below 1 or eps below 0; in `forward`, if the vectors are not of size d.

    Source: Ba et al. 2016, equation 4; eps as in PyTorch, inside the root.

    In other libraries: `torch.nn.LayerNorm`; gain and bias are gamma and beta in Keras.
    """

    def __init__(self, d: int, eps: float = 1e-5, *, affine: bool = True):
        super().__init__()
        check_whole(1, d=d)
        check_range(0, inf, eps=eps)
        check_flags(affine=affine)
        self.d, self.eps = d, eps
        self.weight = nn.Parameter(torch.ones(d)) if affine else None
        self.bias = nn.Parameter(torch.zeros(d)) if affine else None

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Vectors `[... d]`, each normalised by itself."""
        check_shapes(x=(x, "... d"), d=self.d)
        return functional.layer_norm(x, (self.d,), self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """Each vector is divided by its root mean square; its mean stays.

        out = gain * x / sqrt(sum_i x_i^2 / d + eps)

    with x, out and gain `[d]`, and * elementwise. The gain starts at 1 and is called `weight`.

    Args:
        d: size of the vectors.
        eps: keeps the root away from zero; in the unit of a square.

    Raises:
        ValueError: if d is below 1 or eps below 0; in `forward`, if the vectors are not of size d.

    Source: Zhang and Sennrich 2019, equation 4; eps as in Llama.

    In other libraries: `torch.nn.RMSNorm`, `LlamaRMSNorm`; there eps is `variance_epsilon`.
    """

    def __init__(self, d: int, eps: float = 1e-5):
        super().__init__()
        check_whole(1, d=d)
        check_range(0, inf, eps=eps)
        self.d, self.eps = d, eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Vectors `[... d]`, each normalised by itself."""
        check_shapes(x=(x, "... d"), d=self.d)
        return functional.rms_norm(x, (self.d,), self.weight, self.eps)
