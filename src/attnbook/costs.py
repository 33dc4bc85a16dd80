"""What a computation holds while it runs; what it computes is counted by `metrics.operations`."""

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile


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
