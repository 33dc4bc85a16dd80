"""How many threads PyTorch starts, and how they wait; decided before PyTorch is imported."""

import math
import os
import sys
from pathlib import Path


def quota(root: Path = Path("/")) -> float:
    """How many cores the control groups of this process allow; infinity without a limit.

    A hub may give a container one core of a machine that has many. Counting cores does not show
    such a quota: PyTorch would start a thread for each core of the machine, and the threads would
    compete.

    Args:
        root: the folder that holds `proc` and `sys`.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return math.inf
    limits = [math.inf]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / controllers  # version 2 names no controllers
        inside = mount / path.lstrip("/")
        limits += [
            _limit(folder) for folder in (inside, *inside.parents) if folder.is_relative_to(mount)
        ]
    return min(limits)


def _limit(folder: Path) -> float:
    """Cores that one control group allows: the quota over the period, in microseconds."""
    try:
        if (file := folder / "cpu.max").exists():
            most, period = file.read_text().split()
        else:
            most, period = ((folder / f"cpu.cfs_{x}_us").read_text() for x in ("quota", "period"))
        return int(most) / int(period) if int(most) > 0 else math.inf
    except (OSError, ValueError):  # no such file, or no limit: `max`
        return math.inf


def share() -> None:
    """Start at most one thread for each available core, and let waiting threads sleep.

    OpenMP's threads wait by spinning. Beside another program, a spinning thread occupies the core
    that the thread it waits for needs, and a chapter runs three to five times slower. Environment
    variables that are already set (`OMP_NUM_THREADS`, `OMP_WAIT_POLICY`) are kept.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = max(1, math.floor(min(quota(), mine)))
    if cores == mine or "OMP_NUM_THREADS" in os.environ:  # OpenMP itself counts these
        return
    os.environ["OMP_NUM_THREADS"] = str(cores)
    if torch := sys.modules.get("torch"):  # it has already counted cores
        torch.set_num_threads(min(cores, torch.get_num_threads()))
