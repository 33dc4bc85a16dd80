"""What a translator computes along the path of one target token."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from attnbook.checks import check_range
from attnbook.model.config import TransformerConfig
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.model.transformer import Transformer, TransformerDecoder
from attnbook.walks._pieces import Likely
from attnbook.walks._recorded import Head, Position, Spot, attended
from attnbook.walks._unrolled import spelled


class Attention(NamedTuple):
    """An attention layer of the block that is shown."""

    kind: str  # "own" or "cross": the names of its parts begin with it
    words: list[str]  # those that are attended to
    head: Head
    update: Tensor
    sum: Tensor  # the state after the update


@dataclass(frozen=True)
class Way:
    """What the model computes along the path of one token; vectors are `[d_model]`."""

    config: TransformerConfig
    spot: Spot
    words: list[str]  # of the source
    ids: list[int]
    said: list[str]  # the ids, spelled
    memory: Tensor  # [word d_model]
    token: Tensor
    state: Tensor  # token and position
    own: Attention
    cross: Attention
    hidden: Tensor  # [d_ff]
    fed: Tensor
    depth: list[Tensor]  # states before the first block and after each
    written: list[str]  # the word that each block's state would write
    last: Tensor
    likely: Likely

    @property
    def start(self) -> str:
        """The name of the state that enters the block."""
        return "before" if self.spot.layer else "state"

    @property
    def asks(self) -> str:
        return self.said[self.spot.place]


def measured(model: Transformer, words: list[str], ids: list[int], spot: Spot, top: int) -> Way:
    decoder, vocab = model.decoder, model.decoder.vocab
    english = torch.tensor([model.encoder.vocab.encode(words)])
    check_range(1, len(vocab) - len(vocab.barred), top=top)
    with evaluating(model), calls(model) as seen:
        logits = model(english, torch.tensor([ids]))[0, spot.place]
    said, at = [spelled(vocab, i) for i in ids], Position(seen, spot.place)
    blocks = [f"decoder.stack.blocks.{n}" for n in range(decoder.stack.config.n_layers)]
    block, depth = blocks[spot.layer], [at.got(blocks[0]), *map(at.gave, blocks)]
    with torch.no_grad():
        early = decoder.logits(decoder.stack.norm(torch.stack(depth[1:])))
    early[:, vocab.barred] = -torch.inf

    def attention(kind: str, path: str, read: list[str], then: str) -> Attention:
        head = attended(seen, f"{block}.{path}", spot.place, spot.head)
        return Attention(kind, read, head, at.gave(f"{block}.{path}.out"), at.got(then))

    return Way(
        decoder.stack.config,
        spot,
        words,
        ids,
        said,
        memory=seen["encoder"][1][0],
        token=at.got("decoder.stack.positions"),
        state=at.gave("decoder.stack.positions"),
        own=attention("own", "attention", said, f"{block}.cross_norm"),
        cross=attention("cross", "cross", words, f"{block}.feed_forward_norm"),
        hidden=at.got(f"{block}.feed_forward.down"),
        fed=at.gave(f"{block}.feed_forward"),
        depth=depth,
        written=[spelled(vocab, int(i)) for i in early.argmax(-1)],
        last=at.gave("decoder.stack.norm"),
        likely=_likeliest(decoder, logits, top),
    )


def _likeliest(decoder: TransformerDecoder, logits: Tensor, top: int) -> Likely:
    never = torch.tensor(decoder.vocab.barred).long()
    best = logits.index_fill(0, never, -torch.inf).topk(top).indices
    names = [spelled(decoder.vocab, int(i)) for i in best]
    matrix = (decoder.stack.embedding if decoder.head is None else decoder.head).weight
    return Likely(names, matrix[best], logits[best], logits.softmax(-1)[best])
