"""Byte-pair encoding, which two tokenizers share: the most frequent pairs are merged first."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar

Piece = TypeVar("Piece", str, int)
Key = TypeVar("Key")
Value = TypeVar("Value")


class Table(dict[Key, Value]):
    """A cache of a function's values; emptied when it has too many keys."""

    def __init__(self, rule: Callable[[Key], Value], most: int = 2_000_000):
        super().__init__()
        self.rule, self.most = rule, most

    def __missing__(self, key: Key) -> Value:
        if len(self) >= self.most:
            self.clear()
        self[key] = self.rule(key)
        return self[key]


def merges(
    words: list[list[Piece]],
    often: list[int],
    min_count: int,
    join: Callable[[Piece, Piece], Piece],
) -> Iterator[tuple[tuple[Piece, Piece], Piece]]:
    """The most frequent pairs, one after another, each with the merged piece.

    Between equally frequent pairs, the smaller one comes first. Only words that contain a merged
    pair are counted again. The heap also keeps outdated counts, which are skipped when popped.

    Args:
        words: the pieces of each word; they are merged in place.
        often: the frequency of each word.
        min_count: pairs rarer than this are not merged.
        join: makes the merged piece of two pieces.
    """
    pairs = Counter[tuple[Piece, Piece]]()
    where: defaultdict[tuple[Piece, Piece], set[int]] = defaultdict(set)
    for i, word in enumerate(words):
        for pair in pairwise(word):
            pairs[pair] += often[i]
            where[pair].add(i)
    heap = [(-n, pair) for pair, n in pairs.items()]
    heapify(heap)
    while heap:
        n, best = heappop(heap)
        if -n != pairs[best] or -n < min_count:
            continue
        piece, changed = join(*best), set()
        for i in where.pop(best):
            words[i], made = _joined(words[i], best, piece)
            for pair, sign in _changes(words[i], made, best, piece):
                pairs[pair] += sign * often[i]
                changed.add(pair)
                if sign > 0:
                    where[pair].add(i)
        del pairs[best]
        for pair in changed:
            if pairs[pair]:
                heappush(heap, (-pairs[pair], pair))
        yield best, piece


def _joined(
    word: list[Piece], pair: tuple[Piece, Piece], piece: Piece
) -> tuple[list[Piece], list[int]]:
    """The pieces of a word after merging a pair from the left, and the positions of the merges."""
    (first, second), new, made = pair, [], []
    for part in word:
        if part == second and new and new[-1] == first:
            made.append(len(new) - 1)
            new[-1] = piece
        else:
            new.append(part)
    return new, made


def _changes(
    word: list[Piece], made: list[int], pair: tuple[Piece, Piece], piece: Piece
) -> Iterator[tuple[tuple[Piece, Piece], int]]:
    """Changes of pair counts by the merges: (old pair, -1) and (new pair, 1)."""
    (first, second), last = pair, -2
    for k in made:
        if k:
            yield (second if last == k - 1 else word[k - 1], first), -1
            yield (word[k - 1], piece), 1
        if k + 1 < len(word) and k + 1 not in made:
            yield (second, word[k + 1]), -1
            yield (piece, word[k + 1]), 1
        last = k
