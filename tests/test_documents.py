"""Texts that come in parts, and special tokens between the documents of a file."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnbook.learn.token_files import digest, documents, make_tokenizer, read_tokens, write_tokens
from attnbook.text.tokenizers import SPECIAL, BytePair, Characters, WordPiece, bytepair, stream
from attnbook.text.tokenizers.bytepair import END, whole_words

NAMES = (END, "<|to be|>", "<| |>", "a b")
SMALL = [("a", "b"), ("Ġ", "b"), ("<", "|"), ("e", "n")]
TEXT = st.lists(st.sampled_from([*NAMES, *"ab <|\n1", "end", "\u2003"])).map("".join)
SIZES = st.lists(st.integers(1, 9), min_size=1)


def cut(text: str, sizes: list[int]) -> list[str]:
    """A text in parts of some sizes, the rest in one."""
    places = [0]
    for size in sizes:
        places.append(places[-1] + size)
    return [text[a:b] for a, b in zip(places, [*places[1:], None], strict=True)]


@given(TEXT, SIZES)
@example("<|to be|><|endoftext|>", [1, 8, 9])
def test_parts_are_read_as_the_whole(text: str, sizes: list[int]) -> None:
    """Of any sizes; and no special token is cut, though there is white space in it."""
    ours = BytePair(SMALL, NAMES)
    for special in (False, True):
        ids = ours.encode_iterable(iter(cut(text, sizes)), special=special)
        assert list(ids) == ours.encode(text, special=special)
    parts = list(whole_words(cut(text, sizes), NAMES))
    assert "".join(parts) == text and all(parts)
    for place in range(1, len(parts)):
        before, after = "".join(parts[:place]), "".join(parts[place:])
        for name in NAMES:
            ends = [i for i in range(1, len(name)) if before.endswith(name[:i])]
            assert not any(after.startswith(name[i:]) for i in ends)


@pytest.mark.parametrize("special", [(), NAMES])
def test_the_work_grows_with_the_text_where_no_word_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, special: tuple[str, ...]
) -> None:
    """What is searched for a place to cut is little more than the text, and was its square."""
    searched = []

    class Spy:
        def finditer(self, text: str, *bounds: Any):
            searched.append(len(text))
            return ENDS.finditer(text, *bounds)

    ENDS = bytepair.ENDS
    monkeypatch.setattr(bytepair, "ENDS", Spy())
    (tmp_path / "line").write_text("a" * 100_000, "utf-8")
    assert list(stream(tmp_path / "line", 100, special)) == ["a" * 100_000]
    assert 100_000 <= sum(searched) <= 150_000


def test_training_learns_nothing_of_special_tokens() -> None:
    pages = ["the end, the endless end", "then the end of text <text>", "end"]
    for special in ([END], ["<a>", "<a> b", END]):
        apart = BytePair.train(pages, 290, special=special)
        assert apart.merges
        for name in special:
            together = BytePair.train([name.join(pages)], 290, special=special)
            assert together.merges == apart.merges
    assert Characters.train([END.join(pages)]).vocab == Characters.train(pages).vocab


def test_special_tokens_can_be_written() -> None:
    for ours in (BytePair(SMALL), Characters("abc")):
        ids = [*ours.encode("ab"), ours.vocab.eos, *ours.encode("c"), ours.vocab.eos]
        assert ours.decode(ids) == "abc"
        assert ours.decode(ids, special=True) == f"ab{END}c{END}"
        assert ours.encode(f"ab{END}c{END}", special=True) == ids
        assert ours.encode(END, special=True) == [ours.vocab.eos]
        assert [ours.vocab.tokens[i] for i in ours.special] == [END]
    pieces = WordPiece([*SPECIAL, "a", "##b"])
    ids = [pieces.vocab.bos, *pieces.encode("ab a"), pieces.mask, pieces.vocab.eos]
    assert pieces.decode(ids) == "ab a [MASK]"
    assert pieces.decode(ids, special=True) == "[CLS] ab a [MASK] [SEP]"


@given(st.lists(st.integers(0, 400), max_size=9))
def test_what_is_written_with_special_tokens_is_read_so(ids: list[int]) -> None:
    ours = BytePair(SMALL, NAMES)
    text = ours.decode_bytes([i % len(ours.vocab) for i in ids], special=True)
    assert ours.decode_bytes(ours.encode(text, special=True), special=True) == text


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe"])
def test_a_file_of_documents_has_end_tokens_between_them(tmp_path: Path, kind: str) -> None:
    pages = ["the first page\n", " a second one\n", "the third"]
    (tmp_path / "pages.txt").write_text(END.join(pages), "utf-8")
    source = str(tmp_path / "pages.txt")
    texts = list(chain.from_iterable(documents(source, "train", 0.0)))
    tokenizer = make_tokenizer(kind, texts, 270)
    end = tokenizer.vocab.eos
    path = write_tokens([texts], tokenizer, kind, tmp_path)
    expected = [end, *chain.from_iterable([*tokenizer.encode(page), end] for page in pages)]
    assert read_tokens(path).tolist() == expected
    assert kind != "bpe" or not any("|" in piece for pair in tokenizer.merges for piece in pair)  # type: ignore[union-attr]


def test_a_file_is_not_split_within_an_end_token(tmp_path: Path) -> None:
    """Wherever the share of the validation falls, it is in one of the two parts, and whole."""
    path, text = tmp_path / "pages.txt", f"one {END} two{END}{END}three"
    path.write_text(text, "utf-8")
    seen = set()
    for share in range(101):
        found = ["".join(chain.from_iterable(documents(str(path), split, share / 100)))
                 for split in ("train", "validation")]  # fmt: skip
        assert "".join(found) == text
        assert sum(part.count(END) for part in found) == 3
        seen.add(len(found[0]))
    assert {len(f"one {END}"), len(f"one {END} two{END}"), 0, len(text)} <= seen


def test_a_token_file_of_before_is_not_taken(tmp_path: Path) -> None:
    """Its name tells that special tokens are read as such: another special token, another name."""
    path = tmp_path / "pages.txt"
    path.write_text("a page", "utf-8")
    names = {digest(str(path), BytePair([], special), "train") for special in ([END], [END, "<a>"])}
    assert len(names) == 2
