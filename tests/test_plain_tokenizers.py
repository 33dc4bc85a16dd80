"""The tokenizers that are shown give what the fast ones give."""

from hypothesis import given
from hypothesis import strategies as st

from attnbook.text.tokenizers import (
    SPECIAL,
    BytePair,
    WordPiece,
    by_longest,
    by_rank,
    joined,
    learn_merges,
)
from attnbook.text.tokenizers.bytepair import LETTERS


@given(st.text("ab é1'", max_size=60), st.integers(0, 30), st.integers(1, 3))
def test_merges_and_pieces_are_those_of_byte_pair(text: str, n: int, least: int) -> None:
    ours = BytePair.train([text], 257 + n, min_count=least)
    words = ["".join(LETTERS[byte] for byte in word.encode()) for word in ours.words(text)]
    learnt = learn_merges(words, len(ours.merges), least)
    assert tuple(learnt) == ours.merges
    pieces = [piece for word in words for piece in by_rank(word, learnt)]
    assert pieces == [ours.vocab.tokens[i] for i in ours.encode(text)]


@given(st.lists(st.text("abc", min_size=1, max_size=4), max_size=20), st.text("abc", max_size=20))
def test_pieces_are_those_of_word_piece(some: list[str], word: str) -> None:
    known = dict.fromkeys([*SPECIAL, "a", *some, *(f"##{each}" for each in some)])
    ours = WordPiece(known)
    wanted = [ours.vocab.tokens[i] for i in ours.encode(word)]
    assert by_longest(word, known) == wanted


def test_a_pair_is_joined_from_the_left() -> None:
    assert joined("aaa", ("a", "a")) == ["aa", "a"]
    assert joined(["ab", "ab"], ("a", "b")) == ["ab", "ab"]
    assert joined("", ("a", "b")) == []
    assert learn_merges(["abab", "ab"], 9) == [("a", "b")]
    assert learn_merges([], 9) == []
