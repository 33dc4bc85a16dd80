"""The Transformer learns to translate numbers, and what a wider beam finds."""

from itertools import pairwise

import pytest
import torch

from attnbook.learn.loop import Cosine, train
from attnbook.learn.metrics import evaluate
from attnbook.model.config import TINY
from attnbook.model.transformer import Transformer
from attnbook.text.number_words import Numbers

TASK = Numbers(9)


def trained(steps: int, seed: int) -> Transformer:
    torch.manual_seed(seed)
    model = Transformer(TASK.source_vocab, TASK.target_vocab, TINY)
    schedule = Cosine(0.003, steps, warmup=50)
    train(model, lambda step: TASK.batch(step, seed=seed), model.loss, steps=steps, lr=schedule)
    return model


@pytest.mark.full  # chapter 6 asserts as much of its own model
def test_one_to_nine_digits_are_translated_and_no_more():
    model = trained(600, seed=1)
    exact = [evaluate(model, TASK.encode(TASK.held_out[d])).exact for d in range(1, 11)]
    assert sum(exact[:9]) / 9 >= 0.99
    assert exact[9] < 0.1


def test_a_wider_beam_finds_what_the_model_likes_better():
    """On a model that still errs. A wider beam can lose the beginning of a sentence that a narrow
    one kept, since other beginnings look better for a while: of 200 sentences this may befall 2."""
    model = trained(150, seed=1)
    numbers = [number for digits in range(2, 10) for number in TASK.held_out[digits][:26]]
    source = TASK.encode(numbers[-200:]).source
    scores = [model.translate(source, max_len=40, beam=beam).scores for beam in (1, 2, 4, 8)]
    for narrow, wide in pairwise(scores):
        assert (wide < narrow - 1e-4).sum() <= 2
    assert (scores[-1] > scores[0] + 1e-4).sum() >= 10
