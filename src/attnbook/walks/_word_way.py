"""What BERT computes along the path of a masked word."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnbook.model.bert import Bert
from attnbook.model.config import TransformerConfig
from attnbook.model.decoding import evaluating
from attnbook.model.recording import calls
from attnbook.text.tokenizers import WordPiece
from attnbook.walks._input import added
from attnbook.walks._pieces import Likely
from attnbook.walks._recorded import Head, Position, Spot, attended


@dataclass(frozen=True)
class Way:
    """What the model computes along the path of the mask; vectors are `[d_model]`."""

    config: TransformerConfig
    spot: Spot
    said: list[str]
    ids: list[int]
    vectors: dict[str, Tensor]  # by kind; the mask starts as their sum
    sum: Tensor | None  # if it is normalised; otherwise the state is the sum
    head: Head
    heads: list[Tensor]  # each head's output
    update: Tensor
    joined: Tensor  # sum of update and state, normalised if `norm` is "post"
    fed: Tensor
    states: Tensor  # [layer d_model] before the first layer and after each
    early: list[str]  # the word that each layer's state would predict
    turned: Tensor
    likely: Likely

    @property
    def asks(self) -> str:
        """The name of the state that enters the layer."""
        return "before" if self.spot.layer else "state"

    @property
    def order(self) -> str:
        return "norm of the sum" if self.config.norm == "post" else "sum"


def measured(model: Bert, tokenizer: WordPiece, tokens: Tensor, spot: Spot, top: int) -> Way:
    (place, layer, head), config = spot, model.stack.config
    with evaluating(model), calls(model) as seen:
        logits = model.word_logits(model(tokens))[0, place]
    at, block, spelled = Position(seen, place), f"stack.blocks.{layer}", tokenizer.vocab.tokens
    vectors = {kind: vector[place] for kind, vector in added(model, seen).items()}
    total = vectors.pop("sum")
    outputs = [at.gave(f"stack.blocks.{n}") for n in range(config.n_layers)]
    states = torch.stack([at.got("stack.blocks.0"), *outputs])
    with torch.no_grad():
        early = model.word_logits(model.stack.norm(states[1:, None]))[:, 0].argmax(-1)
    post, best = config.norm == "post", logits.topk(top).indices
    joined = at.gave(f"{block}.attention_norm") if post else at.got(f"{block}.feed_forward_norm")
    return Way(
        config,
        spot,
        said=[spelled[n] for n in tokens[0]],
        ids=tokens[0].tolist(),
        vectors=vectors,
        sum=None if isinstance(model.stack.embedding_norm, nn.Identity) else total,
        head=attended(seen, f"{block}.attention", place, head),
        heads=[*at.got(f"{block}.attention.out").chunk(config.n_heads)],
        update=at.gave(f"{block}.attention.out"),
        joined=joined,
        fed=at.gave(f"{block}.feed_forward"),
        states=states,
        early=[spelled[n] for n in early],
        turned=at.gave("words.norm"),
        likely=Likely(
            [spelled[n] for n in best],
            model.stack.embedding.weight[best],
            logits[best],
            logits.softmax(-1)[best],
        ),
    )
