"""Chapter 8: one task by an encoder, a decoder, and an encoder-decoder, each in its own way.

`make experiments NAME=architectures` trains every run below and stores a row for each. The task is
`restoration`: give pieces of 8 words from speeches of presidents their capitals and marks back.
All models have the same width, within one in a hundred equally many parameters, and about as many
seconds to learn: taggers, which write nothing, take more steps in them.

    encoder, tags             4 blocks; a tag for each word, which sees the words on both sides
    decoder, tags             4 blocks; a tag for each word, which sees the words up to it
    decoder, writes           4 blocks; reads the piece, then goes on with the restored one
    encoder-decoder, writes   2 blocks read the piece, 2 with cross-attention write the restored one

A tag says whether the word has a capital, and which mark follows, if any. `exact`, `copied`,
`capitals` and `marks` are those of `restore`, on pieces of held-out years; "usual" is no model.
`passes` is how many passes through the model, one after another, an answer takes, in the mean.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from restore import held_out, quality, read, usual
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import TINY, Stack, Transformer, TransformerDecoder
from attnbook.text import IGNORED, Pairs, Restoration, Vocabulary
from attnbook.text.restoration import CAPITAL, MARKS

STEPS, WARMUP, SEEDS = {"tags": 1500, "writes": 600}, 50, 3
WORDS, KNOWN = 8, 1000
AFTER = ("", *MARKS)  # what may follow a word
DEEP = replace(TINY, n_layers=4)
BOTH = replace(TINY, d_ff=192)  # two blocks there and two here, as many parameters
MODELS = (
    ("encoder", "tags"),
    ("decoder", "tags"),
    ("decoder", "writes"),
    ("encoder-decoder", "writes"),
)
RATES = {0.003: SEEDS, 0.001: 1, 0.01: 1}  # and how many seeds


class Tagger(nn.Module):
    """A stack with one linear map on top: a tag a word, 0 .. 2 * len(AFTER) - 1."""

    def __init__(self, vocab: Vocabulary, *, causal: bool):
        super().__init__()
        self.stack, self.causal = Stack(len(vocab), DEEP), causal
        self.out = nn.Linear(DEEP.d_model, 2 * len(AFTER))

    def forward(self, source: Tensor) -> Tensor:
        """Scores `[batch word tag]`."""
        return self.out(self.stack(source, causal=self.causal))

    def loss(self, batch: Pairs, tags: Tensor) -> Tensor:
        """Mean cross-entropy of the tags."""
        return cross_entropy(self(batch.source).mT, tags)


class Writer(TransformerDecoder):
    """A decoder that reads the source and goes on with the target."""

    def loss(self, batch: Pairs) -> Tensor:
        """Mean cross-entropy of the target's tokens; the source is read only."""
        n, target = batch.source.shape[1], batch.target[:, 1:]
        logits = self(torch.cat([batch.source, batch.target[:, :-1]], 1))[:, n:]
        target = target.masked_fill(~self.vocab.written(target), IGNORED)
        return cross_entropy(logits.mT, target)


Model = Tagger | Writer | Transformer


def build(model: str, way: str, vocab: Vocabulary) -> Model:
    """An untrained model."""
    if way == "tags":
        return Tagger(vocab, causal=model == "decoder")
    if model == "decoder":
        return Writer(vocab, DEEP)
    return Transformer(vocab, vocab, BOTH, shared=True)


def tags_of(words: list[str]) -> list[int]:
    """The tag of each word of a restored piece."""
    plain, capitals, marks = read(words)
    after = dict(marks)
    return [len(AFTER) * (i in capitals) + AFTER.index(after.get(i, "")) for i in range(len(plain))]


def tagged(words: list[str], tags: list[int]) -> list[str]:
    """The restored piece, from its words and their tags."""
    pieces = []
    for word, tag in zip(words, tags, strict=True):
        pieces += [CAPITAL * (tag >= len(AFTER)), word, AFTER[tag % len(AFTER)]]
    return [piece for piece in pieces if piece]


def trained(task: Restoration, model: str, way: str, lr: float, seed: int) -> Model:
    """A trained model."""
    torch.manual_seed(seed)
    built = build(model, way, task.vocab)

    def learn(step: int) -> tuple:
        pairs = task.batch(step, seed=seed)
        if way == "writes":
            return (pairs,)
        return pairs, torch.tensor([tags_of(task.vocab.decode(row)) for row in pairs.target])

    schedule = Cosine(lr, STEPS[way], WARMUP)
    loss = cast(Callable[..., Tensor], built.loss)
    train(built, learn, lambda batch: loss(*batch), STEPS[way], lr=schedule)
    return built


@torch.no_grad()
def restored(task: Restoration, model: Model, source: Tensor) -> list[list[str]]:
    """What a model makes of pieces."""
    if isinstance(model, Tagger):
        sources = map(task.vocab.decode, source)
        found = model(source).argmax(-1).tolist()
        return [tagged(words, tags) for words, tags in zip(sources, found, strict=True)]
    if isinstance(model, Writer):
        start = torch.full((len(source), 1), task.vocab.bos)
        tokens = model.generate(torch.cat([source, start], 1), 3 * WORDS).tokens
    else:
        tokens = model.translate(source, max_len=3 * WORDS).tokens
    return [task.vocab.decode(row) for row in tokens]


def run(model: str, way: str, lr: float, seed: int) -> Iterator[dict]:
    """One run."""
    torch.set_num_threads(1)
    task = Restoration(WORDS, KNOWN)
    test = held_out(task)
    wanted = [task.vocab.decode(row) for row in test.target]
    size, seconds = 0, 0.0
    if model == "usual":
        found = usual(task, [task.vocab.decode(row) for row in test.source])
    else:
        start = time.process_time()
        built = trained(task, model, way, lr, seed)
        seconds = time.process_time() - start
        size = sum(p.numel() for p in built.parameters())
        found = restored(task, built, test.source)
    written = [len(words) + 1 if way == "writes" else model != "usual" for words in found]
    yield {
        "parameters": size,
        "seconds": round(seconds),
        "passes": round(sum(written) / len(written), 1),
        **quality(found, wanted),
    }


SETTINGS = [
    {"model": "usual", "way": "none", "lr": 0.0, "seed": 0},
    *(
        {"model": model, "way": way, "lr": lr, "seed": seed}
        for lr, seeds in RATES.items()
        for model, way in MODELS
        for seed in range(seeds)
    ),
]
MEASURED = ("exact", "copied", "capitals", "marks")
EXPERIMENT = Experiment("architectures", SETTINGS, run, MEASURED, "0.001 0.003 0.01")

if __name__ == "__main__":
    EXPERIMENT.store()
