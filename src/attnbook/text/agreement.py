"""Minimal pairs of agreement: the start of a sentence, and a verb in singular and plural.

"The keys to the cabinet" is followed by "are", not by "is". The words are drawn at random, so that
no corpus contains all of these sentences, and few of them make sense.
"""

import random
from typing import NamedTuple

from attnbook.checks import check_choice, check_flags, check_whole

NOUNS = (
    *("officer", "citizen", "farmer", "teacher", "lawyer", "neighbor", "worker", "soldier"),
    *("ship", "letter", "road", "school", "bank", "house", "report", "court"),
)
VERBS = (("is", "are"), ("was", "were"), ("has", "have"))
OTHERS = {"near": ("near", "behind", "beside", "above"), "saw": ("saw", "found", "followed")}
FORMS = {  # N is the subject, A an attractor: another noun before the verb
    "simple": "The N",
    "opening": "Near the A, the N",
    "preposition": "The N near the A",
    "relative": "The N that the A saw",
    "long": "The N that the A saw near the A near the A",
}


class Pair(NamedTuple):
    """The start of a sentence, and two verbs of which one agrees.

    Attributes:
        start: the text up to the verb.
        right, wrong: the verb in the subject's number, and in the other, each after a space.
    """

    start: str
    right: str
    wrong: str


def pairs(form: str, n: int, seed: int, *, attracted: bool = False) -> list[Pair]:
    """Minimal pairs of one form; subjects alternate between singular and plural.

    Args:
        form: one of `FORMS`.
        n: number of pairs.
        seed: determines the random words.
        attracted: whether all other nouns differ from the subject in number; otherwise they agree
            with it.

    Raises:
        ValueError: if there is no such form, n is below 1, or `attracted` is True for a form
            without other nouns.

    Source: Linzen et al. 2016, section 2; Marvin and Linzen 2018, section 4.
    """
    check_choice(FORMS, form=form)
    check_whole(1, n=n)
    check_flags(attracted=attracted)
    if attracted and "A" not in FORMS[form]:
        raise ValueError(f"attracted must be False where no other noun is, got form {form!r}")
    rng, found = random.Random(f"agreement {form} {seed}"), []
    for i in range(n):
        plural, words = i % 2, FORMS[form].split()
        nouns = iter(rng.sample(NOUNS, len(words)))
        for at, word in enumerate(words):
            kind, comma = word.strip(","), word[len(word.strip(",")) :]
            if kind in ("N", "A"):
                many = plural ^ (attracted and kind == "A")
                words[at] = next(nouns) + "s" * many + comma
            elif kind.lower() in OTHERS:
                drawn = rng.choice(OTHERS[kind.lower()])
                words[at] = drawn if kind.islower() else drawn.capitalize()
        verbs = rng.choice(VERBS)
        found.append(Pair(" ".join(words), f" {verbs[plural]}", f" {verbs[1 - plural]}"))
    return found
