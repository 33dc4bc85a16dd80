"""Beam search against greedy decoding and a search in plain Python, on random and real scores."""

import pytest
import torch
from torch import Tensor

from attnbook.data import BOS, EOS, PAD, Numbers
from attnbook.decoding import beam_search
from attnbook.metrics import evaluate
from attnbook.training import train
from attnbook.transformer import Transformer, TransformerConfig


def greedy(ours: Transformer, source: Tensor, max_len: int) -> list[int]:
    """The likeliest word, one after another, of one sentence."""
    words = [BOS]
    while len(words) <= max_len and words[-1] != EOS:
        logits = ours(source[None], torch.tensor([words])).logits[0, -1]
        words.append(int(logits[EOS:].argmax()) + EOS)
    return words[1:]


NUMBERS, CONFIG = Numbers(3), TransformerConfig(12, 3, 20, 2)


@pytest.fixture(scope="module")
def taught() -> Transformer:
    """A model that has learnt to end its sentences, and little more."""
    torch.manual_seed(0)
    ours = Transformer(len(NUMBERS.source_vocab), len(NUMBERS.target_vocab), CONFIG)
    train(ours, lambda step: NUMBERS.batch(step, batch_size=16), ours.loss, steps=80, lr=0.02)
    return ours


def test_a_beam_of_one_is_greedy_decoding(taught: Transformer) -> None:
    source = NUMBERS.encode(range(0, 1000, 83)).source
    found = taught.translate(source, max_len=9).tokens
    lengths = set()
    for row, sentence in zip(found.tolist(), source, strict=True):
        expected = greedy(taught, sentence[sentence != PAD], 9)
        assert row == expected + [PAD] * (len(row) - len(expected))
        lengths.add(len(expected))
    assert len(lengths) > 2  # some end early, so that what happens after an end is seen


def search(scores: Tensor, beam: int, length_penalty: float, max_len: int) -> tuple:
    """The best sentence and its score, in plain Python. `scores` `[beginning word]` are those of
    the next word after a beginning, whose words are the digits of a number."""
    words = scores.shape[1]
    kept: list[tuple[float, float, list[int]]] = [(0.0, 0.0, [])]
    for _ in range(max_len):
        grown = []
        for rank, total, beginning in kept:
            if beginning[-1:] == [EOS]:
                grown.append((rank, total, beginning))
                continue
            logp = scores[number(beginning, words)].log_softmax(-1).tolist()
            for word in range(EOS, words):
                new = total + logp[word]
                length = len(beginning) + 1
                grown.append((new / length**length_penalty, new, [*beginning, word]))
        kept = sorted(grown, key=lambda entry: -entry[0])[:beam]
    return kept[0][2], kept[0][1]


def number(beginning: list[int], words: int) -> int:
    return sum(word * words**i for i, word in enumerate(beginning))


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("beam", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 6])  # a search goes on until all its sentences have ended
def test_beam_search_does_what_a_search_in_plain_python_does(
    batch: int, beam: int, length_penalty: float
) -> None:
    words, max_len = 5, 4
    for _ in range(12 // batch):
        scores = 3 * torch.randn(batch, words**max_len, words)

        def next_logits(tokens: Tensor, scores: Tensor = scores) -> Tensor:
            copies = len(tokens) // batch
            rows = [number(row[1:], words) for row in tokens.tolist()]
            return torch.stack([scores[i // copies, row] for i, row in enumerate(rows)])

        start = torch.full((batch, 1), BOS)
        found = beam_search(next_logits, start, max_len, beam=beam, length_penalty=length_penalty)
        for tokens, score, own in zip(found.tokens.tolist(), found.scores, scores, strict=True):
            best, total = search(own, beam, length_penalty, max_len)
            assert tokens == best + [PAD] * (len(tokens) - len(best))
            assert score.item() == pytest.approx(total, abs=1e-5)


def test_the_score_is_the_models_own(taught: Transformer) -> None:
    source = NUMBERS.encode(range(0, 1000, 23)).source
    found = taught.translate(source, max_len=9, beam=4)
    target = torch.cat([torch.full((len(source), 1), BOS), found.tokens], 1)
    logp = taught(source, target[:, :-1]).logits.log_softmax(-1)
    each = logp.gather(-1, found.tokens[..., None])[..., 0]
    expected = (each * (found.tokens != PAD)).sum(-1)
    torch.testing.assert_close(found.scores, expected, atol=1e-4, rtol=0)
    assert found.scores.sum() > taught.translate(source, max_len=9).scores.sum() + 0.01
    short = taught.translate(source, max_len=9, beam=4, length_penalty=5.0)
    assert (short.tokens != PAD).sum() > (found.tokens != PAD).sum()  # a mean likes long ones


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, r"beam and max_len must be at least 1 .* got 0, 6 and 0.0"),
        ({"beam": 11}, "beam must be at most the 9 words, got 11"),
        ({"length_penalty": -1.0}, "length_penalty at least 0, got 1, 6 and -1.0"),
    ],
)
def test_beams_that_make_no_sense(options: dict, message: str) -> None:
    scores = torch.randn(2, 11)
    with pytest.raises(ValueError, match=message):
        beam_search(lambda tokens: scores, torch.full((2, 1), BOS), 6, **options)


def test_a_transformer_is_evaluated_as_the_recurrent_models_are(taught: Transformer) -> None:
    batch, vocab = NUMBERS.encode(range(20)), NUMBERS.target_vocab
    untaught = Transformer(len(NUMBERS.source_vocab), len(vocab), CONFIG).eval()
    assert evaluate(taught, batch, vocab).token > 0.3 > evaluate(untaught, batch, vocab).token
