"""Chapter 7: three translators of numbers: plain seq2seq, RNNsearch, Transformer.

`make experiments NAME=race` trains each at equal numbers of parameters, for several numbers of
steps (each a run of its own, its learning rate falls to zero at its end), with three seeds, at the
best rates. Rates are tried at 150 steps, and stored too: the worse ones with two seeds. A row for
each run and number of digits, 1 to 12. Numbers of 10 to 12 digits are longer than those that were
taught; round billions are taught, so that the word is known. `seconds` is processor time on one
thread, `operations` those of a training step, `words` the target words trained on.
"""

import time
from collections.abc import Callable, Iterator
from itertools import product

import torch

from attnbook.learn import Cosine, evaluate, train
from attnbook.learn.tables import Experiment
from attnbook.model import AdditiveScore, Decoder, Encoder, Seq2Seq, Transformer, TransformerConfig
from attnbook.model.costs import operations
from attnbook.text import Numbers, Pairs
from attnbook.text.number_words import MAX_DIGITS

BATCH, WARMUP = 64, 50
STEPS = (75, 150, 300)
BILLIONS = [n * 10**9 for n in range(1, 1000) if n == 1 or n % 100 != 1]
numbers = Numbers(9, extra=BILLIONS)
SOURCE, TARGET = numbers.source_vocab, numbers.target_vocab


def recurrent(d_model: int, attends: bool) -> Seq2Seq:
    """RNNsearch (two-way encoder, additive score), or the same without attention."""
    score = AdditiveScore(d_model, d_model, d_model) if attends else None
    return Seq2Seq(Encoder(SOURCE, d_model, two_way=attends), Decoder(TARGET, d_model, score))


CONFIG = TransformerConfig(d_model=64, n_heads=4, d_ff=256, n_layers=2)
MODELS: dict[str, Callable[[], Seq2Seq]] = {
    "seq2seq": lambda: recurrent(136, False),
    "rnnsearch": lambda: recurrent(120, True),
    "transformer": lambda: Transformer(SOURCE, TARGET, CONFIG),
}
RATES = {
    "seq2seq": (0.003, 0.01, 0.03, 0.1),
    "rnnsearch": (0.003, 0.01, 0.03),
    "transformer": (0.001, 0.003, 0.01),
}
GOOD = {"seq2seq": (0.01, 0.03), "rnnsearch": (0.01,), "transformer": (0.003,)}


def trained(model: str, lr: float, steps: int, seed: int) -> tuple[Seq2Seq, dict]:
    """A trained model, and what the training took."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    translator = MODELS[model]()
    words, spent = 0, 0.0

    def batch(step: int) -> Pairs:
        nonlocal words, spent
        begin = time.process_time()
        drawn = numbers.batch(step, batch_size=BATCH, seed=seed)
        words += int((drawn.target[:, 1:] != TARGET.pad).sum())
        spent += time.process_time() - begin  # drawing numbers is no part of the race
        return drawn

    begin = time.process_time()
    falls = Cosine(lr, steps, WARMUP)
    train(translator, batch, translator.loss, steps=steps, lr=falls, seed=seed)
    return translator, {
        "parameters": sum(p.numel() for p in translator.parameters()),
        "operations": operations(lambda: translator.loss(numbers.batch(0, batch_size=BATCH))),
        "seconds": round(time.process_time() - begin - spent, 1),
        "words": words,
    }


def run(model: str, lr: float, steps: int, seed: int) -> Iterator[dict]:
    """One run, at each number of digits."""
    translator, row = trained(model, lr, steps, seed)
    for digits in range(1, MAX_DIGITS + 1):
        share = evaluate(translator, numbers.encode(numbers.held_out[digits])).exact
        yield {**row, "digits": digits, "exact": round(share, 4)}


RUNS = [
    *product(STEPS, [(m, lr) for m in MODELS for lr in GOOD[m]], range(3)),
    *product((150,), [(m, lr) for m in MODELS for lr in RATES[m] if lr not in GOOD[m]], range(2)),
]
SETTINGS = [
    {"model": model, "lr": lr, "steps": steps, "seed": seed} for steps, (model, lr), seed in RUNS
]
EXPERIMENT = Experiment("race", SETTINGS, run, ("exact",), "0.001 0.003 0.01 0.03 0.1")

if __name__ == "__main__":
    EXPERIMENT.store()
