"""SmolLM2 in the book's own decoder: loading, memory, and generation against `transformers`.

make bench NAME=smollm2

Both go on with one prompt from the same weights in float32, greedily, with a cache, on the same
threads (OMP_NUM_THREADS, or as many as there are processors). They take turns in one process; the
ratio is the median of that of pairs of turns, in seconds of the clock. Each token needs all weights
once: bytes of the weights by seconds is what generation reads, and a sum over a large tensor tells
what the memory gives to the same threads. Bars: loading 10 s and 1.2 GB at most, the same ids,
logits within 1e-3, at least as many tokens a second as `transformers`.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from attnbook import assets
from attnbook.weights.pretrained import load_smollm2
from benchmarks import _stored

SECONDS, MEGABYTES, LOGITS, RATIO = 10, 1200, 1e-3, 1.0
PAIRS, NEW, PROMPT = 7, 60, "Once upon a time"
LOAD = """if True:
    import resource, sys, time
    import torch
    from attnbook.weights.pretrained import load_smollm2
    begin = time.perf_counter()
    load_smollm2(getattr(torch, sys.argv[1]))
    seconds = time.perf_counter() - begin
    with open("/proc/self/status") as status:
        (peak,) = (int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(seconds, peak * 1024 / 1e6)
"""


def timed(generate: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Wall seconds, and the ids."""
    begin = time.perf_counter()
    ids = generate()
    return time.perf_counter() - begin, ids


def bandwidth() -> float:
    """Bytes per second that a sum over 500 MB reads, the best of ten."""
    many = torch.ones(125_000_000)
    best = min(timed(many.sum)[0] for _ in range(10))
    return many.nbytes / best


def main() -> None:
    logging.disable_progress_bar()
    rows = []
    for kind in ("float32", "bfloat16"):
        command = [sys.executable, "-c", LOAD, kind]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, peak = map(float, out.split())
        print(f"loading in {kind:8} {seconds:6.1f} s, peak of the process {peak:6.0f} MB")
        what = f"SmolLM2 in {kind}, loading"
        rows.append(_stored.budget(f"{what}: time", "s", [seconds], SECONDS))
        rows.append(_stored.budget(f"{what}: memory", "MB", [peak], MEGABYTES))
    ours, tokenizer = load_smollm2()
    folder = assets.fetch("smollm2")
    (path,) = folder.iterdir()
    theirs: Any = AutoModelForCausalLM.from_pretrained(folder, gguf_file=path.name).eval()
    prompt = torch.tensor([tokenizer.encode(PROMPT)])
    n = prompt.shape[1]

    def mine() -> Tensor:
        return ours.generate(prompt, NEW).tokens[0]

    def other() -> Tensor:
        asked = {"max_new_tokens": NEW, "do_sample": False, "use_cache": True}
        return theirs.generate(prompt, attention_mask=torch.ones_like(prompt), **asked)[0, n:]

    with torch.no_grad():
        far = float((ours(prompt) - theirs(prompt).logits).abs().max())
    pairs, same = [], True
    for turn in range(PAIRS + 1):
        if turn % 2:  # alternate the order
            (b, there), (a, here) = timed(other), timed(mine)
        else:
            (a, here), (b, there) = timed(mine), timed(other)
        same &= here.equal(there)
        pairs.append((len(here) / a, len(here) / b, b / a))
    a, b, ratio = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
    weights = sum(weight.nbytes for weight in ours.parameters())
    limit = bandwidth()
    print(f"threads {torch.get_num_threads()}, logits differ by {far:.0e}, same ids: {same}")
    print(f"tokens a second: ours {a:.1f}, transformers {b:.1f}, ratio {ratio:.2f}")
    print(
        f"weights {weights / 1e6:.0f} MB a token: ours reads {weights * a / 1e9:.1f} GB/s,", end=""
    )
    print(f" the memory gives {limit / 1e9:.1f} GB/s: {weights * a / limit:.0%} of the limit")
    what, peer = "SmolLM2, writing in Python", "transformers"
    asked: dict[str, Any] = {"package": peer, "bar": RATIO, "more": True}
    rows.append(_stored.against(what, "tokens/s", pairs[1:], peer, **asked))
    _stored.finish(__file__, rows, right=same and far <= LOGITS)


if __name__ == "__main__":
    main()
