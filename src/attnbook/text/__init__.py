"""Texts and their token ids: vocabularies, tokenizers, corpora and synthetic tasks."""

from attnbook.text.number_words import Numbers, number_pair
from attnbook.text.restoration import Restoration
from attnbook.text.tasks import latest_value, look_back
from attnbook.text.tokenizers import BytePair, Characters, WordPiece
from attnbook.text.vocabulary import IGNORED, Pairs, Sequences, Vocabulary, pad_batch

__all__ = [
    "IGNORED",
    "BytePair",
    "Characters",
    "Numbers",
    "Pairs",
    "Restoration",
    "Sequences",
    "Vocabulary",
    "WordPiece",
    "latest_value",
    "look_back",
    "number_pair",
    "pad_batch",
]
