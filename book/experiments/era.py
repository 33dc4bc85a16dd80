"""Chapter 9: GPT-1's fine-tuning, near what was read before and far from it.

`make experiments NAME=era` makes every run below and stores a row for each. Two tasks are learnt
from 200 or 1,000 labels: `era`, from which of four times (before 1850, 1850 to 1909, 1910 to 1969,
since 1970) is a sentence of a president, and `sentiment`, is a snippet of a film review praise or
blame. Eras are equally frequent. Sentences have 8 to 40 words and no digit, so that no date tells.

    pretrained  the book's own GPT, which has read other years' speeches, those of the labelled
                sentences among them, and no review
    random      the same model with random numbers, for as many updates
    longer      the same for four times as many
    tfidf       no GPT: a logistic regression on TF-IDF of words and of two words in a row

`auxiliary` is the share of the language model's loss in that of fine-tuning, GPT-1's lambda.
`validation` and `test` are shares of right answers: of `era` in years that end in 5, which neither
GPT nor task has read, in turns one for each. The first chose C of each logistic regression, and
the rate of `pretrained` by one run for each of three at 1,000 labels of `era`. For `random` 0.001
and 0.003 came out too near to tell, and 0.003 was taken. (All these runs are stored.) `bits` is
what the fine-tuned model needs for a token of 200 texts of the test as a language model; 0 for
tfidf.
"""

import math
import os
from collections.abc import Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import Any, NamedTuple

os.environ["ATTNBOOK_PROGRESS"] = "0"

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import Tensor, nn
from torch.optim import AdamW

from attnbook.learn import Cosine, train
from attnbook.learn.tables import Experiment
from attnbook.model import TransformerDecoder
from attnbook.model.gpt import Classifier, lay_out, with_marks
from attnbook.text.sentiment import epochs, snippets
from attnbook.text.speeches import sentences, speeches
from attnbook.weights import sotu_gpt

BOUNDS = (1850, 1910, 1970)  # the years in which an era begins, but the first
POOL, JUDGED = 500, 240  # sentences of an era: to be labelled, and of each share that judges
WORDS, LONGEST, BATCH, DROPOUT = (8, 40), 48, 32, 0.1
JUDGING, SPOKEN = 1000, 200  # the most texts that judge, and that are asked for bits
STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # C
SPLITS = ("validation", "test")
EPOCHS = {200: 8, 1000: 3}
RATES = {  # what was taken, and what else was tried at 1,000 labels of era
    "pretrained": (1e-3, 3e-4, 3e-3),
    "random": (3e-3, 1e-3, 1e-2),
}


class Labelled(NamedTuple):
    """Texts and their classes."""

    texts: list[str]
    classes: list[int]


def era_of(year: int) -> int:
    """0 before 1850, .. 3 since 1970."""
    return sum(year >= bound for bound in BOUNDS)


