"""The key-value cache: it grows by a key and a value a token, while a decoder writes."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import SMALL, Part, arrow, cells, grid, space, text
from attnbook.walks._attention import _brief
from attnbook.web import Drawing, Step

SHOWN = 3  # numbers of a key and of a value


def cache_growth(
    decoder: TransformerDecoder,
    tokens: Tensor,
    names: Sequence[str],
    *,
    block: int = 0,
    head: int = 0,
    **options: Any,
) -> Drawing:
    """Token by token through a decoder: each leaves a key and a value in the cache, with its bytes.

        bytes after n tokens = 2 n_layers n d_kv bytes(number)

    Args:
        decoder: one key head for each query head.
        tokens: `[n]` token ids, two to six.
        names: a short text for each token.
        block, head: of which keys, values and weights are shown.
        options: `title` and `name`, as for `Drawing`.

    Raises:
        ValueError: if the number of tokens is wrong, names do not fit, the decoder shares key
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
    path, held = f"stack.blocks.{block}.attention", []
    with evaluating(decoder), calls(decoder) as seen:
        state = decoder.start()
        for token in tokens.view(-1, 1, 1):
            logits, state = decoder.step(token, state)
            held.append(sum(k.nbytes + v.nbytes for k, v, _ in state[0].values()))
        (q, keys, *_), _ = seen[f"{path}.scores"]
        (weights, values), _ = seen[f"{path}.combine"]
        anew = decoder(tokens[None])[0, -1]
    q, k, v, a = q[0, head, -1], keys[0, head], values[0, head], weights[0, head, -1]
    shown = min(SHOWN, q.shape[0])
    best, same = int(a.argmax()), bool((logits[0] - anew).abs().max() < 1e-3)
    last = names[-1]

    def strip(name: str, vector: Tensor, role: str, among: Tensor) -> Part:
        high = float(among[..., :SHOWN].abs().max()) or 1.0
        look = {"digits": 1, "width": 31, "span": (-high, high)}
        return cells(vector[:SHOWN], role, name=name, **look)

    def small(words: str, beside: str) -> Part:
        return text(words, size=SMALL, beside=beside)

    table: list[Any] = [
        [
            None,
            small(f"keys ({shown} of {q.shape[0]})", "k"),
            small(f"values ({shown})", "v"),
            small("weight", "a"),
            small("bytes", "bytes"),
        ],
        *[
            [
                text(names[t], name="t"),
                strip("k", k[t], "key", k),
                strip("v", v[t], "value", v),
                cells([a[t]], "weight", name="a", digits=2, width=34, span=(0, 1)),
                cells([held[t]], "state", name="bytes", digits=0, width=50, span=(0, held[-1])),
            ]
            for t in range(n)
        ],
    ]
    body = grid(
        [
            *table,
            space(6),
            [small("query", "q"), strip("q", q, "query", q), None, None, None],
        ],
        gap=(7, 7),
        align="rc",
    )
    size = keys.element_size()
    each = (
        f"{len(blocks)} blocks × 2 × {held[0] // 2 // len(blocks) // size} numbers of {size} bytes"
    )
    steps = [
        Step(
            f"“{names[0]}” goes through the decoder. Each head of each block makes a key and a"
            f" value. We see those of one head: its [key](k.0) and its [value](v.0). All together"
            f" are {each}, [{held[0]:,} bytes](bytes.0). They are kept.",
            "t.0 k.0 v.0 bytes.0",
        )
    ]
    for t in range(1, n):
        steps.append(
            Step(
                f"“{names[t]}” goes through alone. Its own [key](k.{t}) and [value](v.{t})"
                f" join the others; those above are not computed again. Kept:"
                f" [{held[t]:,} bytes](bytes.{t})."
                if t == 1
                else f"“{names[t]}” leaves [a key](k.{t}) and [a value](v.{t}), too:"
                f" [{held[t]:,} bytes](bytes.{t}).",
                f"t.{t} k.{t} v.{t} bytes.{t}",
                ask="How many bytes after two tokens?" if t == 1 else "",
            )
        )
    steps += [
        Step(
            f"Only the newest token asks: the [query](q) of “{last}”. It meets all {n} keys, which"
            " lie in the cache.",
            "q",
            ask="Whose query is needed now? Those of earlier tokens, too?",
        ),
        Step(
            f"Weights on all {n} tokens, most on “{names[best]}”:"
            f" [{_brief(a[best])}](a.{best}). Earlier queries are never needed again, so no query"
            " is kept.",
            "a",
        ),
        Step(
            f"With the cache {n} tokens went through the decoder; without, 1 + 2 + … + {n} ="
            f" {n * (n + 1) // 2}."
            + (" The scores of the next token are the same." if same else ""),
        ),
    ]
    return Drawing(
        body,
        arrow("q", "a", drawn=False),
        alt=f"A row for each of the tokens {', '.join(names)}: its key, its value, the weight that"
        f" the query of {last} gives it, and the bytes of the cache after it, up to {held[-1]:,}.",
        steps=steps,
        **options,
    )
