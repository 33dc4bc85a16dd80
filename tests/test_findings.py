"""The findings of chapters 1 and 2: width 64, 600 batches of 64 numbers of 1 to 9 digits."""

import pytest
import torch

from attnbook.learn.loop import train
from attnbook.learn.metrics import evaluate, link_offsets
from attnbook.model.recording import recorded
from attnbook.model.scores import AdditiveScore
from attnbook.model.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.text.number_words import Numbers, number_pair

SEEDS = pytest.mark.parametrize("seed", range(3))


TASK = Numbers(9)
NUMBERS = [n for digits in (7, 8, 9) for n in TASK.held_out[digits]]
BATCH = TASK.encode(NUMBERS)
SCALES = ("hundred", "thousand", "million")  # hardly needed: where they look is left to chance


def trained(seed, score=None, two_way=False, steps=600, lr=0.01):
    torch.manual_seed(seed)
    encoder = Encoder(TASK.source_vocab, 64, two_way=two_way)
    score = score and score(64, 64, 64)
    model = Seq2Seq(encoder, Decoder(TASK.target_vocab, 64, score))
    train(model, lambda s: TASK.batch(s, seed=seed), model.loss, steps=steps, lr=lr)
    return model


def exact(model):
    return evaluate(model, BATCH).exact


@pytest.mark.full  # chapter 1 asserts as much of its own seeds
@SEEDS
def test_one_vector_is_not_enough(seed):
    assert exact(trained(seed)) <= 0.10


@pytest.mark.full  # the next test asks for more
@SEEDS
def test_attention_is(seed):
    assert exact(trained(seed, AdditiveScore)) >= 0.95


@pytest.mark.full  # chapter 2 asserts as much of its own model
@SEEDS
def test_with_two_ways_the_strongest_weight_of_digits_and_tens_is_on_the_right_word(seed):
    model = trained(seed, AdditiveScore, two_way=True, steps=900, lr=0.005)
    assert exact(model) >= 0.98
    with recorded(model) as weights:
        model(*BATCH)
    pairs = [number_pair(n) for n in NUMBERS]
    scale = torch.tensor([pair.source[j] in SCALES for pair in pairs for _, j in pair.links])
    on_word = link_offsets(weights["decoder.attention"], pairs) == 0
    assert on_word[~scale].float().mean() >= 0.95