@cache
def labelled(task: str, split: str) -> Labelled:
    """All texts of a split, in an order without meaning; of each era equally many."""
    if task == "sentiment":
        found = [(snippet.text, snippet.label) for snippet in snippets(split)]
        found = found if split == "train" else found[:JUDGING]
    else:
        n, found = POOL if split == "train" else JUDGED, []
        rng = Random(f"era {split}")
        for era in range(len(BOUNDS) + 1):
            said = {
                sentence: era
                for speech in speeches("train" if split == "train" else "validation")
                if era_of(speech.year) == era
                and (split == "train" or speech.year // 10 % 2 == SPLITS.index(split))
                for sentence in sentences(speech.text)
                if WORDS[0] <= len(sentence.split()) <= WORDS[1]
                and not any(map(str.isdigit, sentence))
            }
            found += rng.sample([*said.items()], n)
        rng.shuffle(found)
    texts, classes = zip(*found, strict=True)
    return Labelled([*texts], [*classes])


@cache
def tokens(task: str, split: str) -> list[list[int]]:
    """Token ids of each text, as many as are read."""
    encode = sotu_gpt()[1].encode
    return [encode(text)[: LONGEST - 2] for text in labelled(task, split).texts]


def chosen(task: str, labels: int, seed: int) -> list[int]:
    """The texts that have a label: of each class equally many."""
    classes, rng = labelled(task, "train").classes, Random(f"era {task} {seed}")
    n, rows = max(classes) + 1, []
    for c in range(n):
        rows += rng.sample([i for i, other in enumerate(classes) if other == c], labels // n)
    return rng.sample(rows, len(rows))


def batch(model: Classifier, task: str, split: str, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What the model reads, and the right classes."""
    some, classes = tokens(task, split), labelled(task, split).classes
    read = lay_out(model.gpt.vocab, [some[i] for i in rows], max_len=LONGEST)
    return read, torch.tensor([classes[i] for i in rows])


def begun(method: str, n_classes: int) -> Classifier:
    """The model before it learns."""
    gpt, _ = sotu_gpt()
    if method != "pretrained":
        gpt = TransformerDecoder(gpt.vocab, gpt.stack.config)
    model = Classifier(with_marks(gpt), n_classes)
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = DROPOUT
    return model


def learnt(
    method: str, task: str, auxiliary: float, rows: Sequence[int], lr: float, seed: int
) -> Classifier:
    """A GPT that has learnt from some texts."""
    torch.manual_seed(seed)
    model = begun(method, max(labelled(task, "train").classes) + 1)
    steps = EPOCHS[len(rows)] * math.ceil(len(rows) / BATCH) * (4 if method == "longer" else 1)
    turns = epochs([len(tokens(task, "train")[i]) for i in rows], batch_size=BATCH, seed=seed)
    train(
        model,
        lambda step: batch(model, task, "train", [rows[i] for i in turns(step)]),
        lambda drawn: model.loss(*drawn, auxiliary=auxiliary),
        steps,
        lr=Cosine(lr, steps, steps // 10),
        optimizer=partial(AdamW, fused=True),
        seed=seed,
    )
    return model


@torch.no_grad()
def judged(model: Classifier, task: str) -> dict[str, float]:
    """Shares of right answers, and bits a token of some texts of the test."""
    found = {}
    for split in SPLITS:
        texts = tokens(task, split)
        order, right = sorted(range(len(texts)), key=lambda i: len(texts[i])), 0
        for i in range(0, len(order), 100):
            read, classes = batch(model, task, split, order[i : i + 100])
            right += int((model(read).argmax(1) == classes).sum())
        found[split] = right / len(order)
    drawn = batch(model, task, "test", range(SPOKEN))
    words = model.loss(*drawn, auxiliary=1.0) - model.loss(*drawn, auxiliary=0.0)
    return {**found, "bits": words.item() / math.log(2)}


def fitted(task: str, rows: Sequence[int]) -> dict[str, float]:
    """The logistic regression that is best on validation."""
    texts, classes = labelled(task, "train")
    tried = []
    for C in STRENGTHS:
        first = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        model = make_pipeline(first, LogisticRegression(C=C, max_iter=1000))
        model.fit([texts[i] for i in rows], np.array(classes)[rows])
        tried.append({split: float(model.score(*labelled(task, split))) for split in SPLITS})
    return {**max(tried, key=lambda found: found["validation"]), "bits": 0.0}


def run(
    task: str, method: str, auxiliary: float, labels: int, lr: float, seed: int
) -> Iterator[dict]:
    """One run."""
    torch.set_num_threads(1)
    rows = chosen(task, labels, seed)
    if method == "tfidf":
        found = fitted(task, rows)
    else:
        found = judged(learnt(method, task, auxiliary, rows, lr, seed), task)
    yield {name: round(found[name], 4) for name in MEASURED}


TASKS, LABELS, SEEDS = ("era", "sentiment"), (200, 1000), 5
MEASURED = ("validation", "test", "bits")
COLUMNS = ("task", "method", "auxiliary", "labels", "lr", "seed")
SETTINGS: list[dict[str, Any]] = [
    dict(zip(COLUMNS, values, strict=True))
    for values in (
        *(("era", method, 0.5, 1000, lr, 0) for method in RATES for lr in RATES[method][1:]),
        *(
            (task, method, auxiliary, labels, RATES[method][0] if method in RATES else 0.0, seed)
            for task in TASKS
            for seed in range(SEEDS)
            for labels in LABELS
            for method, auxiliary in (
                ("tfidf", 0.0),
                ("pretrained", 0.5),
                ("pretrained", 0.0),
                ("random", 0.5),
            )
        ),
        *(("era", "longer", 0.5, 1000, RATES["random"][0], seed) for seed in range(3)),
    )
]
TRIED = "pretrained 3e-4 1e-3 3e-3, random 1e-3 3e-3 1e-2"
EXPERIMENT = Experiment("era", SETTINGS, run, MEASURED, TRIED)

if __name__ == "__main__":
    EXPERIMENT.store()
