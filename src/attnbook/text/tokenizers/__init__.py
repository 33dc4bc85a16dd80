"""Tokenizers, from text to token ids and back: WordPiece, BytePair and Characters."""

from attnbook.text.tokenizers.bytepair import BytePair, stream, whole_words
from attnbook.text.tokenizers.characters import Characters
from attnbook.text.tokenizers.plain import by_longest, by_rank, joined, learn_merges
from attnbook.text.tokenizers.wordpiece import LONGEST, MORE, SPECIAL, WordPiece

__all__ = [
    "LONGEST",
    "MORE",
    "SPECIAL",
    "BytePair",
    "Characters",
    "WordPiece",
    "by_longest",
    "by_rank",
    "joined",
    "learn_merges",
    "stream",
    "whole_words",
]
