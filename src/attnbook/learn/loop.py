"""The training loop for every model in the book, checkpoints to resume from, and schedules."""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.nn.utils import clip_grad_norm_
from torch.optim import Adam, Optimizer
from tqdm.auto import tqdm

from attnbook.checks import check_choice, check_device, check_range, check_whole
from attnbook.files import atomic
from attnbook.learn.optimizers import Named
from attnbook.learn.processes import Alone, processes

Precision = Literal["no", "bf16", "fp16"]


@dataclass(frozen=True)
class _Warmed:
    """A learning rate that rises linearly, then follows a curve from `lr` to `least`."""

    lr: float
    steps: int
    warmup: int = 0
    least: float = 0.0

    def __post_init__(self) -> None:
        check_whole(1, steps=self.steps)
        check_range(0, math.inf, lr=self.lr)
        check_range(0, self.steps - 1, warmup=self.warmup)
        check_whole(0, warmup=self.warmup)
        if not 0 <= self.least <= self.lr:
            raise ValueError(f"least must lie in 0..{self.lr}, the lr, got {self.least}")

    def __call__(self, step: int) -> float:
        """The learning rate of an update; `step` 0 is the first."""
        check_whole(0, step=step)
        if step < self.warmup:
            return self.lr * (step + 1) / (self.warmup + 1)
        return self.least + (self.lr - self.least) * self._left(min(step, self.steps))

    def _left(self, step: int) -> float:
        """The remaining fraction of the way from `lr` down to `least`, 1 .. 0."""
        raise NotImplementedError


@dataclass(frozen=True)
class Cosine(_Warmed):
    """A learning rate that rises linearly, then falls along half a cosine.

        lr_t = lr (t + 1) / (warmup + 1)                                            t < warmup
        lr_t = least + (lr - least) (1 + cos(pi (t - warmup) / (steps - warmup))) / 2   t < steps
        lr_t = least                                                                afterwards

    Args:
        lr: the highest learning rate, reached at update `warmup`.
        steps: number of updates t = 0 .. steps - 1.
        warmup: number of updates before the highest rate.
        least: the learning rate at the end of the fall.

    Raises:
        ValueError: if lr is negative or not finite, steps is below 1, warmup is not a whole number
            in 0 .. steps - 1, least is not in 0 .. lr, or, when called, step is negative.

    Source: Loshchilov and Hutter 2017, equation 5.

    In other libraries: `get_cosine_schedule_with_warmup` of `transformers`, which rises as
    t / warmup.
    """

    def _left(self, step: int) -> float:
        return (1 + math.cos(math.pi * (step - self.warmup) / (self.steps - self.warmup))) / 2


