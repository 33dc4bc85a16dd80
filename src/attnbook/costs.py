"""What a computation costs: operations and memory."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode


def operations(loss: Callable[[], Float[Tensor, ""]]) -> int:
    """Multiplications and additions in the matrix products of a training step.

    Counted while the loss is computed and its gradients, so that they hold for any model. Fused
    attention is counted as the same attention without fusing, with masked scores: PyTorch's
    counter does not see it on a CPU. Softmax, norms and other work on single numbers are left out.

    Args:
        loss: computes the loss of a batch; gradients are added to its parameters.
    """
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        loss().backward()
    return counter.get_total_flops()


def most_bytes(run: Callable[[], object]) -> int:
    """The most memory in bytes that a computation on the CPU holds at once.

    What was there before does not count: weights and inputs made outside of `run`. Every call of
    PyTorch's allocator counts, so that what a fused kernel takes for itself does too. The objects
    that remember the steps for the backward pass are no tensors and do not count: they matter where
    steps are many and small, as in a recurrent network.

    Args:
        run: is called once. Many small steps take long: the profiler notes each.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        run()
    assert found.profiler and found.profiler.kineto_results
    events: list[Any] = found.profiler.kineto_results.events()
    events = [event for event in events if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()  # negative when memory is given back
        most = max(most, held)
    return most
