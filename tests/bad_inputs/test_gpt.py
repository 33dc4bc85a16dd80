"""Bad input to GPT's tokenizers, layouts and heads: the error says what is wrong."""

# pyright: reportArgumentType=false

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attnbook.model.config import GPT_1
from attnbook.model.gpt import (
    Classifier,
    MultipleChoice,
    Similarity,
    both_ways,
    lay_out,
    options,
    with_marks,
)
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair, Characters, stream
from attnbook.text.vocabulary import Vocabulary

PAIRS = BytePair([("h", "e"), ("t", "he")])  # 259 tokens
LETTERS = Vocabulary("abcdef", pad="<end>", bos="<end>", eos="<end>")
SMALL = replace(GPT_1, d_model=12, n_heads=3, d_ff=20, n_layers=1, max_len=9)
PLAIN = TransformerDecoder(LETTERS, SMALL)
GPT = with_marks(PLAIN).eval()
VOCAB = GPT.vocab
HEAD, SAME, CHOICE = Classifier(GPT, 3), Similarity(GPT, 2), MultipleChoice(GPT)
ROWS = lay_out(VOCAB, [[1, 2], [3]], max_len=9)
LABELS = torch.tensor([0, 2])

BAD = [
    (lambda: BytePair([("h", "x y")]), "merges must join tokens, got 'x y' in 'h' 'x y'"),
    (lambda: BytePair([("th", "e"), ("t", "h")]), "merges must join tokens, got 'th' in 'th' 'e'"),
    (lambda: BytePair([("h", "e")] * 2), "merges must be distinct, got twice: 'h e'"),
    (lambda: BytePair([], ()), "special must hold at least one token, got none"),
    (lambda: BytePair([("h", "e")], ["he"]), "words must be distinct, got twice: ['he']"),
    (
        lambda: BytePair([], tokens=["<|endoftext|>", "!"]),
        "tokens must hold every byte unless lossy, got no '\"'",
    ),
    (lambda: PAIRS.decode([3, 259]), "ids must be token ids in 0..258, got 259"),
    (lambda: PAIRS.decode([0.5]), "ids must be token ids, whole numbers, got torch.float32"),
    (
        lambda: BytePair.train(["ab"], 256),
        "vocab_size must be a whole number of at least 257, got 256",
    ),
    (
        lambda: BytePair.train(["ab"], 257, special=("<a>", "<b>")),
        "vocab_size must be a whole number of at least 258, got 257",
    ),
    (
        lambda: BytePair.train(["ab"], 300, min_count=0),
        "min_count must be a whole number of at least 1, got 0",
    ),
    (lambda: next(stream(__file__, 0)), "size must be a whole number of at least 1, got 0"),
    (lambda: Characters(["a", "bc"]), "alphabet must hold single characters, got 'bc'"),
    (lambda: Characters(["a", 3]), "alphabet must hold single characters, got 3"),
    (lambda: Characters("aba"), "words must be distinct, got twice: ['a']"),
    (lambda: Characters("ab", "x"), "special must be longer than a character, got 'x'"),
    (
        lambda: Characters("ab").encode("abc"),
        "text must hold the 2 characters of the alphabet, got 'c'",
    ),
    (lambda: Characters("ab").decode([3]), "ids must be token ids in 0..2, got 3"),
    (
        lambda: Characters.train(["ab"], 2),
        "vocab_size must be a whole number of at least 3, got 2",
    ),
    (lambda: with_marks(GPT), "words must be distinct, got twice: ['<delimiter>'"),
    (lambda: Classifier(PLAIN, 2), "vocab must have the tokens <start> <delimiter> <extract>"),
    (lambda: lay_out(LETTERS, [[1]], max_len=9), "vocab must have the tokens <start> <delimiter>"),
    (lambda: lay_out(VOCAB, [], max_len=9), "sequences must hold at least one sequence, got none"),
    (
        lambda: lay_out(VOCAB, [[1]], max_len=2),
        "max_len must be a whole number of at least 3, got 2",
    ),
    (
        lambda: lay_out(VOCAB, [[1]], [[2]], max_len=4),
        "max_len must be a whole number of at least 5, got 4",
    ),
    (
        lambda: lay_out(VOCAB, [[1], [2]], [[3]], max_len=9),
        "second must hold 2 texts, as first, got 1",
    ),
    (
        lambda: both_ways(VOCAB, [[1], [2]], [[3]], max_len=9),
        "first and second must be equally many, got 2 and 1",
    ),
    (
        lambda: options(VOCAB, [[1], [2]], [[[3]], [[3], [4]]], max_len=9),
        "answers must hold as many answers, 1 or more, to each of 2 contexts, got [1, 2]",
    ),
    (
        lambda: options(VOCAB, [[1], [2]], [[[3]]], max_len=9),
        "answers must hold as many answers, 1 or more, to each of 2 contexts, got [1]",
    ),
    (lambda: Classifier(GPT, 0), "n_classes must be a whole number of at least 1, got 0"),
    (lambda: HEAD(ROWS[:, :-1]), "tokens must hold <extract> once in each row"),
    (lambda: HEAD(torch.cat([ROWS, ROWS], 1)), "tokens must hold <extract> once in each row"),
    (lambda: HEAD(ROWS + 5), "tokens must be token ids in 0..9, got 14"),
    (lambda: HEAD(ROWS[None]), "tokens must be [batch token], got [1, 2, 4]"),
    (lambda: SAME(ROWS), "tokens must be [batch order token], got [2, 4]"),
    (lambda: CHOICE(ROWS), "tokens must be [batch option token], got [2, 4]"),
    (lambda: HEAD.loss(ROWS, LABELS + 1), "answers must be token ids in 0..2, got 3"),
    (lambda: HEAD.loss(ROWS, LABELS[:1]), "answers must be [batch] with batch = 2, got [1]"),
    (lambda: HEAD.loss(ROWS, LABELS / 1), "answers must be token ids, whole numbers, got torch"),
    (lambda: HEAD.loss(ROWS, LABELS, auxiliary=-1), "auxiliary must be finite, at least 0, got -1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_files_that_are_none_of_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"folder must hold vocab.json and merges.txt, got"):
        BytePair.load(tmp_path)
    with pytest.raises(ValueError, match=r"folder must hold vocab.json, got"):
        Characters.load(tmp_path)
    PAIRS.save(tmp_path)
    merges = tmp_path / "merges.txt"
    merges.write_text("h e\nt he x\n")
    with pytest.raises(ValueError, match=r"merges.txt must hold two pieces a line, got \['t'"):
        BytePair.load(tmp_path)
    (tmp_path / "vocab.json").write_text('{"a": 0, "b": 2}')
    with pytest.raises(ValueError, match=r"vocab.json must number its 2 tokens 0, 1, .."):
        BytePair.load(tmp_path)
