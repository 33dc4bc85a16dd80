"""The block of every Transformer: attention, a feed-forward network, residuals and norms."""

from collections.abc import Callable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attnbook.checks import check_flags, check_shapes
from attnbook.model.attention import Cache, MultiHeadAttention
from attnbook.model.config import TransformerConfig
from attnbook.model.norms import LayerNorm, RMSNorm
from attnbook.model.positions import Alibi, Rotary


def gelu_tanh(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """GPT's approximation of GELU, by a tanh."""
    return functional.gelu(x, approximate="tanh")


def relu2(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """The square of ReLU."""
    return functional.relu(x).square()


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # by name, so that a model can be pickled
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": functional.silu,
    "relu2": relu2,
}


class FeedForward(nn.Module):
    """A network with one hidden layer, the same at every position.

        out = W_2 f(W_1 x + b_1) + b_2
        out = W_2 (f(V x + c) * (W_1 x + b_1)) + b_2        gated

    with f the activation, x and out `[d_model]`, W_1 and V `[d_ff d_model]`, W_2 `[d_model d_ff]`,
    b_1 and c `[d_ff]`, b_2 `[d_model]`, * elementwise. W_1, W_2, V are called `up`, `down`, `gate`.

    Args:
        config: gives d_model, d_ff, activation, gated and bias.

    Source: Vaswani et al. 2017, section 3.3; Shazeer 2020, equations 5 and 6 (gated; with SiLU it
    is SwiGLU); So et al. 2021, section 4 (the square of ReLU).

    In other libraries: `mlp` of GPT-2 and Llama; there the maps are `c_fc` and `c_proj`, or
    `gate_proj`, `up_proj` and `down_proj`.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        sizes, bias = (config.d_model, config.d_ff), config.bias
        self.up = nn.Linear(*sizes, bias)
        self.gate = nn.Linear(*sizes, bias) if config.gated else None
        self.down = nn.Linear(config.d_ff, config.d_model, bias)
        self.f = ACTIVATIONS[config.activation]

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each vector by itself."""
        check_shapes(x=(x, "... d_model"), d_model=self.up.in_features)
        if self.gate is None:
            return self.down(self.f(self.up(x)))
        return self.down(self.f(self.gate(x)) * self.up(x))


def normalizer(config: TransformerConfig) -> nn.Module:
    """The norm that a configuration names."""
    kind = LayerNorm if config.normalizer == "layer" else RMSNorm
    return kind(config.d_model, config.norm_eps)


class Block(nn.Module):
    """Self-attention, perhaps cross-attention, and a feed-forward network, one after another.

        x = x + attention(norm(x))          queries, keys and values from x
        x = x + cross(norm(x), H)           queries from x, keys and values from the memory H
        x = x + feed_forward(norm(x))

    with x `[batch token d_model]` and H `[batch source d_model]`, each layer with a norm of its
    own. That is the order "pre"; in the order "post" each line is x = norm(x + layer(x)).

    Args:
        config: sizes and choices.
        cross: whether there is a cross-attention.

    Raises:
        ValueError: in `forward`, if there is a memory without cross-attention, or the reverse.

    Source: Vaswani et al. 2017, section 3.1, figure 1; He et al. 2016, section 3.1 (residuals); Ba
    et al. 2016 (layer norm); Xiong et al. 2020 ("pre").

    In other libraries: `TransformerEncoderLayer` and `TransformerDecoderLayer` of PyTorch,
    `BertLayer`, `GPT2Block`, `LlamaDecoderLayer`.
    """

    def __init__(self, config: TransformerConfig, *, cross: bool = False):
        super().__init__()
        check_flags(cross=cross)
        self.config = config
        norm = nn.Identity if config.norm == "none" else lambda: normalizer(config)

        def attention(positions: Rotary | Alibi | None = None) -> MultiHeadAttention:
            return MultiHeadAttention(
                config.d_model,
                config.n_heads,
                d_head=config.d_head,
                n_kv_heads=config.n_kv_heads,
                bias=config.bias,
                positions=positions,
                qk_norm=config.qk_norm,
                norm_eps=config.norm_eps,
            )

        inside = None
        if config.positions == "rotary":
            inside = Rotary(config.head_size, config.rotary_base, config.rotary_pairing)
        elif config.positions == "alibi":
            inside = Alibi(config.n_heads)
        self.attention, self.attention_norm = attention(inside), norm()
        self.cross, self.cross_norm = (attention(), norm()) if cross else (None, nn.Identity())
        self.feed_forward = FeedForward(config) if config.d_ff else None
        self.feed_forward_norm = norm() if config.d_ff else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch token d_model"],
        memory: Float[Tensor, "batch source d_model"] | None = None,
        *,
        mask: Bool[Tensor, "#batch #token key"] | None = None,
        memory_mask: Bool[Tensor, "#batch #token source"] | None = None,
        causal: bool = False,
        positions: Int[Tensor, "#batch token"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "batch token d_model"]:
        """One block.

        Args:
            x: `[batch token d_model]`.
            memory: `[batch source d_model]` what cross-attention reads: an encoder's states.
            mask: which tokens may be attended, True = may; for padding
                `padding_mask(tokens, pad)[:, None]`.
            memory_mask: the same for the memory.
            causal, positions, cache: as for `MultiHeadAttention`.
        """
        self._check_memory(memory)
        own = {"mask": mask, "causal": causal, "positions": positions, "cache": cache}
        x = self.add(x, lambda y: self.attention(y, **own), self.attention_norm)
        if cross := self.cross:
            reading = {"mask": memory_mask, "cache": cache}
            x = self.add(x, lambda y: cross(y, memory, **reading), self.cross_norm)
        if self.feed_forward:
            x = self.add(x, self.feed_forward, self.feed_forward_norm)
        return x

    def _check_memory(self, memory: Tensor | None) -> None:
        if (memory is None) != (self.cross is None):
            raise ValueError(
                "memory must be given to a block with cross-attention and to no other,"
                f" got {'none' if memory is None else 'one'}"
            )

    def add(
        self,
        x: Float[Tensor, "batch token d_model"],
        layer: Callable[[Tensor], Tensor],
        norm: nn.Module,
    ) -> Float[Tensor, "batch token d_model"]:
        """x + layer(norm(x)), or norm(x + layer(x)) in the order "post"."""
        kept = x if self.config.residual else 0.0
        if self.config.norm == "post":
            return norm(kept + self.dropout(layer(x)))
        return kept + self.dropout(layer(norm(x)))

    def load_torch(
        self, reference: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
    ) -> "Block":
        """Copy the weights of PyTorch's layer of the same sizes, not its dropout; returns self.

        Raises:
            ValueError: if the layer has another order of norms, another activation, other parts, or
                no biases; then nothing was copied.
        """
        config = self.config
        theirs = (
            "pre" if reference.norm_first else "post",
            getattr(reference.activation, "__name__", "another"),
            reference.linear1.out_features,
            isinstance(reference, nn.TransformerDecoderLayer),
            reference.norm1.eps,
            reference.linear1.bias is not None,
        )
        mine = (config.norm, config.activation, config.d_ff, bool(self.cross), config.norm_eps)
        mine += (True,)  # without biases PyTorch's norms have none either
        plain = config.residual and config.normalizer == "layer" and not config.gated
        plain = plain and config.bias
        plain = plain and self.attention.positions is None
        if theirs != mine or not plain or self.feed_forward is None:
            raise ValueError(
                "reference must have this block's parts, (norm, activation, d_ff, cross, eps, bias)"
                f" = {mine}, got {theirs} for {config}"
            )
        self.attention.load_torch(reference.self_attn)
        norms = [self.attention_norm, self.feed_forward_norm]
        if self.cross is not None and isinstance(reference, nn.TransformerDecoderLayer):
            self.cross.load_torch(reference.multihead_attn)
            norms.insert(1, self.cross_norm)
        self.feed_forward.up.load_state_dict(reference.linear1.state_dict())
        self.feed_forward.down.load_state_dict(reference.linear2.state_dict())
        for number, norm in enumerate(norms, start=1):
            norm.load_state_dict(getattr(reference, f"norm{number}").state_dict())
        return self
