"""Many, grouped and single key-value heads: what is kept for each token, and what it costs."""

from collections.abc import Mapping
from typing import Any

from attnbook.checks import check_range, check_whole
from attnbook.model.costs import step_cost
from attnbook.show.drawing import SMALL, Part, arrow, box, cells, column, frame, row, text
from attnbook.web import Drawing, Step

NAMES = {"many": "multi-head", "groups": "grouped queries", "one": "multi-query"}


def shared_heads(
    bits: Mapping[int, float],
    *,
    n: int,
    d_head: int,
    n_layers: int,
    size: int = 2,
    **options: Any,
) -> Drawing:
    """Query heads on as many key heads, on a few, and on one: bytes of the cache, and quality.

        bytes = 2 n_layers n n_kv_heads d_head size

    Args:
        bits: bits per character by the number of key heads; the largest number is that of query
            heads, and every other divides it; the last is 1.
        n, d_head, n_layers, size: tokens, numbers of a head, blocks, and bytes of a number of the
            model whose cache is counted.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if there are not two to four numbers of heads, falling to 1, each a divisor of
            the first, or the first is above 8.

    Source: Shazeer 2019, section 3; Ainslie et al. 2023, section 2.2, figure 2.
    """
    counts = list(bits)
    check_range(2, 4, bits=len(counts))
    check_whole(1, **{f"heads {g}": g for g in counts})
    most = counts[0]
    check_range(2, 8, heads=most)
    if counts != sorted(counts, reverse=True) or counts[-1] != 1 or any(most % g for g in counts):
        raise ValueError(f"bits must name numbers of heads falling to 1, got {counts}")
    kept = [step_cost(n, most * d_head, n_layers, most, g, size=size).cache / 1e6 for g in counts]

    def named(g: int) -> str:
        return NAMES["many" if g == most else "one" if g == 1 else "groups"]

    def head(words: str, role: str, name: str) -> Part:
        return box(words, role, name=name, size=SMALL, width=30)

    frames = []
    for i, g in enumerate(counts):
        queries = row(*(head(f"q{m}", "query", f"q-{i}") for m in range(1, most + 1)), gap=6)
        keys = row(*(head("k v", "key", f"k-{i}") for _ in range(g)), gap=6 + 36 * (most // g - 1))
        numbers = row(
            text("cache, MB", size=SMALL, beside=f"mb-{i}"),
            cells([kept[i]], "state", name=f"mb-{i}", digits=1, width=42, span=(0, kept[0])),
            text("bits", size=SMALL, beside=f"bits-{i}"),
            cells([bits[g]], "weight", name=f"bits-{i}", digits=2, width=38, span=(0, 8)),
            gap=6,
        )
        frames.append(frame(column(queries, keys, numbers, gap=16), named(g), name=f"all-{i}"))
    links = [
        arrow(f"k-{i}.{m * g // most}" if g > 1 else f"k-{i}", f"q-{i}.{m}", "key")
        for i, g in enumerate(counts)
        for m in range(most)
    ]
    steps = [
        Step(
            f"[Multi-head](all-0): {most} heads of queries, {most} heads of keys and values. After"
            f" {n:,} tokens the cache has [{kept[0]:.1f} MB](mb-0).",
            "all-0",
        )
    ]
    for i, g in enumerate(counts[1:], 1):
        title = named(g).capitalize()
        told = (
            f"{most // g} heads of queries share one head of keys and values"
            if g > 1
            else f"all {most} heads of queries share one head of keys and values"
        )
        steps.append(
            Step(
                f"[{title}](all-{i}): {told}. The cache shrinks to"
                f" [{kept[i]:.1f} MB](mb-{i}), {counts[0] // g} times less.",
                f"all-{i}",
                ask=f"With {g} head{'s' * (g > 1)} of keys: how large is the cache?",
            )
        )
    listed = ", ".join(f"[{bits[g]:.2f}](bits-{i})" for i, g in enumerate(counts))
    steps.append(
        Step(
            f"And quality? Small models of text, of one size, each with such heads, need {listed}"
            " bits a character. Queries stay: each head still asks for itself."
        )
    )
    return Drawing(
        column(*frames, gap=10),
        *links,
        alt=f"{len(counts)} frames. In each, a row of {most} query heads above"
        f" {', '.join(map(str, counts))} heads of keys and values, joined by arrows, and the bytes"
        " of the cache and the bits per character.",
        steps=steps,
        **options,
    )
