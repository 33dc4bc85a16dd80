"""A small transformer that translates, to walk through, and its numbers worked out by hand."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Pairs, Vocabulary, pad_batch
from attnbook.walks import timeline

SOURCE = Vocabulary(["one", "two", "three", "four", "five", "six"])
TARGET = Vocabulary(["un", "deux", "trois", "quatre", "cinq", "sept", "huit", "neuf"])
CONFIG = TransformerConfig(d_model=20, n_heads=2, d_ff=14, n_layers=3)
ENGLISH, FRENCH, PLACE, LAYER, HEAD = "six two four five", "huit deux sept", 2, 1, 1
READ = 3  # the place of an English word


@torch.no_grad()
def translator(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(SOURCE, TARGET, replace(CONFIG, **changes)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def way(model: Transformer, **options: Any) -> Any:
    return timeline(
        model, ENGLISH, FRENCH, **{"place": PLACE, "layer": LAYER, "head": HEAD, **options}
    )


def pairs(*targets: str) -> Pairs:
    ids = [[TARGET.bos, *TARGET.encode(words.split()), TARGET.eos] for words in targets]
    sources = [SOURCE.encode(words.split()) for words in ("one two", "three", "four six")]
    return Pairs(pad_batch(sources[: len(targets)], SOURCE.pad), pad_batch(ids, TARGET.pad))


def attends(attention: Any, x: Tensor, y: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """One head of an attention from x to y, and what comes of all heads."""
    maps = (attention.q, x), (attention.k, y), (attention.v, y)
    q, k, v = ((z @ m.weight.T + m.bias).unflatten(-1, (2, 10)).transpose(0, 1) for m, z in maps)
    scores = (q @ k.mT / 10**0.5).masked_fill(~mask, -torch.inf)
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    mixed = weights @ v
    found = {"query": q[HEAD], "keys": k[HEAD], "values": v[HEAD], "mixed": mixed[HEAD]}
    found |= {"scores": scores[HEAD], "weights": weights[HEAD]}
    heads = mixed.transpose(0, 1).flatten(1)
    return found | {"out": heads @ attention.out.weight.T + attention.out.bias}


def normed(norm: Any, x: Tensor) -> Tensor:
    deviation = ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True) + norm.eps
    return (x - x.mean(-1, keepdim=True)) / deviation.sqrt() * norm.weight + norm.bias


def start(stack: Any, ids: list[int]) -> tuple[Tensor, Tensor]:
    """Each token's embedding, and what its place adds."""
    i, k = torch.arange(len(ids))[:, None], torch.arange(0, 20, 2)
    angles = i / 10000 ** (k / 20)
    position = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    return 20**0.5 * stack.embedding.weight[ids], position


def fed(feed_forward: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """The hidden numbers of a feed-forward network, and what it gives."""
    hidden = (x @ feed_forward.up.weight.T + feed_forward.up.bias).relu()
    return hidden, hidden @ feed_forward.down.weight.T + feed_forward.down.bias


def encoder_by_hand(model: Transformer) -> dict[str, Tensor]:
    """The vectors at the place READ in the encoder's block LAYER, from the parameters alone."""
    stack: Any = model.encoder.stack
    x = torch.add(*start(stack, SOURCE.encode(ENGLISH.split())))
    found, every = {}, torch.ones(len(x), len(x)) > 0
    for n, block in enumerate(stack.blocks):
        z = normed(block.attention_norm, x)
        own = attends(block.attention, z, z, every)
        total = x + own["out"]
        hidden, given = fed(block.feed_forward, normed(block.feed_forward_norm, total))
        if n == LAYER:
            found = {"before": x, "norm": z, "own-out": own["out"], "own-sum": total}
            found |= {"hidden": hidden, "fed": given}
        x = total + given
    return {name: table[READ] for name, table in found.items()}


def by_hand(model: Transformer) -> dict[str, Tensor]:
    """The vectors at the place, from the parameters alone; the scores of an attention in a row."""
    ids = [TARGET.bos, *TARGET.encode(FRENCH.split())]
    memory = model.encoder(torch.tensor([SOURCE.encode(ENGLISH.split())]))[0]
    stack: Any = model.decoder.stack
    token, position = start(stack, ids)
    x = token + position
    found = {"token": token, "position": position, "state": x}
    states, seen = [], torch.ones(len(ids), len(ids)).tril() > 0
    for n, block in enumerate(stack.blocks):
        kept, z = x, normed(block.attention_norm, x)
        own = attends(block.attention, z, z, seen)
        x = x + own["out"]
        one = x
        every = torch.ones(len(ids), len(memory)) > 0
        cross = attends(block.cross, normed(block.cross_norm, x), memory, every)
        x = x + cross["out"]
        two = x
        hidden, given = fed(block.feed_forward, normed(block.feed_forward_norm, x))
        x = x + given
        states.append(x[PLACE])
        if n == LAYER:
            found |= {"before": kept, "own-sum": one, "cross-sum": two}
            found |= {"hidden": hidden, "fed": given, "after": x}
            for kind, parts in (("own", own), ("cross", cross)):
                found |= {f"{kind}-{name}": table for name, table in parts.items()}
    last = normed(stack.norm, x)
    rows = {name for name in found if name.split("-")[-1] in ("keys", "values")}
    found = {name: t if name in rows else t[PLACE] for name, t in found.items()}
    found |= {"last": last[PLACE], "depth": torch.stack(states), "memory": memory}
    return found | {"logits": stack.embedding.weight @ last[PLACE]}
