"""Threads: no more than the cores that this process may use, and none that spins."""

import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from attnbook import cores


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V1 = "sys/fs/cgroup/cpu,cpuacct"
QUOTAS = {
    "none": ({}, math.inf),
    "version 2, no limit": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"},
        math.inf,
    ),
    "version 2, a container": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"},
        1.5,
    ),
    "version 2, the limit of a parent": (
        {
            "proc/self/cgroup": "0::/user/hub/notebook\n",
            "sys/fs/cgroup/user/cpu.max": "100000 50000\n",
            "sys/fs/cgroup/user/hub/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user/hub/notebook/cpu.max": "300000 100000\n",
        },
        2.0,
    ),
    "version 1": (
        {
            "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n",
            f"{V1}/cpu.cfs_quota_us": "50000\n",  # a container sees its own group as the root
            f"{V1}/cpu.cfs_period_us": "100000\n",
        },
        0.5,
    ),
    "version 1, no limit": (
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/\n",
            f"{V1}/cpu.cfs_quota_us": "-1\n",
            f"{V1}/cpu.cfs_period_us": "100000\n",
        },
        math.inf,
    ),
    "nonsense": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "many\n"},
        math.inf,
    ),
}


@pytest.mark.parametrize("case", QUOTAS)
def test_the_quota_is_that_of_the_tightest_control_group(case, tmp_path):
    files, cores_allowed = QUOTAS[case]
    assert cores.quota(tree(tmp_path, files)) == cores_allowed


@pytest.mark.parametrize(("allowed", "threads"), [(1.0, "1"), (0.5, "1"), (2.7, "2"), (9.0, None)])
def test_a_quota_below_the_cores_sets_the_number_of_threads(allowed, threads, monkeypatch):
    """Of 64 cores of the machine four may be used, which OpenMP sees by itself."""
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "kept")  # so that it is put back
        monkeypatch.delenv(name)
    monkeypatch.setattr(cores, "quota", lambda: allowed)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 6, 8}, raising=False)
    asked = list[int]()
    loaded = SimpleNamespace(get_num_threads=lambda: 64, set_num_threads=asked.append)
    monkeypatch.setitem(sys.modules, "torch", loaded)
    cores.share()
    assert asked == ([int(threads)] if threads else []), "a PyTorch that is there has counted"
    assert os.environ.get("OMP_NUM_THREADS") == threads
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def test_what_the_environment_says_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setattr(cores, "quota", lambda: 1.0)
    cores.share()
    assert (os.environ["OMP_NUM_THREADS"], os.environ["OMP_WAIT_POLICY"]) == ("3", "ACTIVE")


def test_importing_the_package_comes_before_pytorch_counts_its_threads():
    """PyTorch reads the environment once, when it is imported."""
    code = "import attnbook, os, sys; print('torch' in sys.modules, os.environ['OMP_WAIT_POLICY'])"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert run.stdout.split() == ["False", "PASSIVE"], run.stderr
