import torch

from attnbook.data import EOS, PAD, Numbers
from attnbook.metrics import evaluate
from attnbook.seq2seq import Decoder, Encoder, Seq2Seq, Translation

TASK = Numbers(4)
BATCH = TASK.encode([42, 7, 1234, 88])


class Oracle(Seq2Seq):
    """Knows the targets, but for the numbers it is told to get wrong."""

    def __init__(self, wrong=()):
        super().__init__(Encoder(len(TASK.source_vocab), 4), Decoder(len(TASK.target_vocab), 4))
        self.answers = BATCH.target[:, 1:].clone()
        for row in wrong:
            self.answers[row, 0] = EOS

    def translate(self, source, max_len=32):
        return Translation(self.answers, torch.zeros(0), None)

    def forward(self, source, target):
        return torch.nn.functional.one_hot(self.answers, len(TASK.target_vocab)).float(), None


def test_perfect_translations_score_one_and_bleu_a_hundred():
    exact, token, bleu = evaluate(Oracle(), BATCH, TASK.target_vocab)
    assert exact == token == 1
    assert bleu > 99.99


def test_one_wrong_sentence_of_four():
    exact, token, bleu = evaluate(Oracle(wrong=[0]), BATCH, TASK.target_vocab)
    words = int((BATCH.target[:, 1:] != PAD).sum())
    assert exact == 0.75
    assert token == 1 - 1 / words
    assert 0 < bleu < 100
