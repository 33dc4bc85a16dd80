"""One training loop for every model of the book, checkpoints that survive a kill, schedules, and a
loss."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, send_to_device
from jaxtyping import Float, Int
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from tqdm.auto import trange

from attnbook.data import PAD


@dataclass(frozen=True)
class Cosine:
    """A learning rate that rises in a straight line, then falls to zero along half a cosine.

        lr_t = lr (t + 1) / warmup                                          t < warmup
        lr_t = lr (1 + cos(pi (t - warmup) / (steps - warmup))) / 2         t < steps
        lr_t = 0                                                            afterwards

    Args:
        lr: the highest learning rate.
        steps: number of updates t = 0 .. steps - 1.
        warmup: number of updates until the highest rate.

    Raises:
        ValueError: if warmup is not in 0 .. steps - 1.

    Source: Loshchilov and Hutter 2017, equation 5.
    """

    lr: float
    steps: int
    warmup: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.warmup < self.steps:
            raise ValueError(f"warmup must lie in 0..{self.steps - 1}, got {self.warmup}")

    def __call__(self, step: int) -> float:
        """The learning rate of an update."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        part = (step - self.warmup) / (self.steps - self.warmup)
        return self.lr * (1 + math.cos(math.pi * min(part, 1.0))) / 2


@dataclass(frozen=True)
class Noam:
    """The learning rate of the first Transformer: a straight rise, then one over a square root.

        lr_t = factor d_model^(-1/2) min(t^(-1/2), t warmup^(-3/2)),   t = step + 1

    Args:
        d_model: size of the model's vectors: wider models learn in smaller steps.
        warmup: the update with the highest rate, factor / sqrt(d_model warmup).
        factor: scales the whole curve; 1 in the paper.

    Raises:
        ValueError: if d_model or warmup is below 1.

    Source: Vaswani et al. 2017, equation 3.
    """

    d_model: int
    warmup: int
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.d_model < 1 or self.warmup < 1:
            raise ValueError(f"d_model and warmup must be at least 1, got {self}")

    def __call__(self, step: int) -> float:
        """The learning rate of an update."""
        t = step + 1
        return self.factor * self.d_model**-0.5 * min(t**-0.5, t * self.warmup**-1.5)


def train(
    model: nn.Module,
    batch: Callable[[int], Any],
    loss: Callable[[Any], Tensor],
    *,
    steps: int,
    lr: float | Callable[[int], float],
    seed: int = 0,
    clip: float = 1.0,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 500,
) -> list[float]:
    """Train with Adam, by default with a learning rate that falls along half a cosine.

    Under `accelerate launch` all processes start from the first one's weights, each takes batches
    of its own, and the gradients are averaged. Torch's global seed is set anew at every step.

    Args:
        model: changed in place, on the device that Accelerate chooses; afterwards in evaluation
            mode.
        batch: gives the batch of a step; must depend on the step alone, so that a run can resume.
        loss: gives the loss of a batch, a scalar.
        steps: number of updates.
        lr: the first learning rate, for `Cosine(lr, steps)`; or the rate of each step, as `Noam` or
            `Cosine` give it (with a checkpoint: something whose text tells it from others).
        seed: of what is random inside the model (dropout), with the step.
        clip: largest norm of the gradient.
        checkpoint: a safetensors file, written whole every `checkpoint_every` steps and at the end.
            If it is there at the start, the run goes on from it and ends as an unbroken one would.
        checkpoint_every: steps between two checkpoints.

    Returns:
        The loss at each step, in the unit of `loss` (cross-entropy: nats a token).

    Raises:
        ValueError: if `steps` or `checkpoint_every` is below 1, or `checkpoint` belongs to another
            run: other settings, another number of processes, or another model.
        FloatingPointError: if a loss is not finite; names the step. The last checkpoint stays.

    Source: Kingma and Ba 2015 (Adam).
    """
    if steps < 1 or checkpoint_every < 1:
        raise ValueError(
            "steps and checkpoint_every must be at least 1,"
            f" got steps={steps}, checkpoint_every={checkpoint_every}"
        )
    schedule = lr if callable(lr) else Cosine(lr, steps)
    accelerator = Accelerator(mixed_precision="no")
    several = accelerator.num_processes > 1
    model.to(accelerator.device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=schedule(0))
    settings = {"steps": steps, "lr": lr, "seed": seed, "clip": clip}
    settings["processes"] = accelerator.num_processes
    run = {name: str(value) for name, value in settings.items()}
    path = Path(checkpoint) if checkpoint else None
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
    losses = _load(path, model, optimizer, run) if path and path.exists() else []
    if several:
        broadcast(list(model.state_dict().values()))
    shown = os.environ.get("ATTNBOOK_PROGRESS", "1") != "0" and accelerator.is_main_process
    for step in trange(len(losses), steps, initial=len(losses), total=steps, disable=not shown):
        mine = step * accelerator.num_processes + accelerator.process_index
        torch.manual_seed(seed * 1_000_003 + mine)
        value = loss(send_to_device(batch(mine), accelerator.device))
        if not value.isfinite():
            raise FloatingPointError(f"the loss is {value.item()} at step {step}")
        optimizer.zero_grad()
        accelerator.backward(value)
        for parameter in model.parameters() if several else ():
            if parameter.grad is not None:
                parameter.grad = cast(Tensor, accelerator.reduce(parameter.grad, "mean"))
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        optimizer.step()
        losses.append(value.item())
        due = len(losses) % checkpoint_every == 0 or len(losses) == steps
        if path and due and accelerator.is_main_process:
            _save(path, model, optimizer, losses, run)
    model.eval()
    return losses


