"""The Transformer: one block, put together as encoder, decoder, and encoder-decoder."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnbook.attention import MultiHeadAttention
from attnbook.data import BOS, Batch
from attnbook.decoding import Hypotheses, beam_search
from attnbook.masks import padding_mask
from attnbook.norms import LayerNorm, RMSNorm
from attnbook.positions import LearnedPositions, Rotary, SinusoidalPositions
from attnbook.training import label_smoothing_loss

CHOICES = {
    "norm": ("pre", "post", "none"),
    "normalizer": ("layer", "rms"),
    "activation": ("relu", "gelu", "swiglu"),
    "positions": ("sinusoidal", "learned", "rotary", "none"),
}


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and choices of a Transformer; `dataclasses.replace` makes one from another.

    Attributes:
        d_model: size of the vectors.
        n_heads: number of heads of each attention; divides d_model.
        d_ff: size of the hidden layer of the feed-forward network; 0 leaves the network out.
        n_layers: number of blocks, of encoder and decoder each.
        norm: where the norm stands: "pre", x + layer(norm(x)); "post", norm(x + layer(x)), as in
            the paper; "none".
        residual: whether the input of a layer is added to its output.
        normalizer: "layer" (`LayerNorm`) or "rms" (`RMSNorm`).
        activation: of the feed-forward network: "relu", "gelu" or "swiglu".
        positions: "sinusoidal" or "learned", added to embeddings; "rotary", in every
            self-attention; "none".
        n_kv_heads, qk_norm: as for `MultiHeadAttention`.
        bias: whether the maps inside attention and feed-forward have a bias.
        dropout: share of numbers that training sets to zero in the sum of embedding and position
            and in each layer's output.
        max_len: the most tokens that learned positions have a vector for.

    Raises:
        ValueError: if a size is below 1 (d_ff: below 0), a choice is none of those above, or
            dropout is not in 0 .. 1.
    """

    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 256
    n_layers: int = 2
    norm: str = "pre"
    residual: bool = True
    normalizer: str = "layer"
    activation: str = "relu"
    positions: str = "sinusoidal"
    n_kv_heads: int | None = None
    qk_norm: bool = False
    bias: bool = True
    dropout: float = 0.0
    max_len: int = 512

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}")
        for name in ("d_model", "n_heads", "n_layers", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.d_ff < 0:
            raise ValueError(f"d_ff must be at least 0, got {self.d_ff}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout must lie in 0..1, got {self.dropout}")


TINY = TransformerConfig(d_model=64, n_heads=4, d_ff=256, n_layers=2)
"""Learns to translate numbers in a minute."""
BASE = TransformerConfig(d_model=512, n_heads=8, d_ff=2048, n_layers=6, norm="post", dropout=0.1)
"""The base model of Vaswani et al. 2017, table 3."""
MODERN = TransformerConfig(
    normalizer="rms",
    activation="swiglu",
    positions="rotary",
    n_kv_heads=2,
    qk_norm=True,
    bias=False,
)
"""What decoders have become since: its blocks are Qwen 3's; without `qk_norm` they are Llama's."""


class FeedForward(nn.Module):
    """A network with one hidden layer, the same at every position.

        out = W_2 f(W_1 x + b_1) + b_2                    f = ReLU or GELU
        out = W_2 (silu(V x + c) * (W_1 x + b_1)) + b_2                  "swiglu"

    with x and out `[d_model]`, W_1 and V `[d_ff d_model]`, W_2 `[d_model d_ff]`, b_1 and c
    `[d_ff]`, b_2 `[d_model]`, * elementwise. W_1, W_2, V are called `up`, `down` and `gate`.

    Args:
        config: gives d_model, d_ff, activation and bias.

    Source: Vaswani et al. 2017, section 3.3; Shazeer 2020, equation 6 (SwiGLU).
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        sizes, bias = (config.d_model, config.d_ff), config.bias
        self.up = nn.Linear(*sizes, bias)
        self.gate = nn.Linear(*sizes, bias) if config.activation == "swiglu" else None
        self.down = nn.Linear(config.d_ff, config.d_model, bias)
        self.f = functional.gelu if config.activation == "gelu" else functional.relu

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each vector by itself."""
        hidden = self.up(x)
        hidden = self.f(hidden) if self.gate is None else functional.silu(self.gate(x)) * hidden
        return self.down(hidden)


def _normalizer(config: TransformerConfig) -> nn.Module:
    return (LayerNorm if config.normalizer == "layer" else RMSNorm)(config.d_model)


class Sublayer(nn.Module):
    """The residual connection and the norm around an attention or a feed-forward network.

        out = x + layer(norm(x))       "pre"
        out = norm(x + layer(x))       "post"
        out = x + layer(x)             "none"

    with x and out `[batch token d_model]`; without `residual` the "x +" is missing.

    Args:
        layer: what is wrapped; gives a tensor, or a tensor and weights.
        config: gives d_model, norm, normalizer, residual and dropout.

    Source: He et al. 2016, section 3.1 (residuals); Ba et al. 2016 (layer norm); Vaswani et al.
    2017, section 3.1 ("post"); Xiong et al. 2020 ("pre").
    """

    def __init__(self, layer: nn.Module, config: TransformerConfig):
        super().__init__()
        self.layer: Any = layer
        self.norm = nn.Identity() if config.norm == "none" else _normalizer(config)
        self.post, self.residual = config.norm == "post", config.residual
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, x: Float[Tensor, "batch token d_model"], *args: object, **options: object
    ) -> tuple[Float[Tensor, "batch token d_model"], Tensor | None]:
        """out, and the weights if the layer gives some; further arguments go to the layer."""
        out = self.layer(x if self.post else self.norm(x), *args, **options)
        out, weights = out if isinstance(out, tuple) else (out, None)
        out = self.dropout(out)
        if self.residual:
            out = x + out
        return self.norm(out) if self.post else out, weights


