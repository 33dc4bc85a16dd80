"""Multi-head, grouped-query and multi-query attention: the cache's size, and the quality."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from attnbook.checks import check_range, check_whole
from attnbook.model.costs import step_cost
from attnbook.show.drawing import SMALL, Arrow, Part, arrow, box, cells, column, frame, row
from attnbook.walks._pieces import small
from attnbook.web import Drawing, Step


class Shared(NamedTuple):
    """Query heads that share some key heads."""

    queries: int
    keys: int
    kept: float  # megabytes of the cache
    bits: float  # per character

    @property
    def title(self) -> str:
        if self.keys == self.queries:
            return "multi-head"
        return "multi-query" if self.keys == 1 else "grouped queries"


def shared_heads(
    bits: Mapping[int, float],
    *,
    n: int,
    d_head: int,
    n_layers: int,
    size: int = 2,
    **options: Any,
) -> Drawing:
    """Query heads with as many key heads, with a few, and with one: cache size and quality.

        bytes = 2 n_layers n n_kv_heads d_head size

    Args:
        bits: number of key heads -> bits per character; the first number is also that of the query
            heads, the others divide it, and the last is 1.
        n, d_head, n_layers, size: number of tokens, size of a head, number of blocks, and bytes per
            number, of the model whose cache is counted.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there are not two to four numbers of heads, decreasing to 1, each a divisor
            of the first, or the first is above 8.

    Source: Shazeer 2019, section 3; Ainslie et al. 2023, section 2.2, figure 2.
    """
    counts = list(bits)
    check_range(2, 4, bits=len(counts))
    check_whole(1, **{f"heads {g}": g for g in counts})
    most = counts[0]
    check_range(2, 8, heads=most)
    if counts != sorted(counts, reverse=True) or counts[-1] != 1 or any(most % g for g in counts):
        raise ValueError(f"bits must name numbers of heads falling to 1, got {counts}")
    kinds = [
        Shared(most, g, step_cost(n, most * d_head, n_layers, most, g, size=size).cache / 1e6, b)
        for g, b in bits.items()
    ]
    return Drawing(
        column(*(_frame(i, kind, kinds[0].kept) for i, kind in enumerate(kinds)), gap=10),
        *(link for i, kind in enumerate(kinds) for link in _links(i, kind)),
        alt=f"{len(counts)} frames. In each, a row of {most} query heads above"
        f" {', '.join(map(str, counts))} heads of keys and values, joined by arrows, and the bytes"
        " of the cache and the bits per character.",
        steps=_steps(kinds, n),
        **options,
    )


def _frame(i: int, kind: Shared, largest: float) -> Part:
    """The heads, the cache's size, shaded relative to the `largest`, and the quality."""

    def head(words: str, role: str, name: str) -> Part:
        return box(words, role, name=name, size=SMALL, width=30)

    queries = row(*(head(f"q{m}", "query", f"q-{i}") for m in range(1, kind.queries + 1)), gap=6)
    apart = 6 + 36 * (kind.queries // kind.keys - 1)
    keys = row(*(head("k v", "key", f"k-{i}") for _ in range(kind.keys)), gap=apart)
    numbers = row(
        small("cache, MB", f"mb-{i}"),
        cells([kind.kept], "state", name=f"mb-{i}", digits=1, width=42, span=(0, largest)),
        small("bits", f"bits-{i}"),
        cells([kind.bits], "weight", name=f"bits-{i}", digits=2, width=38, span=(0, 8)),
        gap=6,
    )
    return frame(column(queries, keys, numbers, gap=16), kind.title, name=f"all-{i}")


def _links(i: int, kind: Shared) -> list[Arrow]:
    """From each key head to the query heads that share it."""
    return [
        arrow(
            f"k-{i}.{m * kind.keys // kind.queries}" if kind.keys > 1 else f"k-{i}",
            f"q-{i}.{m}",
            "key",
        )
        for m in range(kind.queries)
    ]


def _steps(kinds: list[Shared], n: int) -> list[Step]:
    first, most = kinds[0], kinds[0].queries
    steps = [
        Step(
            f"[Multi-head](all-0): {most} heads of queries, {most} heads of keys and values. After"
            f" {n:,} tokens the cache has [{first.kept:.1f} MB](mb-0).",
            "all-0",
        )
    ]
    for i, kind in enumerate(kinds[1:], 1):
        heads = f"{kind.keys} head{'s' * (kind.keys > 1)} of keys"
        sharing = str(most // kind.keys) if kind.keys > 1 else f"all {most}"
        steps.append(
            Step(
                f"[{kind.title.capitalize()}](all-{i}): {sharing} heads of queries share one head"
                f" of keys and values. The cache shrinks to [{kind.kept:.1f} MB](mb-{i}),"
                f" {most // kind.keys} times less.",
                f"all-{i}",
                ask=f"With {heads}: how large is the cache?",
            )
        )
    listed = ", ".join(f"[{kind.bits:.2f}](bits-{i})" for i, kind in enumerate(kinds))
    quality = Step(
        f"And quality? Small models of text, of one size, each with such heads, need {listed}"
        " bits a character. Queries stay: each head still asks for itself."
    )
    return [*steps, quality]
