"""Number words: English to German morphemes, with gold links between the words.

`forty two` is `zwei und vierzig`: a translation task with a small vocabulary, an unlimited supply
of sentences of any length, changes of word order, and alignments that are known exactly. Numbers
below one thousand are spelt by num2words.
"""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from attnbook.checks import check_range, check_whole
from attnbook.text.vocabulary import Pairs, Vocabulary, pad_batch

MAX_DIGITS = 12

ENGLISH_SCALES = ("", "thousand", "million", "billion")
GERMAN_SCALES = (
    ("", ""),
    ("tausend", "tausend"),
    ("Million", "Millionen"),
    ("Milliarde", "Milliarden"),
)
ENGLISH_TENS = frozenset("twenty thirty forty fifty sixty seventy eighty ninety".split())
GERMAN_MORPHEMES = tuple(
    "null ein eins eine zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig "
    "sechzig siebzig achtzig neunzig und hundert tausend Million Millionen Milliarde "
    "Milliarden".split()
)
_LONGEST_FIRST = re.compile("|".join(sorted(GERMAN_MORPHEMES, key=len, reverse=True)))

# A word and its place in the number ("hundreds", "tens", "units", ...); None for "and" and "und".
Word = tuple[str, str | None]


def split_german(text: str) -> list[str]:
    """Split German number words into morphemes by greedy longest match, without loss.

    Args:
        text: a number in German words, as num2words writes it.

    Raises:
        ValueError: if a part of the text is not a German number morpheme.
    """
    compact = text.replace(" ", "")
    morphemes = _LONGEST_FIRST.findall(compact)
    if "".join(morphemes) != compact:
        raise ValueError(f"text must consist of German number morphemes, got {text!r}")
    return morphemes


@cache
def _spelled(value: int, language: str = "en") -> str:
    from num2words import num2words  # imported late: most chapters do not need it

    return num2words(value, lang=language)


@cache
def _english_group(value: int) -> tuple[Word, ...]:
    """English words of a number in 1..999, each with its place."""
    words = _spelled(value).replace("-", " ").split()
    head: list[Word] = []
    if "hundred" in words:
        head = [(words[0], "hundreds"), (words[1], "hundred")]
        words = words[2:]
    rest = [(w, None if w == "and" else "tens" if w in ENGLISH_TENS else "units") for w in words]
    return (*head, *rest)


@cache
def _german_group(value: int) -> tuple[Word, ...]:
    """German morphemes of a number in 1..999, each with its place."""
    words = split_german(_spelled(value, "de"))
    head: list[Word] = []
    if "hundert" in words:
        head = [(words[0], "hundreds"), (words[1], "hundred")]
        words = words[2:]
    if "und" in words:
        return (*head, (words[0], "units"), ("und", None), (words[2], "tens"))
    tens = bool(words) and value % 100 >= 20
    return (*head, *((w, "tens" if tens else "units") for w in words))


@dataclass(frozen=True)
class NumberPair:
    """A number in English words and German morphemes.

    Attributes:
        number: the number itself.
        source: its English words.
        target: its German morphemes.
        links: pairs (target position, source position) of words that translate each other; the
            German `und` and the English `and` have no link.
    """

    number: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int], ...]

    def link_matrix(self) -> Float[Tensor, "target source"]:
        """The links as a matrix: 1 where a morpheme translates a word, 0 elsewhere."""
        matrix = torch.zeros(len(self.target), len(self.source))
        for i, j in self.links:
            matrix[i, j] = 1.0
        return matrix


def number_pair(number: int) -> NumberPair:
    """Write a number in English words and German morphemes, with the links between them.

    Args:
        number: 0 up to 999,999,999,999.

    Raises:
        ValueError: if the number is out of range, or not a whole number.
    """
    check_whole(0, number=number)
    check_range(0, 10**MAX_DIGITS - 1, number=number)
    return _pair(int(number))  # comparisons of NumPy numbers give NumPy booleans


@lru_cache(maxsize=2**16)  # a second model trains on the same numbers
def _pair(number: int) -> NumberPair:
    if number == 0:
        return NumberPair(0, ("zero",), ("null",), ((0, 0),))
    english: list[tuple[str, object]] = []
    german: list[tuple[str, object]] = []
    for scale in range(len(ENGLISH_SCALES) - 1, -1, -1):
        group = number // 1000**scale % 1000
        if not group:
            continue
        if scale == 0 and group < 100 and english:
            english.append(("and", None))
        english += [(w, place and (scale, place)) for w, place in _english_group(group)]
        german_words = list(_german_group(group))
        if german_words[-1][0] == "eins" and scale:  # "ein" tausend, "eine" Million
            german_words[-1] = ("ein" if scale == 1 else "eine", german_words[-1][1])
        german += [(w, place and (scale, place)) for w, place in german_words]
        if scale:
            english.append((ENGLISH_SCALES[scale], (scale, "scale")))
            german.append((GERMAN_SCALES[scale][group > 1], (scale, "scale")))
    where = {place: j for j, (_, place) in enumerate(english) if place}
    return NumberPair(
        number,
        tuple(w for w, _ in english),
        tuple(w for w, _ in german),
        tuple((i, where[place]) for i, (_, place) in enumerate(german) if place),
    )


