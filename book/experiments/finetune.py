"""Chapter 8: a pretrained encoder learns a task from few labels, whole, in part, or not at all.

`make experiments NAME=finetune` makes every run below and stores a row for each: is a snippet of a
film review praise or blame, learnt from 100, 300, 1,000 or all 7,009 labels? The encoder is MiniLM
in the book's own class; it reads 48 tokens at most.

    full    all of it is trained, with a new linear map on its pooler: 22.6 million parameters
    last    only the last of its 6 blocks, the pooler and the map; the states below are kept
    cls     nothing: a logistic regression on the state of [CLS] after the last block
    mean    the same, on the mean of all states of the last block
    cls4    the same, on [CLS] after each of the last four blocks, in a row
    mean4   the same, on the four means in a row
    random  a Transformer of 2 blocks, all trained, that begins with random numbers
    tfidf   no encoder: a logistic regression on TF-IDF of words and of two words in a row

`validation` and `test` are shares of right answers on 1,037 and 2,024 other snippets. The first
chose each rate (the three tried at 1,000 labels are stored), and C of each logistic regression.
`seconds` are those of one core: training with what was chosen, and the encoder's pass over the
labelled snippets where it is done once. `memory` is the most that a fresh process held while it
learnt from the longest snippets, in MB. At all labels the last four methods have no chance in them.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

os.environ["ATTNBOOK_PROGRESS"] = "0"

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from torch.optim import AdamW

from attnbook import assets
from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import BERT, Bert, pack, padding_mask
from attnbook.model.bert import Classifier
from attnbook.text import WordPiece
from attnbook.text.sentiment import epochs, snippets
from attnbook.weights import load_bert

LONGEST, TOGETHER = 48, 64  # tokens of a snippet; snippets that are read at once
SMALL = replace(BERT, d_model=128, n_heads=4, d_ff=512, n_layers=2)
FROZEN = {  # of the features [snippet layer kind d_model]; kind 0 is [CLS], kind 1 the mean
    "cls": np.s_[:, -1, 0],
    "mean": np.s_[:, -1, 1],
    "cls4": np.s_[:, :, 0],
    "mean4": np.s_[:, :, 1],
}
STRENGTHS = ((0.0001, 0.001, 0.01, 0.1, 1.0), (0.3, 1.0, 3.0, 10.0, 30.0))  # C: frozen, tfidf
JUDGED = ("validation", "test")
LABELS, ALL = (100, 300, 1000), 7009
EPOCHS = {
    "last": {100: 16, 300: 8, 1000: 4, ALL: 2},
    "random": {100: 16, 300: 16, 1000: 8, ALL: 3},
    "full": {100: 16, 300: 8, 1000: 3, ALL: 2},
}
RATES = {  # what was taken, and what else was tried at 1,000 labels
    "last": (3e-4, 1e-4, 1e-3),
    "random": (5e-4, 2e-4, 1e-3),
    "full": (1e-4, 5e-5, 2e-4),
}


class Read(NamedTuple):
    """What the frozen encoder makes of the snippets of a split, and how long that takes."""

    below: list[Tensor]  # [token d_model] the input of the last block, of each snippet
    features: np.ndarray  # [snippet layer kind d_model] of the last four blocks
    seconds: float


class LastBlock(nn.Module):
    """The last block of an encoder, its pooler and a new map: the part that is trained alone."""

    def __init__(self, bert: Bert):
        super().__init__()
        task = Classifier(bert, 2)
        self.block, self.pooled = task.bert.stack.blocks[-1], task.bert.pooled
        self.pooler, self.dropout, self.out = task.bert.pooler, task.dropout, task.out

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Scores of the classes."""
        return self.out(self.dropout(self.pooled(self.block(states, mask=mask[:, None]))))


@cache
def minilm() -> Bert:
    """The encoder, which nothing here changes."""
    return load_bert(assets.fetch("minilm"))[0]


