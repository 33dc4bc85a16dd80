"""What the language models of chapter 7 share: models of characters, data, recipe, measure.

`language_rates.py`, `language.py`, `depth.py` and `variants.py` train by it: windows of 128
characters of presidents' speeches, Noam's schedule up to a rate `lr` at step 100. A row for each
recorded step and each quarter of windows of 512 characters of speeches that were never taught:
bits per character among the 128 that end at `place`. The first quarter is the length that was
taught, the others lie beyond. `seconds` is processor time spent on training, one thread.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, glu, pad

from attnbook.learn import Noam, train
from attnbook.learn.loop import Run
from attnbook.learn.tables import load
from attnbook.model import TransformerConfig, TransformerDecoder
from attnbook.model.costs import operations
from attnbook.text import Sequences
from attnbook.text.speeches import VOCAB, windows

LENGTH, BATCH, WARMUP = 128, 8, 100
QUARTERS = range(LENGTH, 4 * LENGTH + 1, LENGTH)
BASE = TransformerConfig(d_model=64, n_heads=4, d_ff=256, n_layers=4, positions="rotary")


class LanguageModel(nn.Module):
    """Embedding, a causal network between vectors, and the embedding again as output matrix."""

    def __init__(self, d_model: int, network: nn.Module):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCAB), d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.network = network

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the character after each one: [batch n vocab]."""
        x = self.embedding(tokens) * self.embedding.embedding_dim**0.5
        return self.network(x) @ self.embedding.weight.T


class States(nn.GRU):
    """A GRU's states alone."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[0]


class Convolutions(nn.Module):
    """Gated convolutions, each with twice the gaps of the one before: at width 3, n of them see
    2^(n + 1) - 1 characters. Residuals and norms as in a Transformer (pre-norm)."""

    def __init__(self, d_model: int, n_layers: int, width: int = 3):
        super().__init__()
        self.width = width
        self.layers = nn.ModuleList(
            nn.Conv1d(d_model, 2 * d_model, width, dilation=2**i) for i in range(n_layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(n_layers + 1))

    def forward(self, x: Tensor) -> Tensor:
        *norms, last = self.norms
        for i, (layer, norm) in enumerate(zip(self.layers, norms, strict=True)):
            before = (self.width - 1) * 2**i
            x = x + glu(layer(pad(norm(x).mT, (before, 0))), dim=1).mT
        return last(x)


class Started(nn.Module):
    """One convolution, then the blocks of a Transformer, whose feed-forward networks pay for it."""

    def __init__(self, width: int, d_ff: int):
        super().__init__()
        config = replace(BASE, d_ff=d_ff)
        self.first = Convolutions(config.d_model, 1, width)
        self.blocks = TransformerDecoder(VOCAB, config).stack.blocks
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x, causal=True)
        return self.norm(x)


def transformer(config: TransformerConfig) -> Callable[[], nn.Module]:
    """Makes a Transformer of characters."""
    return lambda: TransformerDecoder(VOCAB, config)


def parameters(model: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for p in model.parameters())


def of_base_size(config: TransformerConfig) -> TransformerConfig:
    """The same with the d_ff that makes it as large as `BASE`."""
    one, two = (parameters(transformer(replace(config, d_ff=d_ff))()) for d_ff in (1, 2))
    d_ff = 1 + (parameters(transformer(BASE)()) - one) / (two - one)
    return replace(config, d_ff=round(d_ff))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "transformer": transformer(BASE),
    "sinusoidal": transformer(replace(BASE, positions="sinusoidal")),
    "gru": lambda: LanguageModel(176, States(176, 176, batch_first=True)),
    "convolution": lambda: LanguageModel(74, Convolutions(74, 6)),
    "started_3": lambda: LanguageModel(64, Started(3, 208)),
    "started_1": lambda: LanguageModel(64, Started(1, 240)),
}


def bits(model: nn.Module, pieces: Sequences) -> Tensor:
    """Bits that the model needs for each next character: [batch n]."""
    losses = cross_entropy(model(pieces.tokens).mT, pieces.targets, reduction="none")
    return losses / math.log(2)


@torch.no_grad()
def measure(model: nn.Module, pieces: Sequences) -> list[float]:
    """Mean bits per character in each quarter of the held-out windows."""
    return bits(model, pieces).unflatten(1, (-1, LENGTH)).mean((0, 2)).tolist()


def best_rate(model: str) -> float:
    """Of the rates that `language_rates` tried, the one with the fewest bits at taught length."""
    table = load("language_rates")
    mine = table[(table["model"] == model) & (table["place"] == LENGTH)]
    bits = {lr: mine["bits"][mine["lr"] == lr].mean() for lr in mine["lr"]}
    return float(min(bits, key=bits.__getitem__))


def learn(
    make: Callable[[], nn.Module], seed: int, lr: float, steps: tuple[int, ...]
) -> Iterator[dict]:
    """Train one model up to the last of the steps and measure it at each of them."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = make()
    held_out = windows("validation", QUARTERS[-1], 0, batch_size=64)
    counted = windows("train", LENGTH, 0, batch_size=1)
    found: list[tuple[float, list[float]]] = []
    begin = time.process_time()

    def record(training: Run) -> None:
        nonlocal begin
        if training.step in steps:
            seconds = time.process_time() - begin
            found.append((seconds, measure(model, held_out)))
            begin = time.process_time() - seconds

    train(
        model,
        lambda step: windows("train", LENGTH, step, batch_size=BATCH, seed=seed),
        lambda pieces: bits(model, pieces).mean(),
        steps=steps[-1],
        lr=Noam(1, WARMUP, factor=lr * WARMUP**0.5),  # rises to lr
        on_step=[record],
        seed=seed,
    )
    for step, (seconds, quarters) in zip(steps, found, strict=True):
        for place, value in zip(QUARTERS, quarters, strict=True):
            yield {
                "parameters": parameters(model),
                "operations": operations(lambda: bits(model, counted).mean()) // LENGTH,
                "step": step,
                "seconds": round(seconds, 1),
                "place": place,
                "bits": round(value, 4),
            }
