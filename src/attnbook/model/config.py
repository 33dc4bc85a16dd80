"""What a Transformer can be: sizes and choices, and those of the models that books name."""

from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Literal, get_args, get_origin

from attnbook.checks import check_choice, check_flags, check_positive, check_range, check_whole
from attnbook.model.positions import Pairing

Norm = Literal["pre", "post", "none"]
Normalizer = Literal["layer", "rms"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "relu2"]
Positions = Literal["sinusoidal", "learned", "rotary", "alibi", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and choices of a Transformer; `dataclasses.replace` makes one from another.

    Attributes:
        d_model: size of the vectors.
        n_heads: number of heads of each attention.
        d_ff: size of the hidden layer of the feed-forward network; 0 leaves the network out.
        n_layers: number of blocks, of encoder and decoder each.
        norm: where the norm stands: "pre", x + layer(norm(x)); "post", norm(x + layer(x)), as in
            the paper; "none".
        normalizer: "layer" (`LayerNorm`) or "rms" (`RMSNorm`).
        norm_eps: eps of every norm.
        final_norm: whether a norm follows the last block. None: in "pre" order.
        residual: whether the input of a layer is added to its output.
        activation: the activation of the feed-forward network: "relu", "gelu" (exact), "gelu_tanh"
            (GPT's approximation), "silu", or "relu2", the square of ReLU.
        gated: whether the activation of one linear map is multiplied with another: with "silu" that
            is SwiGLU.
        positions: "sinusoidal" or "learned", added to embeddings; "rotary" or "alibi", in every
            self-attention; "none".
        max_len: the most tokens that learned positions have a vector for.
        n_segments: number of segments (the texts of a pair) that have a vector, which is added to
            the embeddings of their tokens.
        rotary_base, rotary_pairing: as for `Rotary`.
        d_head: size of a head's vectors. None: d_model / n_heads.
        n_kv_heads: number of heads of keys and values. None: as many as n_heads.
        qk_norm: whether queries and keys are normalised by `RMSNorm`, head by head.
        bias: whether the maps inside attention and feed-forward have a bias.
        embedding_scale: whether embeddings are multiplied by the root of d_model.
        embedding_norm: whether a norm follows embedding and position.
        tied: whether a decoder's output matrix is its embedding.
        dropout: share of numbers that training sets to zero in the sum of embedding and position
            and in each layer's output.
        init_std: standard deviation of the numbers that all matrices start with, in those that end
            a layer divided by the root of 2 n_layers; biases start at 0. None: as PyTorch's
            `Linear` starts, embeddings with 1 / sqrt(d_model).

    Raises:
        ValueError: if a size is no whole number or too small, sizes do not divide each other, a
            choice is none of those above, a flag is not True or False, norm_eps, rotary_base or
            init_std is not above 0 or not finite, or dropout is not in 0 .. 1.

    In other libraries: `hidden_size`, `num_attention_heads`, `intermediate_size`,
    `num_hidden_layers`, `num_key_value_heads`, `rope_theta` of `transformers`.
    """

    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 256
    n_layers: int = 2
    norm: Norm = "pre"
    normalizer: Normalizer = "layer"
    norm_eps: float = 1e-5
    final_norm: bool | None = None
    residual: bool = True
    activation: Activation = "relu"
    gated: bool = False
    positions: Positions = "sinusoidal"
    max_len: int = 512
    n_segments: int = 0
    rotary_base: float = 10000.0
    rotary_pairing: Pairing = "half"
    d_head: int | None = None
    n_kv_heads: int | None = None
    qk_norm: bool = False
    bias: bool = True
    embedding_scale: bool = True
    embedding_norm: bool = False
    tied: bool = True
    dropout: float = 0.0
    init_std: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):  # each is what its annotation says
            given = {field.name: getattr(self, field.name)}
            kinds = get_args(field.type) or (field.type,)
            if given[field.name] is None and NoneType in kinds:
                continue
            if get_origin(field.type) is Literal:
                check_choice(kinds, **given)
            elif bool in kinds:
                check_flags(**given)
            elif int in kinds:
                check_whole(0 if field.name in ("d_ff", "n_segments") else 1, **given)
            elif field.name == "dropout":
                check_range(0, 1, **given)
            else:
                check_positive(**given)
        if self.d_head is None and self.d_model % self.n_heads:
            raise ValueError(f"n_heads must divide d_model, {self.d_model}, got {self.n_heads}")
        if self.n_heads % (self.n_kv_heads or self.n_heads):
            raise ValueError(
                f"n_kv_heads must divide n_heads, {self.n_heads}, got {self.n_kv_heads}"
            )
        if self.positions == "rotary" and self.head_size % 2:
            raise ValueError(f"d_head must be even for rotary positions, got {self.head_size}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")

    @property
    def head_size(self) -> int:
        """d_head, also where it follows from the other sizes."""
        return self.d_head or self.d_model // self.n_heads


TINY = TransformerConfig()
"""Learns to translate numbers in a minute."""

# fmt: off
VASWANI_2017 = TransformerConfig(512, 8, 2048, 6, norm="post", dropout=0.1)
"""The base model of Vaswani et al. 2017, table 3."""

GPT_1 = replace(VASWANI_2017, d_model=768, n_heads=12, d_ff=3072, n_layers=12,
                activation="gelu_tanh", positions="learned", embedding_scale=False)
"""The decoder of Radford et al. 2018."""

GPT_2 = replace(GPT_1, norm="pre", max_len=1024)
"""The smallest decoder of Radford et al. 2019."""

BERT = replace(GPT_1, activation="gelu", n_segments=2, embedding_norm=True, norm_eps=1e-12)
"""The base encoder of Devlin et al. 2019."""

BERT_LARGE = replace(BERT, d_model=1024, n_heads=16, d_ff=4096, n_layers=24)
"""Their large encoder."""

LLAMA_3 = TransformerConfig(4096, 32, 14336, 32, normalizer="rms", activation="silu", gated=True,
                            positions="rotary", rotary_base=500_000.0, n_kv_heads=8, bias=False,
                            embedding_scale=False, tied=False)
"""Llama 3 with 8 billion parameters (Grattafiori et al. 2024), as `transformers` stores it."""

QWEN_3 = replace(LLAMA_3, d_model=1024, n_heads=16, d_ff=3072, n_layers=28, d_head=128,
                 norm_eps=1e-6, rotary_base=1_000_000.0, qk_norm=True, tied=True)
"""The smallest Qwen 3, with 0.6 billion parameters (Yang et al. 2025)."""

SMOLLM2 = replace(LLAMA_3, d_model=576, n_heads=9, d_ff=1536, n_layers=30, n_kv_heads=3,
                  rotary_base=100_000.0, tied=True)
"""SmolLM2 with 135 million parameters (Allal et al. 2025)."""
# fmt: on