@dataclass(frozen=True)
class StableDecay(_Warmed):
    """A learning rate that rises linearly, stays constant, and falls linearly.

        lr_t = lr (t + 1) / (warmup + 1)                             t < warmup
        lr_t = lr                                                    t < steps - decay
        lr_t = least + (lr - least) (steps - t) / decay              t < steps
        lr_t = least                                                 afterwards

    A run can be extended from any point before the fall; most of what the fall gains comes in its
    first updates.

    Args:
        lr, steps, warmup, least: as for `Cosine`.
        decay: number of updates in the fall. None: a fifth of all, but at least 1 and at most
            steps - warmup.

    Raises:
        ValueError: if decay is not in 1 .. steps - warmup, or for the same reasons as `Cosine`.

    Source: Hu et al. 2024, section 4.2, whose fall is exponential; Hägele et al. 2024, section 4
    (a linear fall over a fifth of the updates).

    In other libraries: `get_wsd_schedule` of `transformers`.
    """

    decay: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.fall <= self.steps - self.warmup:
            most = self.steps - self.warmup
            raise ValueError(f"decay must lie in 1..{most}, steps less warmup, got {self.decay}")
        check_whole(1, decay=self.fall)

    @property
    def fall(self) -> int:
        """`decay`, or the default that follows from the steps."""
        most = self.steps - self.warmup
        return max(1, min(self.steps // 5, most)) if self.decay is None else self.decay

    def _left(self, step: int) -> float:
        return min(1.0, (self.steps - step) / self.fall)


@dataclass(frozen=True)
class Noam:
    """The learning rate of the first Transformer: a linear rise, then an inverse square root.

        lr_t = factor d_model^(-1/2) min(t^(-1/2), t warmup^(-3/2)),   t = step + 1

    Args:
        d_model: size of the hidden states; wider models take smaller steps.
        warmup: the update t with the highest rate, factor / sqrt(d_model warmup).
        factor: scales the whole curve; 1 in the paper.

    Raises:
        ValueError: if d_model or warmup is below 1, factor is negative or not finite, or, when
            called, step is negative.

    Source: Vaswani et al. 2017, equation 3.

    In other libraries: `get_inverse_sqrt_schedule` of `transformers`, `inverse_sqrt` of fairseq.
    """

    d_model: int
    warmup: int
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_whole(1, d_model=self.d_model, warmup=self.warmup)
        check_range(0, math.inf, factor=self.factor)

    def __call__(self, step: int) -> float:
        """The learning rate of an update; `step` 0 is the first."""
        check_whole(0, step=step)
        t = step + 1
        return self.factor * self.d_model**-0.5 * min(t**-0.5, t * self.warmup**-1.5)


@dataclass
class Run:
    """A training run, as its hooks see it.

    Attributes:
        model: the model being trained.
        optimizer: the optimizer that trains it.
        steps: number of updates in the whole run.
        losses: the loss of each update so far.
        settings: the settings that distinguish this run from others, as strings.
        is_main: whether this is the first process, the one that writes files.
        scaler: keeps gradients within the range of "fp16"; does nothing in other precisions.

    In other libraries: `TrainerState` of `transformers`.
    """

    model: nn.Module
    optimizer: Optimizer
    steps: int
    losses: list[float]
    settings: dict[str, str]
    is_main: bool
    scaler: GradScaler

    @property
    def step(self) -> int:
        """Number of updates made so far."""
        return len(self.losses)


class _Objective(nn.Module):
    """A part's share of the loss, as a module, since DistributedDataParallel wraps only modules."""

    def __init__(
        self, model: nn.Module, loss: Callable[[Any], Tensor], context: AbstractContextManager
    ):
        super().__init__()
        self.model, self.loss, self.context = model, loss, context

    def forward(self, part: Any, share: float) -> Tensor:
        """The mean loss over a part of the batch times its share; no loss is computed for 0."""
        if not share:  # other processes wait for the gradients of all parameters
            trained = [p.sum() for p in self.model.parameters() if p.requires_grad]
            return 0 * torch.stack(trained).sum()
        with self.context:
            value = self.loss(part)
        if not isinstance(value, Tensor) or value.ndim:
            got = list(value.shape) if isinstance(value, Tensor) else value
            raise ValueError(f"loss must give a scalar, a mean over the batch, got {got}")
        return value.to(torch.promote_types(value.dtype, torch.float32)) * share


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager:
    """A context in which matrix products, but not sums, norms or softmax, use half precision.

    Args:
        precision: "bf16" (8 significant bits, the range of float32), "fp16" (11 bits, up to 65504)
            or "no", which keeps every tensor in its own type.
        device: the device on which the context is used.

    Raises:
        ValueError: if precision is none of these, or the device does not support it.

    Source: Micikevicius et al. 2018, section 3 ("fp16"); Kalamkar et al. 2019 ("bf16").

    In other libraries: `torch.autocast`.
    """
    check_choice(get_args(Precision), precision=precision)
    if precision == "no":
        return nullcontext()
    has = torch.amp.is_autocast_available(device.type)
    if device.type == "cuda" and precision == "bf16":
        has = torch.cuda.is_bf16_supported(including_emulation=False)
    if not has:
        wanted = f"precision must be one that the device {device.type!r} computes with, as 'no'"
        raise ValueError(f"{wanted}, got {precision!r}")
    return torch.autocast(
        device.type, dtype=torch.bfloat16 if precision == "bf16" else torch.float16
    )


def train(
    model: nn.Module,
    batches: Callable[[int], Any],
    loss: Callable[[Any], Tensor],
    steps: int,
    *,
    lr: float | Callable[[int], float],
    optimizer: Callable[[Named], Optimizer] = Adam,
    on_step: Iterable[Callable[[Run], object]] = (),
    clip: float | None = 1.0,
    seed: int = 0,
    count: Callable[[Any], int | Tensor] | None = None,
    accumulate: int = 1,
    precision: Precision = "no",
    tokens: int | None = None,
) -> list[float]:
    """Train a model, by default with Adam and a learning rate that falls along half a cosine.

    Several processes, started by `accelerate launch`, share the rows of every batch and average
    their gradients, so that their losses equal those of a single process. The same holds for a
    process that computes its rows in several parts. Torch's global seed is set anew at every step.

    Args:
        model: trained in place, on the device of `processes`; afterwards, even after an error or
            Ctrl-C, it is in evaluation mode and back on its own device.
        batches: returns the batch of a step; must depend on the step alone, so that a run can
            resume. For several processes or parts, a batch must be tensors with one row per
            sample, in tuples or mappings.
        loss: returns the loss of a batch, a scalar that is a mean over the batch.
        steps: number of updates.
        lr: the initial learning rate of `Cosine(lr, steps)`; or a function of the step, such as
            `Noam` or `Cosine` (with a checkpoint, its `str` must distinguish it from others).
        optimizer: builds an optimizer from the model's named parameters, as `torch.optim.AdamW` and
            those of `attnbook.learn.optimizers` do. A group's `scale` multiplies its learning rate.
        on_step: hooks, called with the `Run` before the first update and after every update, to
            watch or evaluate the model; a `Checkpoint` is one.
        clip: largest allowed norm of the gradient; None: no clipping.
        seed: determines, with the step, the randomness inside the model (dropout).
        count: for several processes or parts, returns the number of terms in the mean over a part,
            by which parts are weighted, such as tokens in sentences of unequal length; a part
            without terms has no weight. None: the number of rows.
        accumulate: number of parts in which a process computes its rows, to save memory.
        precision: "bf16" or "fp16" for matrix products in half precision, as in `autocast`; an
            update whose gradient overflows in "fp16" is skipped, and the next one scaled down.
        tokens: number of tokens in a batch; if given, the progress bar counts tokens, not updates.

    Returns:
        The loss at each step, in the unit of `loss` (cross-entropy: nats per token).

    Raises:
        ValueError: if `steps` or `accumulate` is below 1, clip is not above 0, lr is negative or
            not finite, the loss is not a scalar, a batch has fewer rows than parts, precision is
            unknown or not supported by the device, or the hooks leave the processes at different
            steps.
        FloatingPointError: if a loss or its gradient is not finite; the message names the step.
        RuntimeError: if the device computes wrong results.

    Source: Kingma and Ba 2015 (Adam).

    In other libraries: `Trainer` of `transformers`, whose callbacks are `on_step` here.
    """
    check_whole(1, steps=steps, accumulate=accumulate)
    if clip is not None and not clip > 0:
        raise ValueError(f"clip must be above 0, or None for no clipping, got {clip}")
    if not callable(lr) and not lr >= 0:
        raise ValueError(f"lr must be at least 0, got {lr}")
    schedule = lr if callable(lr) else Cosine(lr, steps)
    team, hooks = processes(), list(on_step)
    check_device(team.device)
    context = autocast(precision, team.device)
    scaler = GradScaler(team.device.type, enabled=precision == "fp16")
    home = next((weight.device for weight in model.parameters()), team.device)
    settings = {"steps": steps, "lr": lr, "seed": seed, "clip": clip, "processes": team.size}
    settings |= {"accumulate": accumulate, "precision": precision, "optimizer": _name(optimizer)}
    words = {name: str(value) for name, value in settings.items()}
    try:
        model.to(team.device)
        objective = _Objective(model, loss, context)
        forward, updater = team.prepare(objective, optimizer(model.named_parameters()))
        run = Run(model, updater, steps, [], words, team.is_main, scaler)
        _begin(run, hooks, team)
        with _progress(run, tokens) as show:
            while run.step < steps:
                model.train()  # a hook may have switched to evaluation mode
                _seed(seed * 1_000_003 + run.step * team.size + team.index, team.device)
                updater.zero_grad()
                total = torch.zeros((), device=team.device)
                for part, share in team.parts(forward, batches(run.step), accumulate, count):
                    value = forward(part, share)
                    _check_loss(value, run)
                    scaler.scale(value).backward()
                    total += value.detach()
                scaler.unscale_(updater)
                norm = clip_grad_norm_(model.parameters(), math.inf if clip is None else clip)
                _check_gradient(norm, run)
                for group in updater.param_groups:
                    group["lr"] = schedule(run.step) * group.get("scale", 1.0)
                scaler.step(updater)
                scaler.update()
                run.losses.append((team.sum(total) / team.size).item())
                show()
                for hook in hooks:
                    hook(run)
        return run.losses
    finally:
        model.eval().to(home)


def _seed(number: int, device: torch.device) -> None:
    """Begin the random numbers anew; `torch.manual_seed` writes a stack trace for absent GPUs."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(number)
    else:
        torch.manual_seed(number)


def _name(optimizer: Callable[[Named], Optimizer]) -> object:
    """What identifies an optimizer: its `__name__`, or itself if it has none or is a lambda."""
    name = getattr(optimizer, "__name__", "<lambda>")
    return optimizer if name == "<lambda>" else name


def _begin(run: Run, hooks: Iterable[Callable[[Run], object]], team: Alone) -> None:
    """Call the hooks before the first update; one of them may load a checkpoint."""
    for hook in hooks:
        hook(run)
    begun = team.gather(run.step)
    if len(set(begun)) > 1:
        raise ValueError(f"on_step must bring all processes to one step, got {begun}")


@contextmanager
def _progress(run: Run, tokens: int | None) -> Iterator[Callable[[], None]]:
    """Show a progress bar in updates or tokens; the function advances it by one update."""
    shown = os.environ.get("ATTNBOOK_PROGRESS", "1") != "0" and run.is_main
    unit: dict[str, Any] = {} if tokens is None else {"unit": " tokens", "unit_scale": True}
    each = 1 if tokens is None else tokens
    total, begun = run.steps * each, run.step * each
    with tqdm(total=total, initial=begun, disable=not shown, **unit) as bar:

        def show() -> None:
            bar.set_postfix(loss=f"{run.losses[-1]:.3f}", refresh=False)
            bar.update(each)

        yield show


def _check_loss(loss: Tensor, run: Run) -> None:
    if not loss.isfinite():
        raise FloatingPointError(f"the loss is {loss.item()} at step {run.step}")


def _check_gradient(norm: Tensor, run: Run) -> None:
    """Raise if the gradient is not finite, unless "fp16" can still lower the gradient's scale."""
    may_overflow = run.scaler.is_enabled() and run.scaler.get_scale() > 1
    if not norm.isfinite() and not may_overflow:
        raise FloatingPointError(f"the gradient is {norm.item()} long at step {run.step}")


class Checkpoint:
    """A hook for `train` that saves the run in a file, so that it can resume after being killed.

    At the start the run is loaded if the file exists, and then ends as an uninterrupted one would.
    It is saved every `every` updates and at the end, each time completely or not at all.

    Args:
        path: a safetensors file: weights, the optimizer's moments, and the losses so far.
        every: updates between two saves.

    Raises:
        ValueError: if `every` is below 1; when called, if the file belongs to another run: other
            settings, another number of processes, or another model.

    In other libraries: `ModelCheckpoint` of Lightning, `save_steps` of `transformers`.
    """

    def __init__(self, path: str | Path, every: int = 500):
        check_whole(1, every=every)
        self.path, self.every = Path(path), every

    def __call__(self, run: Run) -> None:
        """Load the run before the first update, and save it when that is due."""
        if not run.step:
            if self.path.exists():
                self._load(run)
        elif run.is_main and (run.step % self.every == 0 or run.step == run.steps):
            self._save(run)

    def _save(self, run: Run) -> None:
        tensors = {f"model.{name}": value for name, value in run.model.state_dict().items()}
        for i, moments in run.optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                tensors[f"optimizer.{i}.{name}"] = torch.as_tensor(value)
        for name, value in run.scaler.state_dict().items():
            tensors[f"scaler.{name}"] = torch.as_tensor(value)
        tensors["losses"] = torch.tensor(run.losses, dtype=torch.float64)
        kept = {
            name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, value in tensors.items()
        }
        with atomic(self.path) as partial:
            save_file(kept, partial, metadata=run.settings)

    def _load(self, run: Run) -> None:
        try:
            with safe_open(self.path, "pt") as file:
                settings = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(f"checkpoint {self.path} must be a checkpoint: {error}") from None
        for name, mine in run.settings.items():
            if (other := settings.get(name)) != mine:
                wanted = f"checkpoint {self.path} must be of the run with {name} {mine}"
                raise ValueError(f"{wanted}, got {other}")
        losses = tensors.pop("losses").tolist()
        weights, moments, scaler = {}, {}, {}
        for name, value in tensors.items():
            kind, rest = name.split(".", 1)
            if kind == "model":
                weights[rest] = value
            elif kind == "scaler":
                scaler[rest] = value.item()
            else:
                i, moment = rest.split(".")
                moments.setdefault(int(i), {})[moment] = value
        try:
            run.model.load_state_dict(weights)
        except RuntimeError as error:
            first = str(error).splitlines()[1].strip()
            raise ValueError(f"checkpoint {self.path} must fit the model: {first}") from None
        run.optimizer.load_state_dict(run.optimizer.state_dict() | {"state": moments})
        run.scaler.load_state_dict(scaler)
        run.losses[:] = losses
