"""A modern decoder's parts in numbers: what each does to one token."""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import silu

from attnbook.checks import check_range, check_whole
from attnbook.model.block import Block
from attnbook.model.config import TransformerConfig
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.model.transformer import TransformerDecoder

SHOWN = 5  # numbers shown of a vector
Row = tuple[str, str, list[str], str]


def modern_parts(
    model: TransformerDecoder, tokens: Tensor, words: Sequence[str], *, layer: int = 0
) -> dict[str, list[Row]]:
    """What each modern part of a decoder block computes for a text's last token, in numbers.

    Args:
        model: a model with RMSNorm, SwiGLU, rotary positions (pairing "half") and query heads that
            share key heads.
        tokens: `[token]` ids of the text, two or more.
        words: the last two tokens as text.
        layer: index of the block.

    Returns:
        Rows by the names of a `ModelMap`'s exchanges: "norm", "network", "places", "keys". A row is
        a label, a role, the first numbers of a vector as text, and an explanation. Norm and places
        belong to self-attention; places shows head 1.

    Raises:
        ValueError: if the model has other parts, there are too few tokens or words, or no such
            layer.

    Source: Zhang and Sennrich 2019, equation 4; Shazeer 2020, equation 6; Su et al. 2021, equation
    34; Ainslie et al. 2023, section 2.2.
    """
    config = model.stack.config
    heads, groups = config.n_heads, config.n_kv_heads or config.n_heads
    has = config.normalizer, config.gated and config.activation, config.positions
    if has != ("rms", "silu", "rotary") or config.rotary_pairing != "half" or groups == heads:
        raise ValueError(f"model must have RMSNorm, SwiGLU, RoPE and shared keys, got {config}")
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
    return {
        "norm": _norm(x[0, -1], out[0, -1], block.attention_norm),
        "network": _network(normed[0, -1], gate, up, fed[0, -1]),
        "places": _places(made[0, 0, -1], q[0, 0, -1], len(tokens) - 1, config, words[-1]),
        "keys": _keys(k[0, :: heads // groups, -2], scores[0, :, -1, -2], words),
    }


def _row(label: str, role: str, vector: Tensor, said: str, digits: int = 2) -> Row:
    shown = [f"{x:z.{digits}f}".replace("-", "−") for x in vector[:SHOWN].tolist()]
    return label, role, [*shown, *["…"] * (len(vector) > SHOWN)], said


def _norm(x: Tensor, out: Tensor, norm: Any) -> list[Row]:
    root = (x.pow(2).mean() + norm.eps).sqrt()
    size = f"The token's vector, {SHOWN} of its {len(x)} numbers."
    measured = "One number is measured, not two: the root of the mean of all squares. No mean."
    gained = "A trained gain multiplies each. There is no bias."
    return [
        _row("x", "state", x, size),
        _row("root mean square", "weight", root[None], measured),
        _row("x over it", "state", x / root, "Now the squares have the mean 1."),
        _row("times gain", "state", out, gained),
    ]


def _network(x: Tensor, gate: Tensor, up: Tensor, out: Tensor) -> list[Row]:
    opened = silu(gate)
    closes = "Large numbers stay; those below 0 come near 0."
    gates = "One by one. What the gate holds near 0 does not pass."
    return [
        _row("normed x", "state", x, f"The token's vector, {len(x)} numbers."),
        _row("x times W gate", "", gate, f"A first matrix makes {len(gate)} numbers, the gate."),
        _row("SiLU of the gate", "weight", opened, closes),
        _row("x times W up", "", up, "A second matrix makes as many more of the same x."),
        _row("gate times up", "", opened * up, gates),
        _row("times W down", "value", out, "A third matrix makes the update."),
    ]


def _places(
    made: Tensor, turned: Tensor, place: int, config: TransformerConfig, word: str
) -> list[Row]:
    half = len(made) // 2
    angles = (place * config.rotary_base ** (-torch.arange(half) / half)).rad2deg()
    (a, b), (c, d) = made.split(half), turned.split(half)
    query = f"Nothing is added to the embedding. Head 1 makes its query of “{word}”."
    angle = f"“{word}” stands at place {place}, from 0: the first pair turns by {place} radians."
    return [
        _row("query", "query", a, query),
        _row("partners", "query", b, f"Its second half: number 1 has number {half + 1}."),
        _row("degrees", "weight", angles, f"{angle} Each next pair turns by less.", 0),
        _row("query, turned", "query", c, "Number · cos − partner · sin."),
        _row(
            "partners, turned", "query", d, "Keys turn, too: a score knows how far apart two are."
        ),
    ]


def _keys(k: Tensor, scores: Tensor, words: Sequence[str]) -> list[Row]:
    (groups, size), share = k.shape, len(scores) // len(k)
    asked, asks = words[-2:]
    rows = []
    for n, key in enumerate(k):
        which = f"heads {n * share + 1} to {(n + 1) * share}"
        rows.append(_row(f"key {n + 1}", "key", key, f"“{asked}” gives {which} this one key."))
        said = f"“{asks}” asks with a query a head: scores of {which} differ."
        rows.append(_row("scores", "weight", scores[n * share :][:share], said))
    kept = torch.tensor([2 * groups * size, 2 * len(scores) * size])
    said = (
        f"With {groups} keys and values, and with {len(scores)}: numbers a token keeps in a block."
    )
    return [*rows, _row("kept", "state", kept, said, 0)]
