"""The finding of chapter 1: width 64, 600 batches of 64 numbers of 1 to 9 digits."""

import pytest
import torch

from attnbook.attention import AdditiveScore
from attnbook.data import Numbers
from attnbook.metrics import evaluate
from attnbook.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.training import train


def exact_at_7_to_9_digits(seed, score):
    torch.manual_seed(seed)
    task = Numbers(9)
    encoder = Encoder(len(task.source_vocab), 64)
    model = Seq2Seq(encoder, Decoder(len(task.target_vocab), 64, score))
    train(model, lambda s: task.batch(s, seed=seed), model.loss, steps=600, lr=0.01)
    numbers = [n for digits in (7, 8, 9) for n in task.held_out[digits]]
    return evaluate(model, task.encode(numbers), task.target_vocab).exact


@pytest.mark.parametrize("seed", range(3))
def test_one_vector_is_not_enough(seed):
    assert exact_at_7_to_9_digits(seed, None) <= 0.10


@pytest.mark.parametrize("seed", range(3))
def test_attention_is(seed):
    assert exact_at_7_to_9_digits(seed, AdditiveScore(64, 64, 64)) >= 0.95
