"""Chapter 7: what language models of characters write after 200, 1,600 and 5,000 steps.

`make experiments NAME=lines` trains the models of `language` again, with the seed 0 and the same
rates, up to each of these steps, and lets each write on from `BEGUN`: every character is drawn from
the model's own distribution, with the same random numbers for all. A row is one character: its
`place` in the line and its `code` in Unicode, as tables hold plain words only. The bits of these
models are those of `language`.
"""

from collections.abc import Iterator
from itertools import product

import torch
from characters import MODELS, best_rate, learn
from torch import nn

from attnbook.learn.tables import Experiment
from attnbook.text.speeches import CHARACTERS, VOCAB, encode

BEGUN, WRITTEN = "The people of the ", 90
STEPS = (200, 1600, 5000)
KINDS = ("transformer", "gru", "convolution", "started_3")


@torch.no_grad()
def line(model: nn.Module) -> str:
    """What a model draws behind `BEGUN`."""
    torch.manual_seed(0)
    ids = encode(BEGUN)
    specials = len(VOCAB) - len(CHARACTERS)
    for _ in range(WRITTEN):
        p = model(ids[None])[0, -1, specials:].softmax(-1)
        ids = torch.cat([ids, specials + torch.multinomial(p, 1)])
    return "".join(VOCAB.decode(ids))[len(BEGUN) :]


def run(model: str, seed: int, lr: float, step: int) -> Iterator[dict]:
    """One run."""
    made: list[nn.Module] = []

    def make() -> nn.Module:
        made.append(MODELS[model]())
        return made[0]

    list(learn(make, seed, lr, (step,)))
    for place, character in enumerate(line(made[0])):
        yield {"place": place, "code": ord(character)}


SETTINGS = [
    {"model": model, "seed": 0, "lr": best_rate(model), "step": step}
    for step, model in product(STEPS, KINDS)
]
EXPERIMENT = Experiment("lines", SETTINGS, run, (), "those of language_rates")

if __name__ == "__main__":
    EXPERIMENT.store()