def has_unsettled_german(number: int) -> bool:
    """Whether a group of digits above the last ends in 01, where num2words is not idiomatic German.

    num2words writes "zweihunderteins Millionen", which no German does, and Germans do not agree on
    what to write instead: the book leaves such numbers out.
    """
    groups = [number // 1000**scale % 1000 for scale in range(1, len(ENGLISH_SCALES))]
    return any(group > 1 and group % 100 == 1 for group in groups)


class Numbers:
    """The translation task: English number words to German morphemes.

    Args:
        max_digits: training numbers have 1 to this many digits, each length about equally often
            (two digits a little less, since a quarter of them are held out).
        held_out: this many numbers of each length (at most a quarter of them) are kept for testing.
            Training never sees them; the ten numbers of one digit are never held out.
        seed: determines which numbers are held out.
        extra: further numbers to train on, one sample in 16 (chapter 1: short round numbers with
            a scale word that the training lengths lack).

    Raises:
        ValueError: if `max_digits` is not in 1..12, or `held_out` is negative.
    """

    def __init__(
        self, max_digits: int = 9, *, held_out: int = 100, seed: int = 0, extra: Sequence[int] = ()
    ):
        check_whole(1, max_digits=max_digits)
        check_whole(0, held_out=held_out)
        check_range(1, MAX_DIGITS, max_digits=max_digits)
        for number in extra:
            number_pair(number)
        self.held_out = {d: self._choose(d, held_out, seed) for d in range(1, MAX_DIGITS + 1)}
        self._hidden = {n for d in range(2, MAX_DIGITS + 1) for n in self.held_out[d]}
        self.max_digits = max_digits
        self.extra = tuple(n for n in extra if n not in self._hidden)

    @staticmethod
    def _draw(rng: random.Random, n_digits: int) -> int:
        while True:
            number = rng.randrange(10 ** (n_digits - 1) if n_digits > 1 else 0, 10**n_digits)
            if not has_unsettled_german(number):
                return number

    @classmethod
    def _choose(cls, n_digits: int, count: int, seed: int) -> tuple[int, ...]:
        if n_digits == 1:
            return tuple(range(10))
        rng = random.Random(f"held out {seed} {n_digits}")
        chosen: dict[int, None] = {}
        while len(chosen) < min(count, 9 * 10 ** (n_digits - 1) // 4):
            chosen[cls._draw(rng, n_digits)] = None
        return tuple(chosen)

    @cached_property
    def source_vocab(self) -> Vocabulary:
        """The English vocabulary: about thirty words and the three special tokens."""
        words = [_spelled(n) for n in (*range(20), *range(20, 100, 10))]
        return Vocabulary([*words, "and", "hundred", *ENGLISH_SCALES[1:]])

    @cached_property
    def target_vocab(self) -> Vocabulary:
        """The German vocabulary: about 35 morphemes and the three special tokens."""
        return Vocabulary(GERMAN_MORPHEMES)

    def encode(self, numbers: Iterable[int]) -> Pairs:
        """Token ids of numbers; targets begin with a start token and end with an end token."""
        pairs = [number_pair(number) for number in numbers]
        source, target = self.source_vocab, self.target_vocab
        return Pairs(
            pad_batch([source.encode(p.source) for p in pairs], source.pad),
            pad_batch(
                [[target.bos, *target.encode(p.target), target.eos] for p in pairs], target.pad
            ),
        )

    def batch(self, step: int, *, batch_size: int = 64, seed: int = 0) -> Pairs:
        """The training batch of a step; `seed` and `step` alone determine it."""
        check_whole(1, batch_size=batch_size)
        rng = random.Random(f"batch {seed} {step}")
        numbers: list[int] = []
        while len(numbers) < batch_size:
            if self.extra and rng.random() < 1 / 16:
                numbers.append(rng.choice(self.extra))
                continue
            number = self._draw(rng, rng.randint(1, self.max_digits))
            if number not in self._hidden:
                numbers.append(number)
        return self.encode(numbers)
