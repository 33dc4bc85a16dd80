"""Tokenizers in a few lines each, to be read: how pieces are learnt, and two ways to cut a word.

`BytePair` and `WordPiece` give the same, and are fast.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

Pair = tuple[str, str]


def learn_merges(words: Iterable[str], n: int, least: int = 2) -> list[Pair]:
    """The n pairs that byte-pair encoding merges first, the most frequent one each time.

    Between equally frequent pairs, the one whose pieces are older comes first; letters are oldest,
    in their own order.

    Args:
        words: with repetitions; nothing is merged across two words.
        n: how many merges are learnt, at most.
        least: a pair that is rarer is not merged.

    Source: Sennrich et al. 2016, algorithm 1.
    """
    rows, learnt, age = [list(word) for word in words], list[Pair](), dict[str, int]()

    def order(counted: tuple[Pair, int]) -> tuple[int, list[tuple[int, str]]]:
        return -counted[1], [(age.get(piece, 0), piece) for piece in counted[0]]

    while len(learnt) < n:
        counts = Counter(pair for row in rows for pair in pairwise(row))
        best, often = min(counts.items(), key=order, default=(("", ""), 0))
        if often < least:
            break
        rows = [joined(row, best) for row in rows]
        learnt.append(best)
        age.setdefault("".join(best), len(learnt))
    return learnt


def joined(parts: Sequence[str], pair: Pair) -> list[str]:
    """The parts after each occurrence of a pair, from the left, has become one part."""
    new: list[str] = []
    for part in parts:
        if new and (new[-1], part) == pair:
            new[-1] += part
        else:
            new.append(part)
    return new


def by_rank(word: str, merges: Sequence[Pair]) -> list[str]:
    """The pieces of a word by byte pairs: of its pairs, the one that was learnt first is joined.

    This is repeated until no pair of neighbours was ever learnt.

    Args:
        word: its letters stand for bytes, as in `BytePair`.
        merges: pairs in the order in which they were learnt.

    Source: Sennrich et al. 2016, section 3.2.
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    parts = list(word)
    while known := [pair for pair in pairwise(parts) if pair in ranks]:
        parts = joined(parts, min(known, key=ranks.__getitem__))
    return parts


def by_longest(word: str, vocabulary: Collection[str]) -> list[str]:
    """The pieces of a word by WordPiece: from the left, always the longest that is known.

    A word that has a part which is no piece is [UNK].

    Args:
        word: as `WordPiece.words` gives it.
        vocabulary: all pieces; those that continue a word begin with ##.

    Source: Wu et al. 2016, section 4.1; the code of Devlin et al. 2019.
    """
    pieces, rest = list[str](), word
    while rest:
        mark = "##" if pieces else ""
        ends = range(len(rest), 0, -1)
        end = next((end for end in ends if mark + rest[:end] in vocabulary), 0)
        if end == 0:
            return ["[UNK]"]
        pieces.append(mark + rest[:end])
        rest = rest[end:]
    return pieces
