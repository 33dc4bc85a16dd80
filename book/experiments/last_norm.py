"""Chapter 6: the norms inside the blocks and the decoder's last norm, one at a time.

`make experiments NAME=last_norm` trains small Transformers of 12 blocks, six on each side, on
`numbers` at three rates, and stores a row a run. `inside` is 1 where the blocks have norms, in
"pre" order. `gain` is 0 where no norm follows the decoder's last block, before the output matrix;
else the gain with which that norm starts: 1, or 0.177 (1 over the square root of the width 32, with
which the first loss is near that of even odds). The encoder's last norm is in all of them. `first`
is the loss of the first step; `half` and `loss` are training losses in nats a morpheme, the mean of
20 steps in the middle and at the end of 100 steps, nan if it overflowed.
"""

from collections.abc import Iterator
from itertools import product

from norms import SEEDS, STEPS, losses_of, mean

from attnbook.learn.tables import Experiment

RATES, BLOCKS, GAINS = (0.001, 0.003, 0.01), 12, (0.0, 0.177, 1.0)


def run(*, lr: float, seed: int, inside: int, gain: float) -> Iterator[dict]:
    """One run."""
    losses = losses_of("pre" if inside else "none", BLOCKS, seed, lr, 0, gain=gain)
    half, loss = mean(losses, STEPS // 2), mean(losses, STEPS)
    yield {"first": round(losses[0], 4), "half": half, "loss": loss}


SETTINGS = [
    {"lr": lr, "seed": seed, "inside": inside, "gain": gain}
    for lr, seed, inside, gain in product(RATES, SEEDS, (0, 1), GAINS)
]
EXPERIMENT = Experiment("last_norm", SETTINGS, run, ("loss",), "0.001 0.003 0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
