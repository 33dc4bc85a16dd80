"""Beam search against greedy decoding and a search in plain Python, on random and real scores."""

from collections import OrderedDict
from itertools import product
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from attnbook.learn.loop import train
from attnbook.learn.metrics import evaluate
from attnbook.model.config import TransformerConfig
from attnbook.model.decoding import beam_search, select_rows
from attnbook.model.transformer import Transformer
from attnbook.text.number_words import Numbers
from attnbook.text.vocabulary import Vocabulary

NUMBERS, CONFIG = Numbers(3), TransformerConfig(12, 3, 20, 2)
SOURCE_PAD, TARGET = NUMBERS.source_vocab.pad, NUMBERS.target_vocab


def greedy(ours: Transformer, source: Tensor, max_len: int) -> list[int]:
    """The likeliest word, one after another, of one sentence."""
    words = [TARGET.bos]
    while len(words) <= max_len and words[-1] != TARGET.eos:
        logits = ours(source[None], torch.tensor([words]))[0, -1]
        logits[[TARGET.pad, TARGET.bos]] = -torch.inf
        words.append(int(logits.argmax()))
    return words[1:]


@pytest.fixture(scope="module")
def taught() -> Transformer:
    """A model that has learnt to end its sentences, and little more."""
    torch.manual_seed(0)
    ours = Transformer(NUMBERS.source_vocab, TARGET, CONFIG)
    train(ours, lambda step: NUMBERS.batch(step, batch_size=16), ours.loss, steps=80, lr=0.02)
    return ours


def test_a_beam_of_one_is_greedy_decoding(taught: Transformer) -> None:
    source = NUMBERS.encode(range(0, 1000, 83)).source
    found = taught.translate(source, max_len=9).tokens
    lengths = set()
    for row, sentence in zip(found.tolist(), source, strict=True):
        expected = greedy(taught, sentence[sentence != SOURCE_PAD], 9)
        assert row == expected + [TARGET.pad] * (len(row) - len(expected))
        lengths.add(len(expected))
    assert len(lengths) > 2  # some end early, so that what happens after an end is seen


class Toy:
    """A language of random scores: those of the next word depend on all that was read.

    Its state is the sentence and its whole history, so that a row which does not follow its
    hypothesis gives other scores, and none but its own history fits what it wrote.
    """

    def __init__(self, vocab: Vocabulary, batch: int, max_len: int, start: Tensor):
        self.vocab, self.start = vocab, start
        self.scores = 3 * torch.randn(batch, len(vocab) ** max_len, len(vocab))
        self.state = {"sentence": torch.arange(batch), "read": (start[:, :0], None)}

    def place(self, written: list[int]) -> int:
        return sum(word * len(self.vocab) ** i for i, word in enumerate(written))

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        sentence, (read, nothing) = state["sentence"], state["read"]
        assert nothing is None
        read = torch.cat([read, tokens], dim=1)
        n = self.start.shape[1]
        assert read[:, :n].equal(self.start[sentence])
        places = [self.place(row) for row in read[:, n:].tolist()]
        return self.scores[sentence, places], {"sentence": sentence, "read": (read, None)}

    def words(self) -> list[int]:
        """What may be written."""
        v = self.vocab
        return [i for i in range(len(v)) if i == v.eos or i not in (v.pad, v.bos)]

    def search(self, sentence: int, beam: int, length_penalty: float, max_len: int) -> tuple:
        """The best sentence and its score, in plain Python."""
        kept: list[tuple[float, float, list[int]]] = [(0.0, 0.0, [])]
        for _ in range(max_len):
            grown = []
            for rank, total, written in kept:
                if written[-1:] == [self.vocab.eos]:
                    grown.append((rank, total, written))
                    continue
                logp = self.scores[sentence, self.place(written)].log_softmax(-1).tolist()
                for word in self.words():
                    new = total + logp[word]
                    length = len(written) + 1
                    grown.append((new / length**length_penalty, new, [*written, word]))
            kept = sorted(grown, key=lambda entry: -entry[0])[:beam]
        return kept[0][2], kept[0][1]


