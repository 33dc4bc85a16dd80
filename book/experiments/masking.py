"""Chapter 8: what each share of 80/10/10 does.

`make experiments NAME=masking` trains small BERTs (those of `sides.py`) on hidden words alone. Of
the chosen tokens the share `masked` becomes `[MASK]`, the share `random` another token, and the
rest stays. Then 15 % of the tokens of other years are chosen, and each model is asked for the word
at every chosen place, three times: all of them hidden, all as they are, and all replaced by a
random token. `hidden`, `shown` and `replaced` are the shares of the right word.
"""

from collections.abc import Iterator
from functools import partial

import torch
from sides import ROWS, Reader, pieces, texts

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import mask_tokens
from attnbook.text import IGNORED, Sequences

STEPS, TESTED, RATE = 1000, 2048, 0.005
SHARES = ((1.0, 0.0), (0.8, 0.0), (0.8, 0.2), (0.8, 0.1))  # masked, random
KINDS = {"hidden": (1.0, 0.0), "shown": (0.0, 0.0), "replaced": (0.0, 1.0)}
SETTINGS = [
    {"masked": masked, "random": random, "seed": seed}
    for seed in range(3)
    for masked, random in SHARES
]


def batch(masked: float, random: float, seed: int, step: int) -> Sequences:
    """What is read at a step."""
    tokens = pieces("train", ROWS, f"{seed} {step}")
    tokenizer, own = texts().tokenizer, 1_000_003 * seed + step
    return mask_tokens(tokens, tokenizer, masked=masked, random=random, seed=own)


@torch.no_grad()
def right(model: Reader, masked: float, random: float) -> float:
    """Share of right words at chosen places of speeches that were never read."""
    tokens = pieces("validation", TESTED, "masking")
    read = mask_tokens(tokens, texts().tokenizer, masked=masked, random=random)
    places = read.targets != IGNORED
    said = model.word_logits(model(read.tokens), places).argmax(-1)
    return round((said == read.targets[places]).double().mean().item(), 4)


def run(masked: float, random: float, seed: int) -> Iterator[dict]:
    """Train one model and ask it three times."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Reader("both")
    train(
        model,
        partial(batch, masked, random, seed),
        lambda read: model.word_loss(model(read.tokens), read.targets),
        STEPS,
        lr=Cosine(RATE, STEPS, warmup=100),
        seed=seed,
    )
    yield {kind: right(model, *shares) for kind, shares in KINDS.items()}


EXPERIMENT = Experiment("masking", SETTINGS, run, tuple(KINDS), "those of sides")

if __name__ == "__main__":
    EXPERIMENT.store()
