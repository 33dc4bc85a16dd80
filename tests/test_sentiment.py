"""The labelled snippets: who has a label, that splits stay apart, and which rows a step learns."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnbook.text.sentiment import LABELS, SHARES, Snippet, epochs, snippets, split_of, words


@pytest.fixture
def texts(asset) -> dict[str, tuple[Snippet, ...]]:
    asset("sentiment")
    return {split: snippets(split) for split in SHARES}


def test_every_snippet_with_a_label_is_in_one_split(texts):
    found = [snippet for split in texts.values() for snippet in split]
    assert len(found) == 10_070  # 10,072 rows, two sentences twice
    assert len({words(snippet.text) for snippet in found}) == len(found)
    assert all(0.5 <= abs(snippet.score) <= 4 for snippet in found)
    sizes = {split: len(rows) for split, rows in texts.items()}
    assert sizes == {"train": 7009, "validation": 1037, "test": 2024}


def test_labels_say_praise_or_blame(texts):
    by_text = {words(snippet.text): snippet for split in texts.values() for snippet in split}
    good, bad = (by_text[f"one of the {kind} movies of the year"] for kind in ("best", "worst"))
    assert [LABELS[good.label], LABELS[bad.label]] == ["positive", "negative"]


def test_the_first_snippets_are_a_fair_sample(texts):
    for n in (500, 1000, 2000):
        positive = sum(snippet.label for snippet in texts["train"][:n])
        assert abs(positive - n / 2) < 4 * (n / 4) ** 0.5


def test_splits_share_no_sentence_not_even_nearly(texts):
    """No two snippets of two splits have seven words in eight in common, of all that they have."""
    seen = defaultdict(list)
    for snippet in texts["train"]:
        mine = set(words(snippet.text).split())
        for word in mine:
            seen[word].append(mine)
    for snippet in texts["validation"] + texts["test"]:
        mine = set(words(snippet.text).split())
        rare = sorted(mine, key=lambda word: len(seen[word]))[: len(mine) // 7 + 1]
        for theirs in (other for word in rare for other in seen[word]):
            assert len(mine & theirs) < 7 / 8 * len(mine | theirs), (mine, theirs)


def test_a_split_follows_from_the_words_alone():
    assert split_of("A pretentious mess") == split_of('"...a PRETENTIOUS mess..."')
    drawn = Counter(split_of(f"sentence {i}") for i in range(10_000))
    for split, share in SHARES.items():
        assert abs(drawn[split] - 1000 * share) < 4 * (100 * share * (10 - share)) ** 0.5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(1, 40), st.integers(0))
def test_an_epoch_has_every_row_once(lengths, batch_size, seed):
    batch = epochs(lengths, batch_size=batch_size, seed=seed)
    n_steps = -(-len(lengths) // batch_size)
    for epoch in range(2):
        drawn = [batch(epoch * n_steps + step) for step in range(n_steps)]
        assert sorted(row for rows in drawn for row in rows) == list(range(len(lengths)))
        sizes = {len(rows) for rows in drawn}
        assert max(sizes) <= batch_size and max(sizes) - min(sizes) <= 1


def test_batches_depend_on_seed_and_step_alone():
    lengths = [i * i % 37 for i in range(500)]
    one, two, other = (epochs(lengths, seed=seed) for seed in (3, 3, 4))
    steps = [40, 3, 16, 0, 17]
    assert {step: one(step) for step in steps} == {step: two(step) for step in steps[::-1]}
    assert one(0) != other(0) and sorted(one(0)) != sorted(one(16))


def test_rows_of_a_batch_have_like_lengths():
    """Little is computed in vain: random batches of these would be padding by almost a half."""
    lengths = [1 + i * 7919 % 50 for i in range(2000)]
    batch = epochs(lengths, seed=1)
    drawn = [[lengths[row] for row in batch(step)] for step in range(63)]
    assert sum(max(rows) * len(rows) for rows in drawn) < 1.2 * sum(lengths)
    assert [max(rows) for rows in drawn] != sorted(max(rows) for rows in drawn)