FIRST = Vocabulary(["a", "b"])
VOCABULARIES = {
    "first": FIRST,
    "apart": Vocabulary(["a", "</s>", "<pad>", "b", "<s>"]),
    "one": Vocabulary(["a", "b", "<end>", "c"], pad="<end>", bos="<end>", eos="<end>"),
    "two": Vocabulary(["a", "</s>", "b", "<s>"], pad="</s>"),
}


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("beam", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 6])  # a search goes on until all its sentences have ended
@pytest.mark.parametrize("vocab", VOCABULARIES.values(), ids=VOCABULARIES)
def test_beam_search_does_what_a_search_in_plain_python_does(
    vocab: Vocabulary, batch: int, beam: int, length_penalty: float
) -> None:
    """Sentences of unequal length, from beginnings of one or three tokens."""
    lengths = set()
    for begun in [1, 3] * (6 // batch):
        toy = Toy(vocab, batch, 4, torch.randint(len(vocab), (batch, begun)))
        kept = {"sentence": toy.state["sentence"].clone(), "read": toy.state["read"]}
        found = beam_search(
            toy.step, toy.state, toy.start, 4, vocab, beam=beam, length_penalty=length_penalty
        )
        assert toy.state["sentence"].equal(kept["sentence"]) and toy.state["read"] is kept["read"]
        for sentence, (tokens, score) in enumerate(zip(*found, strict=True)):
            best, total = toy.search(sentence, beam, length_penalty, 4)
            assert tokens.tolist() == best + [vocab.pad] * (len(tokens) - len(best))
            assert score.item() == pytest.approx(total, abs=1e-5)
            lengths.add(len(best))
    assert len(lengths) > 1 or length_penalty > 1  # then long ones may win each time


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_beam_of_all_words_finds_the_best_sentence_of_two(length_penalty: float) -> None:
    vocab = Vocabulary("abcd")
    toy = Toy(vocab, 7, 2, torch.full((7, 1), vocab.bos))
    found = beam_search(
        toy.step, toy.state, toy.start, 2, vocab, beam=5, length_penalty=length_penalty
    )
    others = [word for word in toy.words() if word != vocab.eos]
    sentences = [[vocab.eos], *map(list, product(others, toy.words()))]
    for b in range(7):
        totals = []
        for words in sentences:
            logp = [toy.scores[b, toy.place(words[:i])].log_softmax(-1)[w]
                    for i, w in enumerate(words)]  # fmt: skip
            totals.append(float(sum(logp)) / len(words) ** length_penalty)
        best = sentences[totals.index(max(totals))]
        assert found.tokens[b, : len(best)].tolist() == best


def test_an_end_that_all_have_reached_ends_the_search() -> None:
    logits, calls = torch.tensor([[0.0, 0.0, 9.0, 1.0, 2.0]]), []

    def step(tokens: Tensor, state: None) -> tuple[Tensor, None]:
        calls.append(tokens.tolist())
        return logits.expand(len(tokens), -1), state

    found = beam_search(step, None, torch.tensor([[1], [1]]), 9, FIRST)
    assert found.tokens.tolist() == [[2], [2]] and calls == [[[1], [1]]]
    logits[0, 2] = -9.0
    found = beam_search(step, None, torch.tensor([[1]]), 3, FIRST)
    assert found.tokens.tolist() == [[4, 4, 4]] and calls[1:] == [[[1]], [[4]], [[4]]]


class Pair(NamedTuple):
    first: Tensor
    second: Tensor | None


def test_rows_are_picked_from_whatever_a_state_is_made_of() -> None:
    t = torch.arange(6).view(3, 2)
    rows = torch.tensor([2, 0, 2, 2])
    state = OrderedDict(a=(t, None), b=Pair(t + 10, None), c={"d": [t]})
    picked = select_rows(state, rows)
    assert picked["a"][0].tolist() == [[4, 5], [0, 1], [4, 5], [4, 5]] and picked["a"][1] is None
    assert isinstance(picked["b"], Pair) and picked["b"].first.equal(t[rows] + 10)
    assert picked["c"]["d"][0].equal(t[rows])
    assert select_rows(None, rows) is None


def test_the_score_is_the_models_own(taught: Transformer) -> None:
    source = NUMBERS.encode(range(0, 1000, 23)).source
    found = taught.translate(source, max_len=9, beam=4)
    target = torch.cat([torch.full((len(source), 1), TARGET.bos), found.tokens], 1)
    logp = taught(source, target[:, :-1]).log_softmax(-1)
    each = logp.gather(-1, found.tokens[..., None])[..., 0]
    expected = (each * (found.tokens != TARGET.pad)).sum(-1)
    torch.testing.assert_close(found.scores, expected, atol=1e-4, rtol=0)
    assert found.scores.sum() > taught.translate(source, max_len=9).scores.sum() + 0.01
    short = taught.translate(source, max_len=9, beam=4, length_penalty=5.0)
    # a mean likes long ones
    assert (short.tokens != TARGET.pad).sum() > (found.tokens != TARGET.pad).sum()


def test_training_may_use_what_was_found(taught: Transformer) -> None:
    source = NUMBERS.encode(range(3)).source
    found = taught.translate(source, max_len=4)
    logp = taught(source, found.tokens).log_softmax(-1).gather(-1, found.tokens[..., None])
    (logp.exp().sum() * found.scores.sum()).backward()
    assert any(weight.grad is not None for weight in taught.parameters())
    taught.zero_grad()


def test_a_transformer_is_evaluated_as_the_recurrent_models_are(taught: Transformer) -> None:
    batch = NUMBERS.encode(range(20))
    untaught = Transformer(NUMBERS.source_vocab, TARGET, CONFIG).eval()
    assert evaluate(taught, batch).token > 0.3 > evaluate(untaught, batch).token
