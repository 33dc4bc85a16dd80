import math

import pytest
import torch

from attnbook.learn.metrics import evaluate, interval, link_offsets
from attnbook.model.config import TransformerConfig
from attnbook.model.decoding import Hypotheses
from attnbook.model.seq2seq import Decoder, Encoder, Seq2Seq
from attnbook.model.transformer import Transformer
from attnbook.text.number_words import Numbers, number_pair
from attnbook.text.vocabulary import Pairs, Vocabulary

TASK = Numbers(4)
VOCAB = TASK.target_vocab
BATCH = TASK.encode([42, 7, 1234, 88])


class Oracle(Seq2Seq):
    """Knows the targets, but for the numbers it is told to get wrong; checks what it is asked."""

    def __init__(self, wrong=()):
        super().__init__(Encoder(TASK.source_vocab, 4), Decoder(VOCAB, 4))
        self.answers = BATCH.target[:, 1:].clone()
        for row in wrong:
            self.answers[row, 0] = VOCAB.eos

    def translate(self, source, max_len=32):
        assert source.equal(BATCH.source)
        return Hypotheses(self.answers[:, :max_len], torch.zeros(len(source)))

    def forward(self, source, target):
        assert source.equal(BATCH.source)
        assert (target[:, 0] == VOCAB.bos).all()  # teacher forcing feeds the start token first
        return torch.nn.functional.one_hot(self.answers, len(VOCAB)).float()


def test_perfect_translations_score_one_and_bleu_a_hundred():
    exact, token, bleu = evaluate(Oracle(), BATCH)
    assert exact == token == 1
    assert bleu == pytest.approx(100)


def test_no_more_is_asked_for_than_there_are_learned_positions():
    n = BATCH.target.shape[1]
    config = TransformerConfig(12, 3, 20, 1, positions="learned", max_len=n)
    model = Transformer(TASK.source_vocab, VOCAB, config).eval()
    assert 0 <= evaluate(model, BATCH).token <= 1


def test_one_wrong_sentence_of_four():
    exact, token, bleu = evaluate(Oracle(wrong=[0]), BATCH)
    words = int((BATCH.target[:, 1:] != VOCAB.pad).sum())
    assert exact == 0.75
    assert token == 1 - 1 / words
    assert 0 < bleu < 100


def test_bleu_of_sentences_too_short_for_four_words(monkeypatch):
    short = TASK.encode([7, 42])
    monkeypatch.setattr(f"{__name__}.BATCH", short)
    assert evaluate(Oracle(), short).bleu == pytest.approx(100)


def test_link_offsets_of_gold_shifted_and_uneven_maps():
    pairs = [number_pair(42), number_pair(1234)]
    gold = torch.zeros(2, 9, 8)
    for row, pair in zip(gold, pairs, strict=True):
        row[: len(pair.target), : len(pair.source)] = pair.link_matrix()
    n_links = sum(len(pair.links) for pair in pairs)
    assert link_offsets(gold, pairs).tolist() == [0] * n_links
    assert link_offsets(gold.roll(1, -1), pairs).tolist() == [1] * n_links
    gold[0, 0] = torch.tensor([0.6, 0.4, 0, 0, 0, 0, 0, 0])  # "zwei" looks at "forty"
    assert link_offsets(gold, pairs).tolist() == [-1] + [0] * (n_links - 1)


def test_link_offsets_needs_a_pair_for_each_sentence():
    with pytest.raises(ValueError, match="pairs must be one for each of 2 sentences, got 1"):
        link_offsets(torch.zeros(2, 3, 2), [number_pair(42)])


def test_a_sentence_with_a_wrong_word_is_not_exact():
    oracle = Oracle()
    oracle.answers[0, 0] = VOCAB.encode(["neun"])[0]
    assert evaluate(oracle, BATCH).exact == 0.75


def test_bleu_takes_words_as_they_are_and_punishes_what_is_too_short(monkeypatch):
    vocab = Vocabulary(["a", "b.", "c-d", "e,", "f"])
    target = torch.tensor([[vocab.bos, *range(3, 8), vocab.eos]])
    monkeypatch.setattr(f"{__name__}.VOCAB", vocab)
    monkeypatch.setattr(f"{__name__}.BATCH", Pairs(torch.tensor([[5, 6]]), target))
    oracle = Oracle()
    oracle.answers[0, 4:] = torch.tensor([vocab.eos, vocab.pad])
    assert evaluate(oracle, BATCH).bleu == pytest.approx(100 * math.exp(1 - 5 / 4))


@pytest.mark.parametrize(("right", "n"), [(0, 9), (9, 9), (31, 40), (4, 7)])
def test_an_interval_ends_where_the_sample_is_two_spreads_away(right, n):
    low, high = interval(right / n, n)
    assert 0 <= low <= right / n <= high <= 1
    for end in (low, high):  # Wilson's definition: |p - end| is 1.96 spreads of end itself
        assert math.isclose((right / n - end) ** 2, 1.96**2 * end * (1 - end) / n, abs_tol=1e-12)


def test_an_interval_refuses_what_is_no_share():
    with pytest.raises(ValueError, match=r"share must lie in 0\.\.1, got 1\.5"):
        interval(1.5, 4)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        interval(0.5, 0)