@cache
def tokenizer() -> WordPiece:
    return WordPiece.load(assets.fetch("minilm") / "vocab.txt")


@cache
def tokens(split: str) -> list[list[int]]:
    """Token ids of each snippet, as many as are read."""
    return [tokenizer().encode(snippet.text)[: LONGEST - 2] for snippet in snippets(split)]


@cache
def classes(split: str) -> Tensor:
    """1 for praise, 0 for blame, of each snippet."""
    return torch.tensor([snippet.label for snippet in snippets(split)])


def parts(split: str) -> Iterator[list[int]]:
    """All snippets of a split, by length, some at once."""
    rows = tokens(split)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    yield from (order[i : i + TOGETHER] for i in range(0, len(order), TOGETHER))


def batch(split: str, rows: Sequence[int]) -> tuple[Tensor]:
    """What a model reads."""
    return (pack(tokenizer().vocab, [tokens(split)[i] for i in rows], max_len=LONGEST).tokens,)


def kept(split: str, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What the last block reads: states from below, and where there are words."""
    states = [read(split).below[i] for i in rows]
    words = [torch.ones(len(x), dtype=torch.bool) for x in states]
    return pad_sequence(states, batch_first=True), pad_sequence(words, batch_first=True)


@cache
@torch.no_grad()
def read(split: str) -> Read:
    """One pass of the frozen encoder."""
    start = time.process_time()
    bert, n = minilm(), len(tokens(split))
    below, features = [torch.empty(0)] * n, np.empty((n, 4, 2, bert.d_model), np.float32)
    for rows in parts(split):
        (ids,) = batch(split, rows)
        layers = torch.stack(bert.layers(ids)[-4:], 1)  # [snippet layer token d_model]
        words = padding_mask(ids, bert.vocab.pad)[:, None, :, None]
        mean = (layers * words).sum(2) / words.sum(2)
        features[rows] = torch.stack([layers[:, :, 0], mean], 2)
        for i, states in zip(rows, layers[:, -2], strict=True):
            below[i] = states[: len(tokens(split)[i]) + 2].clone()
    return Read(below, features, time.process_time() - start)


def network(method: str, seed: int) -> nn.Module:
    """A network that has learnt nothing of snippets yet."""
    torch.manual_seed(seed)
    if method == "random":
        bert = Bert(tokenizer().vocab, SMALL)
        bert.words = bert.next_sentence = None
    else:
        bert = deepcopy(minilm())
    return LastBlock(bert) if method == "last" else Classifier(bert, 2)


def taught(
    model: nn.Module,
    inputs: Callable[[str, Sequence[int]], tuple[Tensor, ...]],
    rows: Sequence[int],
    steps: int,
    lr: float,
    seed: int,
    split: str = "train",
) -> None:
    """Teach a network some snippets."""
    turns = epochs([len(tokens(split)[i]) for i in rows], seed=seed)

    def learn(step: int) -> tuple[Tensor, ...]:
        some = [rows[i] for i in turns(step)]
        return *inputs(split, some), classes(split)[some]

    train(
        model,
        learn,
        lambda drawn: cross_entropy(model(*drawn[:-1]), drawn[-1]),
        steps,
        lr=Cosine(lr, steps, steps // 10),
        optimizer=partial(AdamW, fused=True),
        seed=seed,
    )


def trained(
    method: str, rows: Sequence[int], steps: int, lr: float, seed: int, split: str = "train"
) -> nn.Module:
    """A network that has learnt from some snippets."""
    model = network(method, seed)
    taught(model, INPUTS[method], rows, steps, lr, seed, split)
    return model


INPUTS = {"full": batch, "last": kept, "random": batch}


@torch.no_grad()
def accuracy(
    model: nn.Module, inputs: Callable[[str, Sequence[int]], tuple[Tensor, ...]], split: str
) -> float:
    """The share of a split that a network gets right."""
    right = 0
    for rows in parts(split):
        right += int((model(*inputs(split, rows)).argmax(1) == classes(split)[rows]).sum())
    return right / len(classes(split))


def fixed(method: str, split: str) -> np.ndarray:
    """What a logistic regression begins with: texts, or features of the frozen encoder."""
    if method == "tfidf":
        return np.array([snippet.text for snippet in snippets(split)])
    found = read(split).features[FROZEN[method]]
    return found.reshape(len(found), -1)


def fitted(method: str, rows: Sequence[int], C: float, split: str = "train") -> Pipeline:
    """A logistic regression that has learnt from some snippets."""
    first = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    first = first if method == "tfidf" else StandardScaler()
    model = make_pipeline(first, LogisticRegression(C=C, max_iter=1000))
    return model.fit(fixed(method, split)[rows], classes(split)[rows].numpy())


def peak(method: str) -> float:
    """The most memory that this process held, in MB, after it learnt from the longest snippets."""
    torch.set_num_threads(1)
    if method in EPOCHS:
        longest = [row for rows in parts("validation") for row in rows][-96:]
        trained(method, longest, 3, 1e-5, 0, "validation")
    else:
        fitted(method, range(len(snippets("validation"))), 1.0, "validation")
    (line,) = (x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    return int(line.split()[1]) / 1000


@cache
def memory(method: str) -> int:
    """`peak` of a process that has done nothing else."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return round(pool.submit(peak, method).result())


def chosen(method: str, rows: Sequence[int]) -> dict[str, float]:
    """The logistic regression that is best on validation: C, scores and seconds."""
    tried = []
    for C in STRENGTHS[method == "tfidf"]:
        start = time.process_time()
        model = fitted(method, rows, C)
        seconds = time.process_time() - start
        scores = {s: float(model.score(fixed(method, s), classes(s))) for s in JUDGED}
        tried.append({"C": C, **scores, "seconds": seconds})
    return max(tried, key=lambda found: found["validation"])


def learnt(
    method: str, rows: Sequence[int], n_epochs: int, lr: float, seed: int
) -> dict[str, float]:
    """A network's scores and seconds."""
    start = time.process_time()
    model = trained(method, rows, n_epochs * -(-len(rows) // 32), lr, seed)
    seconds = time.process_time() - start
    scores = {split: accuracy(model, INPUTS[method], split) for split in JUDGED}
    return {"C": 0.0, **scores, "seconds": seconds}


def run(method: str, labels: int, lr: float, seed: int) -> Iterator[dict]:
    """One run."""
    torch.set_num_threads(1)
    rows = Random(f"finetune {seed}").sample(range(len(tokens("train"))), labels)
    if method in EPOCHS:
        found = learnt(method, rows, EPOCHS[method][labels], lr, seed)
    else:
        found = chosen(method, rows)
    if method in ("last", *FROZEN):
        found["seconds"] += read("train").seconds * labels / ALL
    yield {name: round(value, 4) for name, value in found.items()} | {"memory": memory(method)}


SETTINGS = [
    *(
        {"method": method, "labels": n, "lr": 0.0, "seed": seed}
        for method in (*FROZEN, "tfidf")
        for n in (*LABELS, ALL)
        for seed in range(1 if n == ALL else 5)
    ),
    *(
        {"method": method, "labels": n, "lr": rate, "seed": seed}
        for method, (best, *others) in RATES.items()
        for rate, seeds, budgets in (
            (best, 3, (1000, ALL, 100, 300)),
            *((other, 1, (1000,)) for other in others),
        )
        for n in budgets
        for seed in range(seeds)
    ),
]
MEASURED = ("validation", "test")
TRIED = "last 1e-4 3e-4 1e-3, random 2e-4 5e-4 1e-3, full 5e-5 1e-4 2e-4"
EXPERIMENT = Experiment("finetune", SETTINGS, run, MEASURED, TRIED)

if __name__ == "__main__":
    EXPERIMENT.store()
