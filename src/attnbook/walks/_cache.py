"""The key-value cache, which grows by a key and a value per token while a decoder writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import Part, arrow, cells, grid, space, text
from attnbook.walks._pieces import brief, small
from attnbook.web import Drawing, Step

SHOWN = 3  # numbers shown of a key or a value


@dataclass(frozen=True)
class Kept:
    """A decoder's cache, and what one head reads from it for the last token."""

    names: Sequence[str]
    n_blocks: int
    held: list[int]  # bytes after each token
    q: Tensor  # [d_head]
    k: Tensor  # [token d_head]
    v: Tensor  # [token d_head]
    a: Tensor  # [token] weights
    size: int  # bytes per number
    same: bool  # whether the next token's logits are the same without a cache


def cache_growth(
    decoder: TransformerDecoder,
    tokens: Tensor,
    names: Sequence[str],
    *,
    block: int = 0,
    head: int = 0,
    **options: Any,
) -> Drawing:
    """Token by token through a decoder: the key and value that each caches, and the cache's bytes.

        bytes after n tokens = 2 n_layers n d_kv bytes(number)

    Args:
        decoder: a decoder with one key head for each query head.
        tokens: `[n]` token ids, two to six.
        names: a short text for each token.
        block, head: indices of the head whose keys, values and weights are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the number of tokens is wrong, names do not match, the decoder shares key
            heads, or `block` or `head` is out of range.

    Source: Shazeer 2019, section 2.3.
    """
    n = len(names)
    check_range(2, 6, tokens=n)
    check_shapes(tokens=(tokens, "token"), token=n)
    config, blocks = decoder.stack.config, decoder.stack.blocks
    check_whole(0, block=block, head=head)
    check_range(0, len(blocks) - 1, block=block)
    check_range(0, config.n_heads - 1, head=head)
    if config.n_kv_heads not in (None, config.n_heads):
        raise ValueError(f"decoder must have a key head for each query head, got {config}")
    kept = _kept(decoder, tokens, names, block, head)
    return Drawing(
        _body(kept),
        arrow("q", "a", drawn=False),
        alt=f"A row for each of the tokens {', '.join(names)}: its key, its value, the weight that"
        f" the query of {names[-1]} gives it, and the bytes of the cache after it, up to"
        f" {kept.held[-1]:,}.",
        steps=[*_growth(kept), *_use(kept)],
        **options,
    )


def _kept(
    decoder: TransformerDecoder, tokens: Tensor, names: Sequence[str], block: int, head: int
) -> Kept:
    path, held = f"stack.blocks.{block}.attention", []
    with evaluating(decoder), calls(decoder) as seen:
        state = decoder.start()
        for token in tokens.view(-1, 1, 1):
            logits, state = decoder.step(token, state)
            held.append(sum(k.nbytes + v.nbytes for k, v, _ in state[0].values()))
        (q, keys, *_), _ = seen[f"{path}.scores"]
        (weights, values), _ = seen[f"{path}.combine"]
        anew = decoder(tokens[None])[0, -1]
    return Kept(
        names,
        len(decoder.stack.blocks),
        held,
        q=q[0, head, -1],
        k=keys[0, head],
        v=values[0, head],
        a=weights[0, head, -1],
        size=keys.element_size(),
        same=bool((logits[0] - anew).abs().max() < 1e-3),
    )


def _body(kept: Kept) -> Part:
    def strip(name: str, vector: Tensor, role: str, among: Tensor) -> Part:
        high = float(among[..., :SHOWN].abs().max()) or 1.0
        look = {"digits": 1, "width": 31, "span": (-high, high)}
        return cells(vector[:SHOWN], role, name=name, **look)

    held, d_head = kept.held, len(kept.q)
    shown = min(SHOWN, d_head)
    heads = [
        None,
        small(f"keys ({shown} of {d_head})", "k"),
        small(f"values ({shown})", "v"),
        small("weight", "a"),
        small("bytes", "bytes"),
    ]
    lines = [
        [
            text(name, name="t"),
            strip("k", kept.k[t], "key", kept.k),
            strip("v", kept.v[t], "value", kept.v),
            cells([kept.a[t]], "weight", name="a", digits=2, width=34, span=(0, 1)),
            cells([held[t]], "state", name="bytes", digits=0, width=50, span=(0, held[-1])),
        ]
        for t, name in enumerate(kept.names)
    ]
    query = [small("query", "q"), strip("q", kept.q, "query", kept.q), None, None, None]
    return grid([heads, *lines, space(6), query], gap=(7, 7), align="rc")


def _growth(kept: Kept) -> list[Step]:
    """A step for each token that goes through the decoder."""
    first, n_blocks = kept.held[0], kept.n_blocks
    numbers = f"{first // 2 // n_blocks // kept.size} numbers of {kept.size} bytes"
    steps = [
        Step(
            f"“{kept.names[0]}” goes through the decoder. Each head of each block makes a key and a"
            " value. We see those of one head: its [key](k.0) and its [value](v.0). All heads of"
            f" all blocks: {n_blocks} blocks × 2 × {numbers}, [{first:,} bytes](bytes.0). They are"
            " kept.",
            "t.0 k.0 v.0 bytes.0",
        )
    ]
    for t, (name, held) in enumerate(zip(kept.names[1:], kept.held[1:], strict=True), 1):
        told = f"“{name}” leaves [a key](k.{t}) and [a value](v.{t}), too:"
        if t == 1:
            told = (
                f"“{name}” goes through alone. Its own [key](k.{t}) and [value](v.{t}) join the"
                " others; those above are not computed again. Kept:"
            )
        steps.append(
            Step(
                f"{told} [{held:,} bytes](bytes.{t}).",
                f"t.{t} k.{t} v.{t} bytes.{t}",
                ask="How many bytes after two tokens?" if t == 1 else "",
            )
        )
    return steps


def _use(kept: Kept) -> list[Step]:
    """What the last token reads, and what the cache has saved."""
    n, best = len(kept.names), int(kept.a.argmax())
    return [
        Step(
            f"Only the newest token asks: the [query](q) of “{kept.names[-1]}”. It meets all {n}"
            " keys, which lie in the cache.",
            "q",
            ask="Whose query is needed now? Those of earlier tokens, too?",
        ),
        Step(
            f"Weights on all {n} tokens, most on “{kept.names[best]}”:"
            f" [{brief(kept.a[best])}](a.{best}). Earlier queries are never needed again, so no"
            " query is kept.",
            "a",
        ),
        Step(
            f"With the cache {n} tokens went through the decoder; without, 1 + 2 + … + {n} ="
            f" {n * (n + 1) // 2}."
            + (" The scores of the next token are the same." if kept.same else ""),
        ),
    ]
