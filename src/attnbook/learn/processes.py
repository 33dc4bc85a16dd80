"""The processes that train a model together: one, or several with a device each."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attnbook.model.decoding import select_rows

SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
Made = TypeVar("Made")


class Alone:
    """A single process on a single device, which shares nothing and waits for nobody.

    Attributes:
        size: number of processes.
        index: the index of this process, from 0.
        device: the device this process computes on: PyTorch's accelerator if there is one and the
            environment variable `ACCELERATE_USE_CPU` does not forbid it, otherwise the CPU.
    """

    size, index = 1, 0

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        if not _cpu_only() and torch.accelerator.is_available():
            self.device = torch.accelerator.current_accelerator() or self.device

    @property
    def is_main(self) -> bool:
        """Whether this is the first process, the one that writes files."""
        return self.index == 0

    def prepare(self, forward: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        """Module and optimizer, prepared so that gradients are averaged over all processes."""
        return forward.to(self.device), optimizer

    def unsynced(self, forward: nn.Module) -> AbstractContextManager:
        """A context in which gradients accumulate and are not averaged over the processes."""
        return nullcontext()

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        return tensor

    def gather(self, number: int) -> list[int]:
        """The `number` given by each process, in order."""
        return [number]

    def from_first(self, make: Callable[[], Made]) -> Made:
        """On every process, return what `make` returns on the first, or raise its error."""
        return make()

    def main_first(self) -> AbstractContextManager:
        """A context that a machine's first process enters, and leaves before the others enter."""
        return nullcontext()

    def parts(
        self,
        forward: nn.Module,
        batch: Any,
        accumulate: int = 1,
        count: Callable[[Any], int | Tensor] | None = None,
    ) -> Iterator[tuple[Any, float]]:
        """This process's rows of a batch, in parts, on its device.

        The mean over the batch is the sum over parts of share times the part's mean, averaged over
        the processes. Gradients are only averaged at the last part.

        Args:
            forward: from `prepare`.
            batch: tensors with one row per sample, in tuples or mappings.
            accumulate: number of parts of each process.
            count: returns the number of terms in the mean over a part. None: the number of rows.

        Yields:
            A part and its share.

        Raises:
            ValueError: if the batch has fewer rows than there are parts, or holds no tensors.
        """
        n_parts = self.size * accumulate
        if n_parts == 1:
            yield to_device(batch, self.device), 1.0
            return
        n = next((len(tensor) for tensor in _tensors(batch)), 0)
        if n < n_parts:
            raise ValueError(f"batches must have a row for each of {n_parts} parts, got {n}")
        starts = range(self.index, n_parts, self.size)
        parts = [select_rows(batch, torch.arange(start, n, n_parts)) for start in starts]
        lengths = [len(range(start, n, n_parts)) for start in starts]
        counts = lengths if count is None else map(count, parts)
        terms = torch.tensor([float(terms) for terms in counts], device=self.device)
        shares = self.size * terms / self.sum(terms.sum()).clamp(min=1)
        for i, (part, share) in enumerate(zip(parts, shares.tolist(), strict=True), start=1):
            with nullcontext() if i == len(parts) else self.unsynced(forward):
                yield to_device(part, self.device), share


class Together(Alone):
    """Several processes started by a launcher, one per device and connected by `accelerate`."""

    def __init__(self) -> None:
        try:
            from accelerate import PartialState
        except ImportError:
            wanted = 'several processes need accelerate: python -m pip install "attnbook[devices]"'
            raise ImportError(wanted) from None
        self.state = PartialState(cpu=_cpu_only())
        self.size, self.index = self.state.num_processes, self.state.process_index
        self.device = cast(torch.device, self.state.device)

    def prepare(self, forward: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        from accelerate import Accelerator
        from accelerate.utils import DistributedDataParallelKwargs

        spare = DistributedDataParallelKwargs(find_unused_parameters=True)
        accelerator = Accelerator(mixed_precision="no", kwargs_handlers=[spare])
        return accelerator.prepare(forward, optimizer)

    def unsynced(self, forward: nn.Module) -> AbstractContextManager:
        return cast(nn.parallel.DistributedDataParallel, forward).no_sync()

    def sum(self, tensor: Tensor) -> Tensor:
        from accelerate.utils import reduce

        return cast(Tensor, reduce(tensor, "sum"))

    def gather(self, number: int) -> list[int]:
        from accelerate.utils import gather

        return cast(Tensor, gather(torch.tensor([number], device=self.device))).tolist()

    def from_first(self, make: Callable[[], Made]) -> Made:
        from accelerate.utils import broadcast_object_list

        made: list[Any] = [None]
        if self.is_main:
            try:
                made = [make()]
            except Exception as error:
                made = [error]
        broadcast_object_list(made)
        if isinstance(made[0], Exception):
            raise made[0]
        return made[0]

    def main_first(self) -> AbstractContextManager:
        return self.state.local_main_process_first()


def processes() -> Alone:
    """The processes that train together: `Together` if a launcher has started several.

    Raises:
        ImportError: if there are several, and `accelerate` is not installed.
    """
    size = next((int(os.environ[name]) for name in SIZES if name in os.environ), 1)
    return Together() if size > 1 else Alone()


def to_device(batch: Any, device: torch.device) -> Any:
    """Move the tensors of a batch to a device.

    Args:
        batch: tensors, in tuples, lists or mappings; anything else stays as it is.
        device: where the tensors go.
    """
    if isinstance(batch, Tensor) or hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, Mapping):
        moved = {key: to_device(value, device) for key, value in batch.items()}
        return cast(Any, type(batch))(moved)
    if isinstance(batch, tuple | list):
        parts = [to_device(value, device) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def _cpu_only() -> bool:
    asked = os.environ.get("ACCELERATE_USE_CPU", "").lower()
    return asked in ("1", "true", "yes", "y", "on", "t")


def _tensors(batch: Any) -> Iterator[Tensor]:
    """The tensors of a batch, in order."""
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping | tuple | list):
        for part in batch.values() if isinstance(batch, Mapping) else batch:
            yield from _tensors(part)
    elif batch is not None:
        raise ValueError(f"batches must hold tensors, in tuples or mappings, got {batch!r}")
