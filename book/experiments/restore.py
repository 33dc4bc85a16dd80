"""Chapter 7: capitals and punctuation given back to the words of presidents.

`make experiments NAME=restore` trains every run below and stores a row for each: a Transformer, and
two-way GRU encoders with Bahdanau's decoder ("rnnsearch") and Luong's ("luong"), of equally many
parameters, all with one embedding for source, target and output. On held-out years: `exact` is the
share of pieces with every word, capital and mark right, `copied` of those with every word right,
`capitals` and `marks` are F1 scores. "usual" is no model: it copies, gives each word the capital
that is commoner for it in training, and puts the mark between two words that is commonest there, or
none.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor, nn

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import (
    TINY,
    AdditiveScore,
    BilinearScore,
    Decoder,
    Encoder,
    LuongDecoder,
    Seq2Seq,
    Transformer,
)
from attnbook.text import Pairs, Restoration, Vocabulary
from attnbook.text.restoration import CAPITAL, MARKS

WARMUP, STEPS, TESTED = 50, 900, 1024
WIDTHS = {"rnnsearch": 94, "luong": 98}  # make them as large as the Transformer
RUNS = {  # rate and number of seeds
    "transformer": {0.01: 3},
    "rnnsearch": {0.01: 3},
    "luong": {0.003: 1, 0.01: 1},
}


class Scaled(nn.Embedding):
    """Small vectors that are read at the size that a Transformer reads them at."""

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__(vocab_size, d_model)
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Vectors with numbers of size 1."""
        return super().forward(input) * self.embedding_dim**0.5


def build(model: str, vocab: Vocabulary) -> Seq2Seq:
    """An untrained model with one embedding."""
    if model == "transformer":
        return Transformer(vocab, vocab, TINY, shared=True)
    d = WIDTHS[model]
    if model == "luong":
        decoder = LuongDecoder(vocab, d, BilinearScore(d, d))
    else:
        decoder = Decoder(vocab, d, AdditiveScore(d, d, d))
    rnn = Seq2Seq(Encoder(vocab, d, two_way=True), decoder)
    rnn.encoder.embedding = rnn.decoder.embedding = Scaled(len(vocab), d)
    rnn.decoder.out.weight = rnn.decoder.embedding.weight
    return rnn


def trained(task: Restoration, model: str, lr: float, steps: int, seed: int) -> Seq2Seq:
    """A trained model."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    built = build(model, task.vocab)
    schedule = Cosine(lr, steps, WARMUP)
    train(built, lambda step: task.batch(step, seed=seed), built.loss, steps=steps, lr=schedule)
    return built


def read(words: Sequence[str]) -> tuple[list[str], set[int], set[tuple[int, str]]]:
    """The words alone, which of them have a capital, and which mark stands after which."""
    plain: list[str] = []
    capitals, marks = set(), set()
    for word in words:
        if word == CAPITAL:
            capitals.add(len(plain))
        elif word in MARKS:
            marks.add((len(plain) - 1, word))
        else:
            plain.append(word)
    return plain, capitals, marks


def quality(found: list[list[str]], wanted: list[list[str]]) -> dict[str, float]:
    """Shares of pieces, and F1 = 2 right / (written + wanted) over all pieces."""
    pairs = [(read(a), read(b)) for a, b in zip(found, wanted, strict=True)]

    def f1(sets: list[tuple[set, set]]) -> float:
        right = sum(len(a & b) for a, b in sets)
        return 2 * right / sum(len(a) + len(b) for a, b in sets)

    scores = {
        "exact": sum(a == b for a, b in pairs) / len(pairs),
        "copied": sum(a[0] == b[0] for a, b in pairs) / len(pairs),
        "capitals": f1([(a[1], b[1]) for a, b in pairs]),
        "marks": f1([(a[2], b[2]) for a, b in pairs]),
    }
    return {name: round(score, 4) for name, score in scores.items()}


def usual(task: Restoration, sources: list[list[str]]) -> list[list[str]]:
    """Each word as it is most often written in 50,000 pieces of training."""
    capitals: defaultdict[str, Counter[bool]] = defaultdict(Counter)
    marks: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in task.batch(0, batch_size=50_000).target:
        plain, big, ends = read(task.vocab.decode(row))
        after = dict(ends)
        for i, (word, following) in enumerate(zip(plain, [*plain[1:], ""], strict=True)):
            capitals[word][i in big] += 1
            marks[word, following][after.get(i, "")] += 1

    def likeliest(counts: Counter) -> Any:
        return counts.most_common(1)[0][0] if counts else ""

    written = []
    for source in sources:
        pieces = []
        for pair in zip(source, [*source[1:], ""], strict=True):
            sign = CAPITAL if likeliest(capitals[pair[0]]) else ""
            pieces += [x for x in (sign, pair[0], likeliest(marks[pair])) if x]
        written.append(pieces)
    return written


def held_out(task: Restoration, size: int = TESTED) -> Pairs:
    """Pieces of years that training never sees."""
    return task.batch(0, batch_size=size, split="validation")


def run(model: str, lr: float, steps: int, seed: int) -> Iterator[dict]:
    """One run; "usual" is no model."""
    task = Restoration()
    test = held_out(task)
    wanted = [task.vocab.decode(row) for row in test.target]
    if model == "usual":
        guess = usual(task, [task.vocab.decode(row) for row in test.source])
        yield {"parameters": 0, "seconds": 0, **quality(guess, wanted)}
        return
    start = time.process_time()
    built = trained(task, model, lr, steps, seed)
    seconds = time.process_time() - start
    tokens = built.translate(test.source, max_len=2 * task.n_words).tokens
    yield {
        "parameters": sum(p.numel() for p in built.parameters()),
        "seconds": round(seconds),
        **quality([task.vocab.decode(row) for row in tokens], wanted),
    }


SETTINGS = [
    {"model": "usual", "lr": 0.0, "steps": 0, "seed": 0},
    *(
        {"model": model, "lr": lr, "steps": STEPS, "seed": seed}
        for model, rates in RUNS.items()
        for lr, seeds in rates.items()
        for seed in range(seeds)
    ),
]
MEASURED = ("exact", "copied", "capitals", "marks")
EXPERIMENT = Experiment("restore", SETTINGS, run, MEASURED, "0.003 0.01, not for all")

if __name__ == "__main__":
    EXPERIMENT.store()
