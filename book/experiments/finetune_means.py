"""Chapter 8: all is tuned, and read from the mean of the states instead of from [CLS].

`make experiments NAME=finetune_means` makes the runs that `finetune.py` lacks. There "full" is read
from [CLS] through the pooler, and "mean4" from means of frozen states: two things differ. Here all
of MiniLM is trained as in "full", and a linear map reads the mean of all states of the last block,
as frozen "mean" does there.
"""

from collections.abc import Iterator
from random import Random

import torch
from finetune import ALL, EPOCHS, JUDGED, accuracy, batch, minilm, taught, tokens
from torch import Tensor

from attnbook.learn.tables import Experiment
from attnbook.model import padding_mask
from attnbook.model.bert import Classifier

RATES = (1e-4, 5e-5, 2e-4)  # what was taken, and what else was tried at 1,000 labels


class OfMean(Classifier):
    """A classifier that reads the mean of the states in place of the pooled [CLS]."""

    def forward(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """Scores of the classes."""
        words = padding_mask(tokens, self.bert.vocab.pad)[..., None]
        mean = (self.bert(tokens, segments) * words).sum(1) / words.sum(1)
        return self.out(self.dropout(mean))


def run(labels: int, lr: float, seed: int) -> Iterator[dict]:
    """One run."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    minilm.cache_clear()  # the encoder is trained: each run begins with another one
    model = OfMean(minilm(), 2)
    rows = Random(f"finetune {seed}").sample(range(len(tokens("train"))), labels)
    taught(model, batch, rows, EPOCHS["full"][labels] * -(-labels // 32), lr, seed)
    yield {split: round(accuracy(model, batch, split), 4) for split in JUDGED}


SETTINGS = [
    *(
        {"labels": n, "lr": RATES[0], "seed": seed}
        for n in (1000, 100, 300, ALL)
        for seed in range(3)
    ),
    *({"labels": 1000, "lr": rate, "seed": 0} for rate in RATES[1:]),
]
EXPERIMENT = Experiment("finetune_means", SETTINGS, run, JUDGED, "5e-5 1e-4 2e-4")

if __name__ == "__main__":
    EXPERIMENT.store()
