import pytest
import torch

from attnbook.attention import MultiHeadAttention
from attnbook.data import BOS, EOS, PAD, Numbers, number_pair
from attnbook.metrics import evaluate, link_offsets, most_bytes, operations
from attnbook.seq2seq import Decoder, Encoder, Seq2Seq, Translation
from attnbook.transformer import TransformerConfig, TransformerDecoder

TASK = Numbers(4)
BATCH = TASK.encode([42, 7, 1234, 88])


class Oracle(Seq2Seq):
    """Knows the targets, but for the numbers it is told to get wrong; checks what it is asked."""

    def __init__(self, wrong=()):
        super().__init__(Encoder(len(TASK.source_vocab), 4), Decoder(len(TASK.target_vocab), 4))
        self.answers = BATCH.target[:, 1:].clone()
        for row in wrong:
            self.answers[row, 0] = EOS

    def translate(self, source, max_len=32):
        assert source.equal(BATCH.source)
        return Translation(self.answers[:, :max_len], torch.zeros(0), None)

    def forward(self, source, target):
        assert source.equal(BATCH.source)
        assert (target[:, 0] == BOS).all()  # teacher forcing feeds the start token first
        return torch.nn.functional.one_hot(self.answers, len(TASK.target_vocab)).float(), None


def test_perfect_translations_score_one_and_bleu_a_hundred():
    exact, token, bleu = evaluate(Oracle(), BATCH, TASK.target_vocab)
    assert exact == token == 1
    assert bleu == pytest.approx(100)


def test_one_wrong_sentence_of_four():
    exact, token, bleu = evaluate(Oracle(wrong=[0]), BATCH, TASK.target_vocab)
    words = int((BATCH.target[:, 1:] != PAD).sum())
    assert exact == 0.75
    assert token == 1 - 1 / words
    assert 0 < bleu < 100


def test_bleu_of_sentences_too_short_for_four_words(monkeypatch):
    short = TASK.encode([7, 42])
    monkeypatch.setattr(f"{__name__}.BATCH", short)
    assert evaluate(Oracle(), short, TASK.target_vocab).bleu == pytest.approx(100)


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


def test_operations_of_a_transformer_are_those_of_the_formula():
    batch, n, d, d_ff, layers, vocab = 3, 7, 8, 20, 2, 11
    for positions in ("sinusoidal", "rotary"):
        model = TransformerDecoder(
            vocab, TransformerConfig(d, 2, d_ff, layers, positions=positions)
        )
        tokens = torch.randint(3, vocab, (batch, n))
        maps = layers * (4 * d * d + 2 * d * d_ff) + d * vocab
        forward = 2 * batch * n * maps + layers * batch * 4 * n * n * d
        assert operations(lambda: model(tokens).logits.sum()) == 3 * forward  # noqa: B023


def test_operations_of_a_gru_are_those_of_the_formula():
    batch, n, d_input, d = 3, 7, 5, 6
    gru = torch.nn.GRU(d_input, d, batch_first=True)
    x = torch.randn(batch, n, d_input, requires_grad=True)
    forward = 2 * batch * n * (3 * d_input * d + 3 * d * d)
    first = 2 * batch * 3 * d * d  # the state before the first word needs no gradient
    assert operations(lambda: gru(x)[0].sum()) == 3 * forward - first


def test_memory_that_is_held_at_once():
    x = torch.randn(100, 1000)  # 400,000 bytes, made before

    def one_after_another():
        for _ in range(5):
            (x * 2).sum()

    def together():
        return torch.stack([x * 2 for _ in range(5)])

    assert 400_000 <= most_bytes(one_after_another) < 410_000
    assert 4_000_000 <= most_bytes(together) < 4_010_000


def test_stored_scores_are_seen_and_fused_ones_do_not_exist():
    n, n_heads = 512, 3
    scores = 4 * n_heads * n**2
    heads = MultiHeadAttention(24, n_heads)

    def step(need_weights):
        x = torch.randn(1, n, 24, requires_grad=True)
        heads(x, need_weights=need_weights)[0].sum().backward()

    assert most_bytes(lambda: step(True)) > 2 * scores  # scores and weights at least
    assert most_bytes(lambda: step(False)) < scores / 2