class BlockOutput(NamedTuple):
    """What a block gives.

    Attributes:
        x: `[batch token d_model]`.
        weights: `[batch head token token]` of the self-attention, if asked for.
        cross: `[batch head token source]` of the cross-attention, if there is one and asked for.
    """

    x: Float[Tensor, "batch token d_model"]
    weights: Float[Tensor, "batch head token token"] | None
    cross: Float[Tensor, "batch head token source"] | None


class Block(nn.Module):
    """Self-attention, perhaps cross-attention, and a feed-forward network, each in a `Sublayer`.

        z = self-attention(x, x)        queries, keys and values from x
        z = cross-attention(z, H)       queries from z, keys and values from the memory H
        out = feed-forward(z)

    with x, z and out `[batch token d_model]` and H `[batch source d_model]`.

    Args:
        config: sizes and choices.
        cross: whether there is a cross-attention.

    Raises:
        ValueError: in `forward`, if there is a memory without cross-attention, or the reverse.

    Source: Vaswani et al. 2017, section 3.1, figure 1.
    """

    def __init__(self, config: TransformerConfig, *, cross: bool = False):
        super().__init__()
        self.config = config

        def attention(positions: Rotary | None = None) -> Sublayer:
            layer = MultiHeadAttention(
                config.d_model,
                config.n_heads,
                n_kv_heads=config.n_kv_heads,
                bias=config.bias,
                positions=positions,
                qk_norm=config.qk_norm,
            )
            return Sublayer(layer, config)

        turned = config.positions == "rotary"
        self.attention = attention(Rotary(config.d_model // config.n_heads) if turned else None)
        self.cross = attention() if cross else None
        self.feed_forward = Sublayer(FeedForward(config), config) if config.d_ff else None

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        *,
        mask: Bool[Tensor, "#batch #token token"] | None = None,
        memory_mask: Bool[Tensor, "#batch #token source"] | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> BlockOutput:
        """One block.

        Args:
            x: `[batch token d_model]`.
            memory: `[batch source d_model]` what cross-attention reads: an encoder's states.
            mask: which tokens may be attended, True = may; for padding
                `padding_mask(tokens)[:, None]`.
            memory_mask: the same for the memory.
            causal: whether a token sees only itself and those before it.
            need_weights: whether to give the attention weights.
        """
        if (memory is None) != (self.cross is None):
            raise ValueError(
                "memory must be given to a block with cross-attention and to no other,"
                f" got {'none' if memory is None else 'one'}"
            )
        x, weights = self.attention(x, mask=mask, causal=causal, need_weights=need_weights)
        cross = None
        if self.cross is not None:
            x, cross = self.cross(x, memory, mask=memory_mask, need_weights=need_weights)
        if self.feed_forward is not None:
            x, _ = self.feed_forward(x)
        return BlockOutput(x, weights, cross)

    def load_torch(
        self, reference: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
    ) -> "Block":
        """Copy the weights of PyTorch's layer of the same sizes, not its dropout; returns self.

        Raises:
            ValueError: if the layer has another order of norms, another activation or other parts.
        """
        attentions = [self.attention] if self.cross is None else [self.attention, self.cross]
        theirs = (
            "pre" if reference.norm_first else "post",
            getattr(reference.activation, "__name__", "another"),
            reference.linear1.out_features,
            2 if isinstance(reference, nn.TransformerDecoderLayer) else 1,
            reference.norm1.eps,
        )
        config = self.config
        eps = getattr(self.attention.norm, "eps", None)
        mine = (config.norm, config.activation, config.d_ff, len(attentions), eps)
        odd = not config.residual or config.normalizer != "layer" or config.positions == "rotary"
        if theirs != mine or odd or self.feed_forward is None:
            raise ValueError(
                "reference must have this block's parts, (norm, activation, d_ff, attentions,"
                f" eps) = {mine}, got {theirs} for {config}"
            )
        for own, name in zip(attentions, ("self_attn", "multihead_attn"), strict=False):
            own.layer.load_torch(getattr(reference, name))
        network = self.feed_forward.layer
        network.up.load_state_dict(reference.linear1.state_dict())
        network.down.load_state_dict(reference.linear2.state_dict())
        for number, part in enumerate((*attentions, self.feed_forward), start=1):
            part.norm.load_state_dict(getattr(reference, f"norm{number}").state_dict())
        return self


class States(NamedTuple):
    """What a stack of blocks gives.

    Attributes:
        states: `[batch token d_model]` the last block's output, normalised in "pre" order.
        weights: `[layer batch head token token]` of every self-attention, if asked for.
        cross: `[layer batch head token source]` of every cross-attention, if asked for.
    """

    states: Float[Tensor, "batch token d_model"]
    weights: Float[Tensor, "layer batch head token token"] | None
    cross: Float[Tensor, "layer batch head token source"] | None


class Stack(nn.Module):
    """Embedding, positions, and blocks on top of each other.

        x_0 = sqrt(d_model) E[token] + p,   x_l = block_l(x_(l-1)),   l = 1 .. n_layers

    with E `[vocab_size d_model]`, whose numbers start with standard deviation 1 / sqrt(d_model), so
    that E can also be the output matrix. In "pre" order a last norm follows, as nothing has
    normalised the sum of all layers yet.

    Args:
        vocab_size: number of tokens.
        config: sizes and choices.
        cross: whether the blocks have cross-attention.

    Raises:
        ValueError: in `forward`, as `Block` and `LearnedPositions` do.

    Source: Vaswani et al. 2017, sections 3.1, 3.4 and 3.5.
    """

    def __init__(self, vocab_size: int, config: TransformerConfig, *, cross: bool = False):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.positions: nn.Module = nn.Identity()
        if config.positions == "sinusoidal":
            self.positions = SinusoidalPositions()
        elif config.positions == "learned":
            self.positions = LearnedPositions(config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config, cross=cross) for _ in range(config.n_layers))
        self.norm = _normalizer(config) if config.norm == "pre" else nn.Identity()

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        *,
        mask: Bool[Tensor, "#batch #token token"] | None = None,
        memory_mask: Bool[Tensor, "#batch #token source"] | None = None,
        causal: bool = False,
        need_weights: bool = False,
    ) -> States:
        """Tokens through all blocks; the arguments are those of `Block`."""
        x = self.embedding(tokens) * self.config.d_model**0.5
        x = self.dropout(self.positions(x))
        weights, cross = [], []
        for block in self.blocks:
            x, row, cross_row = block(
                x,
                memory,
                mask=mask,
                memory_mask=memory_mask,
                causal=causal,
                need_weights=need_weights,
            )
            weights.append(row)
            cross.append(cross_row)
        crossed = need_weights and memory is not None
        return States(
            self.norm(x),
            torch.stack(weights) if need_weights else None,
            torch.stack(cross) if crossed else None,
        )


