"""Optimizers for language models: AdamW, and Muon for the matrices of the blocks."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from attnbook.checks import check_range, check_whole

Named = Iterable[tuple[str, nn.Parameter]]


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay, for matrices only: norms and biases do not decay.

        m_t = beta1 m_(t-1) + (1 - beta1) g_t,    v_t = beta2 v_(t-1) + (1 - beta2) g_t^2
        w_t = w_(t-1) - lr (weight_decay w_(t-1) + m'_t / (sqrt(v'_t) + eps))

    with w a parameter, g its gradient, and m' = m / (1 - beta1^t), v' = v / (1 - beta2^t) for
    t = 1, 2, ...

    Args:
        weight_decay: each update removes the share lr weight_decay of a matrix.
        beta1, beta2: decay rates of the running means of gradients and of their squares.
        eps: keeps the quotient finite.

    Calling it with a model's named parameters, as `train(optimizer=AdamW())` does, makes an
    optimizer.

    Raises:
        ValueError: if a setting is negative or not finite, or a beta is not in 0 .. 1.

    Source: Loshchilov and Hutter 2019, algorithm 2; beta2 and the decay of matrices only as in
    Brown et al. 2020, appendix B, and code that follows it.

    In other libraries: `torch.optim.AdamW`.
    """

    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8

    def __post_init__(self) -> None:
        check_range(0, math.inf, weight_decay=self.weight_decay, eps=self.eps)
        check_range(0, 1, beta1=self.beta1, beta2=self.beta2)

    def __call__(self, parameters: Named) -> Optimizer:
        """An optimizer of these parameters."""
        return self.of([parameter for _, parameter in parameters])

    def of(self, parameters: Iterable[nn.Parameter], **group: Any) -> Optimizer:
        """An optimizer of unnamed parameters; `group` is added to each parameter group."""
        parameters = list(parameters)
        groups: list[dict[str, Any]] = [
            group | {"params": [p for p in parameters if p.ndim >= 2]},
            group | {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            [some for some in groups if some["params"]],
            betas=(self.beta1, self.beta2),
            eps=self.eps,
            weight_decay=self.weight_decay,
            fused=True,
        )


@dataclass(frozen=True)
class Muon:
    """Muon for the matrices of the blocks, and AdamW for everything else, as one optimizer.

        M_t = momentum M_(t-1) + (1 - momentum) G_t
        U S V^T = (1 - momentum) G_t + momentum M_t
        W_t = W_(t-1) - lr (weight_decay W_(t-1) + 0.2 sqrt(max(a, b)) U V^T)

    with W a matrix `[a b]`, G its gradient, and U S V^T a singular value decomposition, so that a
    step is equally long in every direction; `steps` Newton-Schulz iterations approximate U V^T.
    Scaled by 0.2 sqrt(max(a, b)), its entries are about as large as AdamW's, so that one learning
    rate and one weight decay serve both.

    The matrices of the blocks are the two-dimensional parameters with "blocks" in their path.
    Embeddings, output matrix, norms and biases go to AdamW: they are used row by row or are not
    matrices.

    Args:
        momentum: decay rate of the running mean of gradients.
        steps: number of Newton-Schulz iterations.
        scale: AdamW's learning rate, as a multiple of Muon's.
        weight_decay, beta1, beta2, eps: as for `AdamW`; the decay applies to both.

    Calling it with a model's named parameters, as `train(optimizer=Muon())` does, makes an
    optimizer. Its AdamW groups carry `scale`, by which `train` multiplies the learning rate.

    Raises:
        ValueError: if a setting is negative or not finite, momentum or a beta is not in 0 .. 1, or
            steps is below 1; when called, if no parameter is a matrix of a block.

    Source: Jordan et al. 2024; Liu et al. 2025, section 2.2 (length of the step, weight decay).

    In other libraries: `torch.optim.Muon`, which does the work here and takes matrices alone.
    """

    momentum: float = 0.95
    steps: int = 5
    scale: float = 1.0
    weight_decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8

    def __post_init__(self) -> None:
        check_whole(1, steps=self.steps)
        check_range(0, math.inf, scale=self.scale)
        check_range(0, 1, momentum=self.momentum)
        self._adamw  # noqa: B018, checks the others

    @property
    def _adamw(self) -> AdamW:
        return AdamW(self.weight_decay, self.beta1, self.beta2, self.eps)

    def __call__(self, parameters: Named) -> Optimizer:
        """An optimizer of these parameters."""
        matrices, others = [], []
        for name, parameter in parameters:
            inside = parameter.ndim == 2 and "blocks" in name.split(".")
            (matrices if inside else others).append(parameter)
        if not matrices:
            raise ValueError('parameters must hold matrices with "blocks" in their path, got none')
        muon = torch.optim.Muon(
            matrices,
            momentum=self.momentum,
            ns_steps=self.steps,
            weight_decay=self.weight_decay,
            adjust_lr_fn="match_rms_adamw",
        )
        return _Joined([muon, self._adamw.of(others, scale=self.scale)] if others else [muon])


class _Joined(Optimizer):
    """Several optimizers as one, which shares their groups and state; each updates its own."""

    def __init__(self, parts: list[Optimizer]):
        super().__init__([group for part in parts for group in part.param_groups], {})
        self.parts = parts

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # pyright: ignore
        loss = None if closure is None else torch.enable_grad()(closure)()
        groups = iter(self.param_groups)
        for part in self.parts:  # `load_state_dict` replaces the groups
            part.param_groups = list(islice(groups, len(part.param_groups)))
            part.state = self.state
            part.step()
        return loss
