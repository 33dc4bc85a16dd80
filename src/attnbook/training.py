"""One training loop for every model of the book, and checkpoints that survive a kill."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast, send_to_device
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from tqdm.auto import trange


def train(
    model: nn.Module,
    batch: Callable[[int], Any],
    loss: Callable[[Any], Tensor],
    *,
    steps: int,
    lr: float,
    seed: int = 0,
    clip: float = 1.0,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 500,
) -> list[float]:
    """Train with Adam while the learning rate falls to zero along half a cosine.

        lr_t = lr (1 + cos(pi t / steps)) / 2,   t = 0 .. steps - 1

    Under `accelerate launch` all processes start from the first one's weights, each takes batches
    of its own, and the gradients are averaged. Torch's global seed is set anew at every step.

    Args:
        model: changed in place, on the device that Accelerate chooses; afterwards in evaluation
            mode.
        batch: gives the batch of a step; must depend on the step alone, so that a run can resume.
        loss: gives the loss of a batch, a scalar.
        steps: number of updates.
        lr: the first learning rate.
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

    Source: Kingma and Ba 2015 (Adam); Loshchilov and Hutter 2017, equation 5 (cosine).
    """
    if steps < 1 or checkpoint_every < 1:
        raise ValueError(
            "steps and checkpoint_every must be at least 1,"
            f" got steps={steps}, checkpoint_every={checkpoint_every}"
        )
    accelerator = Accelerator(mixed_precision="no")
    several = accelerator.num_processes > 1
    model.to(accelerator.device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
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
            group["lr"] = lr * (1 + math.cos(math.pi * step / steps)) / 2
        optimizer.step()
        losses.append(value.item())
        due = len(losses) % checkpoint_every == 0 or len(losses) == steps
        if path and due and accelerator.is_main_process:
            _save(path, model, optimizer, losses, run)
    model.eval()
    return losses


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
