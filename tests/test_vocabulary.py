"""Words and ids, wherever the special tokens stand."""

import subprocess
import sys

import pytest
import torch

from attnbook.text.vocabulary import IGNORED, Vocabulary, pad_batch

# Anywhere among the words; one token for all three, as in GPT-2.
APART = Vocabulary(["a", "</s>", "b", "<pad>", "c", "<s>"])
ONE = Vocabulary(["a", "b", "<end>", "c"], pad="<end>", bos="<end>", eos="<end>")


def test_special_tokens_come_first_unless_they_are_among_the_words():
    plain = Vocabulary(["a", "b"])
    assert plain.tokens == ("<pad>", "<s>", "</s>", "a", "b")
    assert (plain.pad, plain.bos, plain.eos) == (0, 1, 2)
    assert (APART.pad, APART.bos, APART.eos) == (3, 5, 1)
    assert (ONE.pad, ONE.bos, ONE.eos) == (2, 2, 2)
    assert [len(v) for v in (plain, APART, ONE)] == [5, 6, 4]
    two = Vocabulary("xy", pad="</s>")
    assert two.tokens == ("</s>", "<s>", "x", "y") and two.pad == two.eos


@pytest.mark.parametrize("vocab", [Vocabulary("abc"), APART, ONE])
def test_words_come_back_without_start_end_and_padding(vocab):
    words = ["b", "a", "c", "a"]
    ids = vocab.encode(words)
    assert [vocab.tokens[i] for i in ids] == words
    for written in (ids, [vocab.bos, *ids, vocab.eos], [*ids, vocab.eos, vocab.pad, ids[0]]):
        assert vocab.decode(written) == words
        assert vocab.decode(torch.tensor(written)) == words
    assert vocab.decode([vocab.bos, ids[0], vocab.pad, ids[1]]) == ["b"]
    assert vocab.decode([]) == vocab.decode([vocab.bos, vocab.eos]) == []


def test_a_start_token_inside_a_sentence_is_shown():
    assert APART.decode([APART.bos, 0, APART.bos, 2]) == ["a", "<s>", "b"]


def test_pad_batch_fills_up_on_either_side():
    assert pad_batch([[5], [6, 7, 8]], 9).tolist() == [[5, 9, 9], [6, 7, 8]]
    assert pad_batch([[5], [6, 7, 8]], 9, side="left").tolist() == [[9, 9, 5], [6, 7, 8]]
    targets = pad_batch([[], [4]], IGNORED)
    assert targets.tolist() == [[IGNORED], [4]] and targets.dtype == torch.long


def test_masks_and_vocabulary_need_no_number_words():
    """A reader who builds attention does not load the grammar of numbers."""
    names = "attnbook.model.masks, attnbook.text.vocabulary"
    script = f"import {names}, sys; print('num2words' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_a_double_among_many_words_is_found_at_once():
    words = [str(n) for n in range(200_000)]
    with pytest.raises(ValueError, match=r"words must be distinct, got twice: \['7'\]"):
        Vocabulary([*words, "7"])
