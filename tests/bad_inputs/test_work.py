"""Bad input to training, measuring and the texts: the error says what is wrong."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from attnbook import source
from attnbook.learn import bits, tables
from attnbook.learn.loop import Checkpoint, Cosine, Noam, StableDecay, train
from attnbook.learn.metrics import evaluate, link_offsets
from attnbook.learn.optimizers import AdamW, Muon
from attnbook.model.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.text import corpus
from attnbook.text.number_words import Numbers, number_pair
from attnbook.text.sentiment import epochs, snippets
from attnbook.text.speeches import speeches, windows
from attnbook.text.tokenizers import BytePair
from attnbook.text.vocabulary import Pairs
from attnbook.weights import pretrained

TASK = Numbers(3)
LINEAR = nn.Linear(2, 1)
PART: Any = 2.5  # of a step


def run(**changed: Any) -> list[float]:
    options = {"steps": 2, "lr": 0.1} | changed
    loss = options.pop("loss", lambda x: LINEAR(x).mean())
    batch = options.pop("batch", torch.ones(3, 2))
    return train(LINEAR, lambda step: batch, loss, **options)


def translator() -> Seq2Seq:
    return Seq2Seq(Encoder(TASK.source_vocab, 4), Decoder(TASK.target_vocab, 4))


EMPTY = Pairs(torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 4, dtype=torch.long))
NO_MERGES = BytePair([])
CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: run(steps=0), "steps must be a whole number of at least 1, got 0"),
    (lambda: run(steps=2.0), "steps must be a whole number of at least 1, got 2.0"),
    (lambda: run(accumulate=0), "accumulate must be a whole number of at least 1, got 0"),
    (lambda: run(accumulate=4), "batches must have a row for each of 4 parts, got 3"),
    (lambda: run(accumulate=2, batch="abc"), "batches must hold tensors, in tuples .* got 'abc'"),
    (lambda: run(accumulate=2, batch=()), "batches must have a row for each of 2 parts, got 0"),
    (lambda: run(precision="half"), "precision must be one of 'no', 'bf16', 'fp16', got 'half'"),
    (lambda: run(clip=0), "clip must be above 0, or None for no clipping, got 0"),
    (lambda: run(clip=-1.0), "clip must be above 0"),
    (lambda: run(clip=float("nan")), "clip must be above 0"),
    (lambda: run(lr=-0.1), "lr must be at least 0, got -0.1"),
    (lambda: run(lr=float("nan")), "lr must be at least 0, got nan"),
    (lambda: run(loss=LINEAR), "loss must give a scalar, a mean over the batch"),
    (lambda: run(loss=lambda x: 0.5), "loss must give a scalar, .* got 0.5"),
    (lambda: Checkpoint("a", every=0), "every must be a whole number of at least 1, got 0"),
    (lambda: Cosine(0.1, 0), "steps must be a whole number of at least 1, got 0"),
    (lambda: Cosine(-1.0, 10), "lr must be finite, at least 0, got -1.0"),
    (lambda: StableDecay(float("inf"), 10), "lr must be finite, at least 0, got inf"),
    (lambda: Noam(512, 10, factor=-1.0), "factor must be finite, at least 0, got -1.0"),
    (lambda: Cosine(0.1, 10, warmup=10), "warmup must lie in 0..9, got 10"),
    (lambda: Cosine(0.1, 10, warmup=-1), "warmup must lie in 0..9, got -1"),
    (lambda: Cosine(0.1, 10, warmup=PART), "warmup must be a whole number .*, got 2.5"),
    (lambda: StableDecay(0.1, 9, decay=PART), "decay must be a whole number .*, got 2.5"),
    (lambda: Cosine(0.1, 10, least=0.2), "least must lie in 0..0.1, the lr, got 0.2"),
    (lambda: Cosine(0.1, 10)(-1), "step must be a whole number of at least 0, got -1"),
    (lambda: StableDecay(0.1, 10, decay=11), "decay must lie in 1..10, steps less warmup, got 11"),
    (lambda: StableDecay(0.1, 10, warmup=4, decay=7), "decay must lie in 1..6, .* got 7"),
    (lambda: StableDecay(0.1, 10, warmup=10), "warmup must lie in 0..9, got 10"),
    (lambda: AdamW(weight_decay=-0.1), "weight_decay must be finite, at least 0, got -0.1"),
    (lambda: AdamW(beta2=1.1), "beta2 must lie in 0..1, got 1.1"),
    (lambda: Muon(momentum=1.5), "momentum must lie in 0..1, got 1.5"),
    (lambda: Muon(steps=0), "steps must be a whole number of at least 1, got 0"),
    (lambda: Muon(eps=-1.0), "eps must be finite, at least 0, got -1.0"),
    (lambda: Muon()(LINEAR.named_parameters()), "parameters must hold matrices .*, got none"),
    (lambda: Noam(0, 10), "d_model must be a whole number of at least 1, got 0"),
    (lambda: Noam(512, 0), "warmup must be a whole number of at least 1, got 0"),
    (lambda: Noam(512, 10)(-1), "step must be a whole number of at least 0, got -1"),
    (lambda: evaluate(translator(), EMPTY), "batch must hold at least one sentence"),
    (
        lambda: link_offsets(torch.zeros(2, 3, 2), [number_pair(42)]),
        "pairs must be one for each of 2 sentences, got 1",
    ),
    (lambda: link_offsets(torch.zeros(3, 2), []), r"weights must be \[batch target source\]"),
    (
        lambda: link_offsets(torch.zeros(1, 2, 2), [number_pair(8_675_309)]),
        "weights must have a row for each of 11 words of pair 0, got 2",
    ),
    (lambda: speeches("test"), "split must be one of 'train', 'validation', got 'test'"),
    (lambda: snippets("tests"), "split must be one of 'train', 'validation', 'test', got 'tests'"),
    (lambda: epochs([]), "lengths must hold at least one row, got none"),
    (lambda: epochs([3], batch_size=0), "batch_size must be a whole number of at least 1, got 0"),
    (lambda: corpus.windows(torch.arange(9), 0, 0), "n must be a whole number of at least 1"),
    (
        lambda: corpus.windows(torch.arange(9), 9, 0),
        r"stream must be \[token\], at least 10, got \[9",
    ),
    (lambda: bits.nats(torch.sin, torch.arange(1), 9), r"stream must be \[token\], at least 2"),
    (lambda: bits.nats(torch.sin, torch.ones(2, 3).long(), 9), r"stream must be \[token\], at l"),
    (
        lambda: bits.bits_per_byte(torch.sin, NO_MERGES, [""], 9),
        "texts must hold at least one",
    ),
    (lambda: windows("train", 0, 0), "n must be a whole number of at least 1, got 0"),
    (lambda: windows("train", 5, 0, batch_size=0), "batch_size must be a whole number"),
    (
        lambda: tables.Experiment("x", [], dict, ()),
        "settings must be one a run, each its own, got 0",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_calls(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_value_error() -> None:
    with pytest.raises(FloatingPointError, match="the loss is nan at step 0"):
        run(loss=lambda x: LINEAR(x).mean() * torch.nan)
    with pytest.raises(FileNotFoundError, match=r"one of .*, got 'nothing'"):
        tables.load("nothing")
    with pytest.raises(TypeError, match="obj must be a function, class or module, got 3"):
        source.source(3)
    with pytest.raises(AttributeError):
        pretrained.copy_bert_attention(nn.Linear(2, 2))
