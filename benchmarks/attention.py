"""Fused against step-by-step attention for 2,048 tokens: time, and memory beyond the inputs.

make bench NAME=attention

The explicit path keeps the weights of every head; PyTorch's fused path, which `MultiHeadAttention`
takes when nobody records its weights, never has them. Memory is the growth of the peak of a fresh
process by one call, after a call on a few tokens has loaded all libraries. The bars are for the
causal forward pass: equal to 1e-5, at least 3 times faster, at most a tenth of the extra memory.
"""

import statistics
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import torch

from attnbook.model.attention import MultiHeadAttention
from attnbook.model.masks import causal_mask
from attnbook.model.recording import recorded
from benchmarks import _stored

N, D_MODEL, N_HEADS = 2048, 256, 8
EQUAL, FASTER, MEMORY = 1e-5, 3, 0.1
CASES = ("causal", "no mask", "boolean mask", "causal, backward")


def call(case: str, stepwise: bool, n: int = N) -> torch.Tensor:
    """The layer's output for n tokens or, with a backward pass, the gradient of the input."""
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(D_MODEL, N_HEADS), torch.randn(1, n, D_MODEL)
    return step(layer, x, case, stepwise)


def step(layer: MultiHeadAttention, x: torch.Tensor, case: str, stepwise: bool) -> torch.Tensor:
    mask = causal_mask(x.shape[1])[None] if case == "boolean mask" else None
    backward, causal = case.endswith("backward"), case.startswith("causal")
    x = x.clone().requires_grad_(backward)
    path = recorded(layer) if stepwise else nullcontext()
    with torch.set_grad_enabled(backward), path:
        out = layer(x, mask=mask, causal=causal)
    if not backward:
        return out
    return torch.autograd.grad(out.square().sum(), x)[0]


def seconds(case: str) -> list[tuple[float, float]]:
    """Of several pairs of calls, fused and step by step."""
    layer, x = MultiHeadAttention(D_MODEL, N_HEADS), torch.randn(1, N, D_MODEL)
    pairs = []
    for _ in range(5):
        both = []
        for stepwise in (False, True):
            start = time.perf_counter()
            step(layer, x, case, stepwise)
            both.append(time.perf_counter() - start)
        pairs.append((both[0], both[1]))
    return pairs


def peak() -> int:
    """The peak memory of this process in bytes, as Linux counts it."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def megabytes(case: str, stepwise: bool) -> float:
    """Growth of a fresh process's peak memory by one call."""
    command = [sys.executable, "-m", "benchmarks.attention", case, str(int(stepwise))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout) / 1e6


def main() -> None:
    print(f"{N} tokens, d_model {D_MODEL}, {N_HEADS} heads, {torch.get_num_threads()} threads")
    print("                  step by step      fused        ratio")
    rows, right = [], True
    for case in CASES:
        apart = (call(case, True) - call(case, False)).abs().max().item()
        pairs = seconds(case)
        quick, slow = (statistics.median(column) for column in zip(*pairs, strict=True))
        large, small = megabytes(case, True), megabytes(case, False)
        print(f"{case:16}  {1e3 * slow:9.0f} ms {1e3 * quick:7.0f} ms {slow / quick:9.1f} faster")
        print(f"{'':16}  {large:9.0f} MB {small:7.0f} MB {small / large:9.2f} of the memory")
        print(f"{'':16}  differ by {apart:.0e}")
        right &= apart <= EQUAL
        faster, memory = (FASTER, 1 / MEMORY) if case == "causal" else (None, None)
        what, peer = f"attention of {N} tokens, {case}", "step by step"
        times = [(1e3 * a, 1e3 * b) for a, b in pairs]
        rows.append(_stored.against(f"{what}: time", "ms", times, peer, bar=faster))
        held = [(small, large)]
        rows.append(_stored.against(f"{what}: memory", "MB", held, peer, bar=memory))
    _stored.finish(__file__, rows, right=right)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        case, stepwise = sys.argv[1], bool(int(sys.argv[2]))
        call(case, stepwise, n=16)
        before = peak()
        call(case, stepwise)
        print(peak() - before)
    else:
        main()