def label_smoothing_loss(
    logits: Float[Tensor, "*batch vocab"],
    target: Int[Tensor, "*batch"],
    smoothing: float = 0.0,
    *,
    ignore_index: int = PAD,
) -> Float[Tensor, ""]:
    """Cross-entropy against the right token mixed with a little of every token, in nats a token.

        loss = - sum_k q_k log P_k,   q_k = (1 - smoothing) [k = target] + smoothing / vocab

    averaged over the targets that count; NaN if none does.

    Args:
        logits: `[... vocab]`, P = softmax(logits).
        target: `[...]` token ids.
        smoothing: how much of the probability goes to all tokens, 0 to 1; 0.1 in the paper.
        ignore_index: targets of this id do not count.

    Raises:
        ValueError: if smoothing is out of range.

    Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4.
    """
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing must lie in 0..1, got {smoothing}")
    return cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        target.reshape(-1),
        ignore_index=ignore_index,
        label_smoothing=smoothing,
    )


def _save(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Adam,
    losses: list[float],
    run: dict[str, str],
) -> None:
    """Write weights, Adam's moments and losses to a file beside `path`, then move it into place."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for i, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"adam.{i}.{name}": value for name, value in moments.items()}
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    partial = path.with_name(path.name + ".partial")
    save_file({k: v.detach().cpu().clone() for k, v in tensors.items()}, partial, metadata=run)
    os.replace(partial, path)


def _load(
    path: Path, model: nn.Module, optimizer: torch.optim.Adam, run: dict[str, str]
) -> list[float]:
    """Load what `_save` wrote into model and optimizer; returns the losses so far."""
    with safe_open(path, "pt") as file:
        if file.metadata() != run:
            raise ValueError(f"checkpoint {path} must be of the run {run}, got {file.metadata()}")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    losses = tensors.pop("losses").tolist()
    moments: dict[int, dict[str, Tensor]] = {}
    weights: dict[str, Tensor] = {}
    for name, value in tensors.items():
        kind, rest = name.split(".", 1)
        if kind == "model":
            weights[rest] = value
        else:
            i, moment = rest.split(".")
            moments.setdefault(int(i), {})[moment] = value
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"checkpoint {path} must fit the model: {error}") from None
    optimizer.load_state_dict(optimizer.state_dict() | {"state": moments})
    return losses