class TransformerEncoder(Stack):
    """A stack in which every word sees every word: no mask but that of padding.

    Args:
        vocab_size: number of tokens.
        config: sizes and choices.

    Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, vocab_size: int, config: TransformerConfig):
        super().__init__(vocab_size, config)

    def forward(self, tokens: Int[Tensor, "batch token"], *, need_weights: bool = False) -> States:
        """States of the words; those at padding mean nothing."""
        return super().forward(
            tokens, mask=padding_mask(tokens)[:, None], need_weights=need_weights
        )


class Decoded(NamedTuple):
    """What a decoder gives.

    Attributes:
        logits: `[batch token vocab]` scores of the token after each one.
        weights: `[layer batch head token token]` of every self-attention, if asked for.
        cross: `[layer batch head token source]` of every cross-attention, if asked for.
    """

    logits: Float[Tensor, "batch token vocab"]
    weights: Float[Tensor, "layer batch head token token"] | None
    cross: Float[Tensor, "layer batch head token source"] | None


class TransformerDecoder(Stack):
    """A stack in which every token sees itself and those before it, and predicts the next.

        P(token_(t+1) | tokens up to t) = softmax(E x_t)

    with x_t `[d_model]` the state and E `[vocab_size d_model]` the embedding. Without
    cross-attention it is a language model. Padding needs no mask here: it stands at the end.

    Args:
        vocab_size: number of tokens.
        config: sizes and choices.
        cross: whether the blocks read a memory.

    Source: Vaswani et al. 2017, sections 3.1 and 3.4; Press and Wolf 2017 (one matrix for both).
    """

    def __init__(self, vocab_size: int, config: TransformerConfig, *, cross: bool = False):
        super().__init__(vocab_size, config, cross=cross)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        memory_mask: Bool[Tensor, "#batch #token source"] | None = None,
        *,
        need_weights: bool = False,
    ) -> Decoded:
        """Scores of the token after each one."""
        states, weights, cross = super().forward(
            tokens, memory, memory_mask=memory_mask, causal=True, need_weights=need_weights
        )
        return Decoded(states @ self.embedding.weight.T, weights, cross)


class TransformerOutput(NamedTuple):
    """What an encoder-decoder gives; weights are None unless asked for.

    Attributes:
        logits: `[batch target vocab]` scores of the token after each target token.
        encoder: `[layer batch head source source]` weights of the encoder's self-attention.
        decoder: `[layer batch head target target]` weights of the decoder's self-attention.
        cross: `[layer batch head target source]` weights of the cross-attention.
    """

    logits: Float[Tensor, "batch target vocab"]
    encoder: Float[Tensor, "layer batch head source source"] | None
    decoder: Float[Tensor, "layer batch head target target"] | None
    cross: Float[Tensor, "layer batch head target source"] | None


class Transformer(nn.Module):
    """Encoder and decoder: a translator.

        H = encoder(source),   P(y_t | source, y before t) = decoder(y before t, H)

    with H `[batch source d_model]`, the memory of every cross-attention. The decoder's embedding is
    its output matrix.

    Args:
        source_vocab: number of source tokens.
        target_vocab: number of target tokens.
        config: sizes and choices of both.
        shared: whether source and target have one vocabulary, and one embedding.

    Raises:
        ValueError: if `shared` and the vocabularies differ in size.

    Source: Vaswani et al. 2017.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        config: TransformerConfig,
        *,
        shared: bool = False,
    ):
        super().__init__()
        if shared and source_vocab != target_vocab:
            raise ValueError(
                f"target_vocab must be source_vocab, {source_vocab}, to share, got {target_vocab}"
            )
        self.encoder = TransformerEncoder(source_vocab, config)
        self.decoder = TransformerDecoder(target_vocab, config, cross=True)
        if shared:
            self.encoder.embedding = self.decoder.embedding

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        *,
        need_weights: bool = False,
    ) -> TransformerOutput:
        """Logits for the token after each token of `target`, and the weights if asked for."""
        memory = self.encoder(source, need_weights=need_weights)
        out = self.decoder(
            target, memory.states, padding_mask(source)[:, None], need_weights=need_weights
        )
        return TransformerOutput(out.logits, memory.weights, out.weights, out.cross)

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Float[Tensor, ""]:
        """Mean cross-entropy in nats a target token, teacher forced; padding does not count."""
        logits = self(batch.source, batch.target[:, :-1]).logits
        return label_smoothing_loss(logits, batch.target[:, 1:], smoothing)

    @torch.no_grad()
    def translate(
        self,
        source: Int[Tensor, "batch source"],
        max_len: int = 32,
        *,
        beam: int = 1,
        length_penalty: float = 0.0,
    ) -> Hypotheses:
        """Translate by `beam_search`; a beam of 1 is greedy decoding.

        Args:
            source: `[batch source]` token ids.
            max_len, beam, length_penalty: as for `beam_search`.
        """
        memory, mask = self.encoder(source).states, padding_mask(source)[:, None]

        def next_logits(tokens: Tensor) -> Tensor:
            copies = len(tokens) // len(source)
            held = (t.repeat_interleave(copies, dim=0) for t in (memory, mask))
            return self.decoder(tokens, *held).logits[:, -1]

        start = torch.full_like(source[:, :1], BOS)
        return beam_search(next_logits, start, max_len, beam=beam, length_penalty=length_penalty)
