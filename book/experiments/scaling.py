"""Chapter 9: how the loss falls with parameters and with text, and where that ends.

`make experiments NAME=scaling` trains decoders of five sizes, with the choices of the recipe
`small`, each for `STEPS` updates of 2,048 tokens, at two rates. The smallest text is read many
times, the whole not once: `megabytes` is how much there was to read, whole speeches in an order by
chance. `body` counts the parameters of the blocks. `bits` is what a byte of the beginnings of all
held-out speeches needs, `seen` the same of speeches of the text to read from.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product

import torch
from torch import Tensor

from attnbook.learn import Muon, StableDecay, bits_per_byte, train
from attnbook.learn.engine import next_token_loss
from attnbook.learn.settings import read_settings
from attnbook.learn.tables import Experiment
from attnbook.model import TransformerDecoder
from attnbook.text import BytePair
from attnbook.text.corpus import join, windows
from attnbook.text.speeches import speeches

SMALL = read_settings("small")
CONTEXT, ROWS = SMALL.train.context, SMALL.train.batch
STEPS, WARMUP, BEGINNING, D_HEAD = 256, 12, 4000, 16
SIZES = {16: 1, 32: 2, 64: 2, 96: 4, 144: 5}  # d_model and layers
PARTS = (0.1, 0.4, 1.6)  # megabytes
ALL = 11.0
RATES = (0.01, 0.02)
RUNS = [*((d, ALL) for d in SIZES), *((64, part) for part in PARTS)]
SETTINGS = [
    {"d_model": d, "megabytes": megabytes, "lr": lr, "seed": seed}
    for seed, (d, megabytes), lr in product(range(2), RUNS, RATES)
]


@cache
def tokenizer() -> BytePair:
    """Of all that training may read."""
    return BytePair.train((speech.text for speech in speeches("train")), SMALL.data.vocab_size)


@cache
def read(megabytes: float) -> tuple[str, ...]:
    """Speeches of training in an order by chance, the last one cut."""
    texts, kept, left = [speech.text for speech in speeches("train")], [], int(megabytes * 1e6)
    random.Random(0).shuffle(texts)
    for text in texts:
        kept.append(text[: max(0, left)])
        left -= len(text)
    return tuple(filter(None, kept))


@cache
def stream(megabytes: float) -> Tensor:
    """The same as tokens."""
    return join(tokenizer(), read(megabytes))


def run(d_model: int, megabytes: float, lr: float, seed: int) -> Iterator[dict]:
    """Train one model and measure it."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    heads, layers = d_model // D_HEAD, SIZES[d_model]
    config = replace(SMALL.model, d_model=d_model, d_ff=3 * d_model, n_heads=heads, n_layers=layers)
    model = TransformerDecoder(tokenizer().vocab, config)
    train(
        model,
        lambda step: windows(stream(megabytes), CONTEXT, step, batch_size=ROWS, seed=seed),
        partial(next_token_loss, model),
        STEPS,
        lr=StableDecay(lr, STEPS, WARMUP, decay=STEPS // 2),
        optimizer=Muon(beta2=SMALL.optimizer.beta2),
        seed=seed,
    )
    held_out = [speech.text[:BEGINNING] for speech in speeches("validation")]
    seen = [text[:BEGINNING] for text in read(megabytes)][: len(held_out)]
    bits = partial(bits_per_byte, model, tokenizer(), n=CONTEXT)
    yield {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "body": sum(weight.numel() for weight in model.stack.blocks.parameters()),
        "bits": round(bits(held_out), 4),
        "seen": round(bits(seen), 4),
    }


EXPERIMENT = Experiment("scaling", SETTINGS, run, ("bits", "seen"), " ".join(map(str, RATES)))

if __name__ == "__main__":
    EXPERIMENT.store()
