"""Checks of assignment 4, first task: a word in pieces."""

import random
from collections.abc import Callable
from string import ascii_lowercase
from typing import Any

import torch

from attnbook.teach.asking import check
from attnbook.teach.judging import AnswerError, holds, kind, right
from attnbook.text.tokenizers import by_longest

Answer = Callable[..., Any]
Case = tuple[str, list[str], int]  # a word, a vocabulary, the most letters that are cut
UNKNOWN, TURNS = ["[UNK]"], 10


@check({"letters": 2}, {"letters": 4})
def cut(answer: Answer, seed: int = 0, letters: int = 3) -> None:
    """The pieces of a word, from the left, always the longest that is known."""
    counts, wrong = list[int](), list[tuple[int, int, str]]()
    for word, vocabulary, most in _cases(seed, letters):
        got = _strings(answer(word, vocabulary, most))
        want = by_longest(word, vocabulary) if len(word) <= most else UNKNOWN
        counts.append(len(want))
        if got != want:
            rank, why = _why(got, want, (word, vocabulary, most))
            inside = ", ".join(p for p in vocabulary if p.removeprefix("##") in word) or "none"
            said = f"cut({word!r}, vocabulary, {most}) gives {got}, {want} is right: {why}"
            wrong.append((rank, len(word), f"{said} (pieces that occur in it: {inside})"))
    holds(not wrong, min(wrong, default=("",))[-1])
    right("cut", torch.tensor(counts).view(TURNS, -1).sum(1), seed)


def _cases(seed: int, letters: int) -> list[Case]:
    """Words of few letters, and vocabularies in which pieces begin other pieces."""
    rng, cases = random.Random(f"pieces {seed}"), list[Case]()
    alphabet = rng.sample(ascii_lowercase, letters)

    def some(least: int, most: int) -> str:
        return "".join(rng.choices(alphabet, k=rng.randint(least, most)))

    for _ in range(TURNS):
        starts, inside = [some(1, 3) for _ in range(3)], [some(1, 2) for _ in range(3)]
        ends = ["".join(rng.choices(inside, k=rng.randint(1, 3))) for _ in range(5)]
        made = [s + end for s, end in zip(starts + starts[:2], ends, strict=True)]
        starts += [word[: rng.randint(2, 4)] for word in made[:2]]  # there may be a dead end
        inside += [inside[0] + some(1, 1), inside[1] + inside[2], some(9, 12)]
        known = some(9, 12)  # and too long to be cut
        distinct = [*dict.fromkeys([*starts, known, *(f"##{each}" for each in inside)])]
        vocabulary = rng.sample(distinct, len(distinct))
        words = [*made, made[-1] + some(1, 1), some(1, 1), some(2, 4), rng.choice(starts + inside)]
        words.append(known)
        cases += [(word, vocabulary, rng.randint(4, 8)) for word in words]
    return cases


def _strings(got: Any) -> list[str]:
    """An answer as a list of strings.

    Raises:
        AnswerError: if it is none.
    """
    if not isinstance(got, list | tuple):
        what = "None: does the function return it?" if got is None else f"a {kind(got)}"
        raise AnswerError(f"cut must return a list of strings, got {what}")
    for each in got:
        holds(isinstance(each, str), f"a piece of cut must be a string, got a {kind(each)}")
    return [*got]


def _why(got: list[str], want: list[str], case: Case) -> tuple[int, str]:
    """What is wrong with a word, and a rank: of all wrong words that of the lowest is told."""
    word, vocabulary, most = case
    strange = [p for p in got if not {p, f"##{p}"} & {*vocabulary, *UNKNOWN}]
    whole = "".join(p.removeprefix("##") for p in got) == word
    causes: dict[str, object] = {
        "[UNK] stands alone, for the whole word": got != UNKNOWN and "[UNK]" in got,
        f"{', '.join(strange)} is not in the vocabulary": strange,
        "a piece that goes on a word begins with ##":
            any(not p.startswith("##") for p in got[1:]),
        "a piece with ## goes on a word, and cannot begin one": got and got[0].startswith("##"),
        "where no piece fits, the whole word is [UNK]": want == UNKNOWN and not whole,
        "these pieces do not make up the word": got != UNKNOWN and not whole,
        "take the longest piece that fits, each time, from the left": want != UNKNOWN != got,
        "it never goes back: behind the longest pieces nothing fits": want == UNKNOWN,
        "the vocabulary has its pieces": len(word) < most,
        f"a word of exactly {most} letters is cut, too": True,
    }  # fmt: skip
    if len(word) > most:
        return len(causes), f"a word of more than {most} letters is [UNK]"
    return next((rank, why) for rank, (why, true) in enumerate(causes.items()) if true)
