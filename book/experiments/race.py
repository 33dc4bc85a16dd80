"""Chapter 7: three translators of numbers: plain seq2seq, RNNsearch, Transformer.

`make experiments NAME=race` trains each at equal numbers of parameters, for several numbers of
steps (each a run of its own, its learning rate falls to zero at its end), with three seeds. A row
for each run and number of digits, 1 to 12. Numbers of 10 to 12 digits are longer than those that
were taught; round billions are taught, so that the word is known. `seconds` is processor time on
one thread, `operations` those of a training step, `words` the target words trained on.
"""

import time
from collections.abc import Callable, Iterator
from itertools import product

import torch

from attnbook.config import TransformerConfig
from attnbook.costs import operations
from attnbook.metrics import evaluate
from attnbook.number_words import MAX_DIGITS, Numbers
from attnbook.scores import AdditiveScore
from attnbook.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.tables import store
from attnbook.training import Cosine, train
from attnbook.transformer import Transformer
from attnbook.vocabulary import Pairs

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
MODELS: dict[str, tuple[Callable[[], Seq2Seq], float]] = {
    # how to make it, and its learning rate; of 0.003 and 0.01 the better for seq2seq is 0.01
    "seq2seq": (lambda: recurrent(136, False), 0.01),
    "rnnsearch": (lambda: recurrent(120, True), 0.01),
    "transformer": (lambda: Transformer(SOURCE, TARGET, CONFIG), 0.003),
}


def run(name: str, lr: float, steps: int, seed: int) -> tuple[Seq2Seq, dict]:
    """A trained model, and what the training took."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = MODELS[name][0]()
    words, spent = 0, 0.0

    def batch(step: int) -> Pairs:
        nonlocal words, spent
        begin = time.process_time()
        drawn = numbers.batch(step, batch_size=BATCH, seed=seed)
        words += int((drawn.target[:, 1:] != TARGET.pad).sum())
        spent += time.process_time() - begin  # drawing numbers is no part of the race
        return drawn

    begin = time.process_time()
    train(model, batch, model.loss, steps=steps, lr=Cosine(lr, steps, WARMUP), seed=seed)
    return model, {
        "model": name,
        "steps": steps,
        "seed": seed,
        "parameters": sum(p.numel() for p in model.parameters()),
        "operations": operations(lambda: model.loss(numbers.batch(0, batch_size=BATCH))),
        "seconds": round(time.process_time() - begin - spent, 1),
        "words": words,
    }


def rows() -> Iterator[dict]:
    """All runs, one after another."""
    for seed, steps, name in product(range(3), STEPS, MODELS):
        model, row = run(name, MODELS[name][1], steps, seed)
        exact = {
            digits: evaluate(model, numbers.encode(numbers.held_out[digits])).exact
            for digits in range(1, MAX_DIGITS + 1)
        }
        print(row, *exact.values(), flush=True)
        for digits, share in exact.items():
            yield {**row, "digits": digits, "exact": round(share, 4)}


if __name__ == "__main__":
    store("race", rows())
