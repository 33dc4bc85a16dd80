"""Small walks through the parts that a modern decoder has in place of older ones."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import silu

from attnbook.checks import check_range, check_whole
from attnbook.model.block import Block
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import arrow, cells, column, row
from attnbook.walks._parts import SHOWN, strip, walk
from attnbook.web import Drawing, Step


def modern_walks(
    model: TransformerDecoder, tokens: Tensor, words: Sequence[str], *, layer: int = 0
) -> dict[str, Drawing]:
    """What each modern part of a decoder's block makes of a text's last token.

    Args:
        model: with RMSNorm, SwiGLU, rotary positions (pairing "half") and up to four heads of
            queries that share two or more heads of keys.
        tokens: `[token]` of the text, two or more.
        words: the last two tokens, spelled.
        layer: index of the block.

    Returns:
        Walks by the names of what a `ModelMap` exchanges: "norm", "network", "places", "keys"; norm
        and places are those of self-attention, places shows head 1.

    Raises:
        ValueError: if the model has other parts, there are too few tokens or words, or no such
            layer.

    Source: Zhang and Sennrich 2019, equation 4; Shazeer 2020, equation 6; Su et al. 2021, equation
    34; Ainslie et al. 2023, section 2.2.
    """
    config = model.stack.config
    has = config.normalizer, config.gated and config.activation, config.positions
    if has != ("rms", "silu", "rotary") or config.rotary_pairing != "half":
        raise ValueError(f"model must have RMSNorm, SwiGLU and RoPE by halves, got {config}")
    heads, groups = config.n_heads, config.n_kv_heads or config.n_heads
    check_range(2, 4, n_heads=heads)
    check_range(2, heads / 2, n_kv_heads=groups)
    check_range(2, torch.inf, tokens=len(tokens), words=len(words))
    check_whole(0, layer=layer)
    check_range(0, config.n_layers - 1, layer=layer)
    with evaluating(model), calls(model) as seen:
        model(tokens[None])
    path, block = f"stack.blocks.{layer}", cast(Block, model.stack.blocks[layer])
    (x, *_), out = seen[f"{path}.attention_norm"]
    (normed, *_), fed = seen[f"{path}.feed_forward"]
    up, gate = (seen[f"{path}.feed_forward.{name}"][1][0, -1] for name in ("up", "gate"))
    (q, k, *_), scores = seen[f"{path}.attention.scores"]
    made = seen[f"{path}.attention.q"][1].unflatten(-1, (heads, -1)).transpose(1, 2)
    made = seen.get(f"{path}.attention.q_norm", (None, made))[1]
    shared = k[0, :: heads // groups, -2]
    return {
        "norm": _norm(x[0, -1], out[0, -1], block.attention_norm),
        "network": _network(normed[0, -1], gate, silu(gate), up, fed[0, -1]),
        "places": _places(made[0, 0, -1], q[0, 0, -1], len(tokens) - 1, config, words[-1]),
        "keys": _keys(q[0, :, -1], shared, scores[0, :, -1, -2], words[-2:]),
    }


def _norm(x: Tensor, out: Tensor, norm: Any) -> Drawing:
    root = (x.pow(2).mean() + norm.eps).sqrt()
    normed, gain = x / root, float(norm.weight.detach()[0])
    measured = cells(root[None], "weight", name="measured", digits=2, width=42)
    rows = [["x", strip(x, "x")], ["root mean square", measured]]
    rows += [["normed", strip(normed, "normed")], ["times gain", strip(out, "out")]]
    steps = [
        Step(f"One token's [vector](x): {SHOWN} of its {len(x)} numbers.", "x"),
        Step(
            "One number is measured, not two: the [root of the mean of all squares](measured),"
            f" {float(root):.2f}. The mean stays.",
            "measured",
        ),
        Step(
            f"Each number is [divided by it](normed): {float(x[0]):z.2f} / {float(root):.2f} ="
            f" {float(normed[0]):z.2f}. Now the squares have the mean 1.",
            "normed",
        ),
        Step(
            f"A trained gain [multiplies](out) each: {float(normed[0]):z.2f} · {gain:z.2f} ="
            f" {float(out[0]):z.2f}. There is no bias.",
            "out",
        ),
    ]
    alt = "A token's vector, its root mean square, the vector over it, and after the gain."
    return walk(rows, ["x measured", "measured normed", "normed out"], steps, alt, "RMSNorm")


def _network(x: Tensor, gate: Tensor, opened: Tensor, up: Tensor, out: Tensor) -> Drawing:
    hidden = opened * up
    rows = [["normed x", strip(x, "x")], ["times W gate", strip(gate, "gate", "")]]
    rows += [["SiLU", strip(opened, "opened", "weight")], ["times W up", strip(up, "up", "")]]
    rows += [["product", strip(hidden, "hidden", "")], ["times W down", strip(out, "out", "value")]]
    steps = [
        Step(f"The token's [normed vector](x), {len(x)} numbers.", "x"),
        Step(f"A first matrix makes [{len(gate)} numbers](gate), the gate.", "gate"),
        Step(
            "SiLU keeps large numbers and brings those below 0 [near 0](opened):"
            f" {float(gate[0]):z.2f} becomes {float(opened[0]):z.2f}.",
            "opened",
        ),
        Step(f"A second matrix makes [{len(up)} more](up) of the same x.", "up"),
        Step(
            "Gate times number, [one by one](hidden):"
            f" {float(opened[0]):z.2f} · {float(up[0]):z.2f} = {float(hidden[0]):z.2f}."
            " What the gate holds near 0 does not pass.",
            "hidden",
        ),
        Step(f"A third matrix makes an [update](out) of {len(out)} numbers.", "out"),
    ]
    alt = "A token's vector, the gate before and after SiLU, the other map, product and update."
    links = ["x gate", "gate opened", "opened hidden right", "up hidden", "hidden out"]
    return walk(rows, links, steps, alt, "SwiGLU")


def _places(made: Tensor, turned: Tensor, place: int, config: Any, word: str) -> Drawing:
    half = len(made) // 2
    angles = place * config.rotary_base ** (-torch.arange(half) / half)
    degrees = angles.rad2deg()
    (a, b), (c, d) = made.split(half), turned.split(half)
    rows = [["number", strip(a, "a", "query")], ["its partner", strip(b, "b", "query")]]
    rows += [["angle, degrees", strip(degrees, "angle", "weight", digits=0)]]
    rows += [["turned", strip(c, "c", "query")], ["partner, turned", strip(d, "d", "query")]]
    first, by = f"{float(a[0]):z.2f} · cos", f"{float(degrees[0]):.0f}°"
    second = f"− {float(b[0]):z.2f} · sin".replace("− -", "+ ")
    steps = [
        Step(
            "Nothing is added to the embedding. Head 1 makes its query of “"
            f"{word}”: {len(made)} numbers, in {half} pairs. Below each [number](a) stands its"
            f" [partner](b): with number 1 that is number {half + 1}.",
            "a b",
        ),
        Step(
            f"“{word}” stands at place {place}, counted from 0. So the first pair turns by {place}"
            " radians, each next pair by [less](angle).",
            "angle",
        ),
        Step(
            f"Each pair is [turned](c), its first number so: {first} {by} {second} {by} ="
            f" {float(c[0]):z.2f}. Keys are turned, too: a score depends on how far apart two"
            " tokens stand.",
            "c d",
        ),
    ]
    alt = "Numbers of a query and their partners, an angle for each pair, and the pairs turned."
    return walk(rows, ["b angle", "angle c"], steps, alt, "RoPE")


def _keys(q: Tensor, k: Tensor, scores: Tensor, words: Sequence[str]) -> Drawing:
    n, (groups, size), (asked, asks) = len(q), k.shape, words
    share = n // groups

    def vectors(each: Tensor, role: str, name: str, gap: int) -> Any:
        look = {"name": name, "digits": 2, "width": 36}
        return row(*(cells(vector[:2], role, **look) for vector in each), gap=gap)

    points = [cells([x], "weight", name="scores", digits=2, width=72) for x in scores]
    queries, keys = vectors(q, "query", "q", 10), vectors(k, "key", "k", 10 + 82 * (share - 1))
    links = [arrow(f"q.{h}", f"k.{h // share}", "query") for h in range(n)]
    links += [arrow(f"k.{h // share}", f"scores.{h}", "key") for h in range(n)]
    steps = [
        Step(f"“{asks}” asks with [{n} queries](q), one a head: 2 of {size} numbers each.", "q"),
        Step(f"“{asked}” answers with [{groups} keys](k) only. {share} heads share each.", "k"),
        Step(
            "Query times key, over the root of their size: each head has a [score](scores) of its"
            " own all the same.",
            "scores",
            ask=f"Heads 1 and 2 share a key. Do they give “{asked}” the same score?",
        ),
        Step(
            f"In each block a token keeps {groups} keys and {groups} values of {size} numbers:"
            f" {2 * groups * size} numbers, where {n} heads of keys would keep {2 * n * size}."
        ),
    ]
    alt = f"{n} queries in a row, {groups} keys below them, each shared, and {n} scores."
    body, title = column(queries, keys, row(*points, gap=10), gap=30), "Grouped queries"
    return Drawing(body, *links, alt=alt, steps=steps, title=title)
