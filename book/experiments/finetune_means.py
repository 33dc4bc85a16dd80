"""Chapter 8: all is tuned, and read from the mean of the states instead of from [CLS].

`make experiments NAME=finetune_means` makes the runs that `finetune.py` lacks. There "full" is read
from [CLS] through the pooler, and "mean4" from means of frozen states: two things differ. Here all
of MiniLM is trained as in "full", and a linear map reads the mean of all states of the last block,
as frozen "mean" does there, from the same labels.
"""

from collections.abc import Iterator
from random import Random

import torch
from finetune import ALL, EPOCHS, JUDGED, LABELS, RATES, accuracy, batch, minilm, taught, tokens
from torch import Tensor

from attnbook.learn.tables import Experiment
from attnbook.model import padding_mask
from attnbook.model.bert import Classifier

RATE = RATES["full"][0]  # the best of three for [CLS], so none of them favours the mean


class OfMean(Classifier):
    """A classifier that reads the mean of the states in place of the pooled [CLS]."""

    def forward(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """Scores of the classes."""
        words = padding_mask(tokens, self.bert.vocab.pad)[..., None]
        mean = (self.bert(tokens, segments) * words).sum(1) / words.sum(1)
        return self.out(self.dropout(mean))


def run(labels: int, seed: int) -> Iterator[dict]:
    """One run."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    minilm.cache_clear()  # the encoder is trained: each run begins with another one
    model = OfMean(minilm(), 2)
    rows = Random(f"finetune {seed}").sample(range(len(tokens("train"))), labels)
    taught(model, batch, rows, EPOCHS["full"][labels] * -(-labels // 32), RATE, seed)
    yield {split: round(accuracy(model, batch, split), 4) for split in JUDGED}


SETTINGS = [
    {"labels": n, "seed": seed} for n in (*LABELS, ALL) for seed in range(1 if n == ALL else 3)
]
EXPERIMENT = Experiment("finetune_means", SETTINGS, run, JUDGED, f"{RATE}, as full")

if __name__ == "__main__":
    EXPERIMENT.store()
