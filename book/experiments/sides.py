"""Chapter 8: the same gaps, filled from both sides and from the left alone.

`make experiments NAME=sides` trains every run below and stores a row for each: Transformers of the
same size, on the same pieces of presidents' speeches, 32 tokens each.

    both   sees all words; guesses hidden ones, as BERT does
    left   sees the words before; guesses hidden ones, as many as "both" does
    next   sees the words before; predicts every next word, as GPT does

Then one word of each of 4,096 pieces of other years is hidden. `right` is the share that a model
guesses, `common` that of the commonest token. The rate was chosen with seed 0 among those that are
stored. Three tokens in ten are hidden, twice as many as BERT hides.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor, nn

from attnbook.learn import Cosine, train
from attnbook.learn.pretraining import SpeechPairs
from attnbook.learn.tables import Experiment
from attnbook.model import BERT, Bert, mask_tokens
from attnbook.text import Sequences
from attnbook.weights import sotu_bert

LENGTH, ROWS, STEPS, TESTED = 32, 64, 1000, 4096
SHARE, START = 0.3, 0.1  # of tokens that are chosen; standard deviation of new matrices
SMALL = replace(
    BERT, d_model=64, n_heads=4, d_ff=128, n_layers=2, norm="pre", positions="rotary", dropout=0.0
)
RATES = (0.01, 0.005, 0.02)  # the best of each with seed 0 first
SETTINGS = [
    {"model": model, "lr": lr, "seed": seed}
    for model in ("both", "left", "next")
    for lr in RATES
    for seed in range(3 if lr == RATES[0] else 1)
]


@cache
def texts() -> SpeechPairs:
    """Speeches in tokens of the book's BERT."""
    return SpeechPairs(sotu_bert()[1])


def pieces(split: str, rows: int, seed: str) -> Tensor:
    """Pieces of speeches, `[row LENGTH]`; a longer speech is drawn more often."""
    rng, speeches = Random(f"{split} {seed}"), texts().speeches(split)
    drawn = rng.choices(speeches, [max(0, len(ids) - LENGTH) for ids in speeches], k=rows)
    begins = [rng.randrange(len(ids) - LENGTH) for ids in drawn]
    return torch.tensor([ids[b : b + LENGTH] for ids, b in zip(drawn, begins, strict=True)])


class Reader(Bert):
    """A BERT that may be held to the words before each place."""

    def __init__(self, model: str):
        super().__init__(texts().tokenizer.vocab, SMALL)
        self.exercise = model
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=START)

    def forward(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """States `[batch token d_model]`."""
        return self.stack(tokens, causal=self.exercise != "both")

    def batch(self, step: int, seed: int) -> Sequences:
        """What it reads, and what it is to say where."""
        tokens = pieces("train", ROWS, f"{seed} {step}")
        if self.exercise == "next":
            return Sequences(tokens[:, :-1], tokens[:, 1:])
        return mask_tokens(tokens, texts().tokenizer, share=SHARE, seed=1_000_003 * seed + step)

    @torch.no_grad()
    def fill(self, tokens: Tensor, gaps: Tensor) -> Tensor:
        """The likeliest token at one gap of each row."""
        rows = torch.arange(len(tokens))
        hidden = tokens.clone()
        hidden[rows, gaps] = texts().tokenizer.mask
        places = gaps - 1 if self.exercise == "next" else gaps
        states = self(hidden)[rows, places]
        return self.word_logits(states[:, None])[:, 0].argmax(-1)


def learn(kind: type[Reader], model: str, lr: float, seed: int) -> dict:
    """Train one model, and fill the gaps."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    reader = kind(model)
    train(
        reader,
        lambda step: reader.batch(step, seed),
        lambda batch: reader.word_loss(reader(batch.tokens), batch.targets),
        STEPS,
        lr=Cosine(lr, STEPS, warmup=100),
        seed=seed,
    )
    tokens = pieces("validation", TESTED, "gaps")
    gaps = torch.randint(4, LENGTH - 4, (TESTED,), generator=torch.Generator().manual_seed(0))
    answers = tokens[torch.arange(TESTED), gaps]
    common = torch.bincount(pieces("train", TESTED, "common").flatten()).argmax()
    return {
        "right": round((reader.fill(tokens, gaps) == answers).double().mean().item(), 4),
        "common": round((answers == common).double().mean().item(), 4),
    }


def run(model: str, lr: float, seed: int) -> Iterator[dict]:
    """One run."""
    yield learn(Reader, model, lr, seed)


EXPERIMENT = Experiment("sides", SETTINGS, run, ("right",), "0.005 0.01 0.02")

if __name__ == "__main__":
    EXPERIMENT.store()
