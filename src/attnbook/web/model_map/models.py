"""What a ModelMap shows of a model: its look, its parameters and cache, its parts' names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from attnbook.model.config import TransformerConfig
from attnbook.model.costs import parameters, step_cost
from attnbook.show.blocks import Look
from attnbook.web._widget import WidgetError

ACTIVATIONS = {
    "relu": "ReLU", "gelu": "GELU", "gelu_tanh": "GELU", "silu": "SiLU", "relu2": "ReLU²",
}  # fmt: skip
# What can be exchanged on its own: the fields of a configuration, and the drawing's parts.
CHANGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "norm": (("normalizer", "norm_eps"), ("norm",)),
    "network": (("activation", "gated", "d_ff"), ("feed-forward",)),
    "places": (
        ("positions", "max_len", "rotary_base", "rotary_pairing"),
        ("positions", "rope"),
    ),
    "keys": (("n_kv_heads",), ("keys",)),
    "bias": (("bias",), ("bias",)),
    "output": (("tied",), ("output",)),
}
UNSEEN = {"dropout": 0.0, "init_std": None, "embedding_scale": False}  # no drawing shows them
# The names of each part: here, in papers, and in `transformers`.
NAMES: dict[str, dict[str, list[tuple[str, str, str]]]] = {
    "gpt2": {
        "embedding": [("stack.embedding", "E, W_e", "wte")],
        "positions": [("stack.positions.embedding", "P, W_p", "wpe")],
        "norm": [
            ("attention_norm", "layer norm", "ln_1"),
            ("feed_forward_norm", "layer norm", "ln_2"),
            ("stack.norm", "last layer norm", "ln_f"),
        ],
        "attention": [
            ("attention.q", "W_Q", "attn.c_attn"),
            ("attention.k", "W_K", "attn.c_attn"),
            ("attention.v", "W_V", "attn.c_attn"),
            ("attention.out", "W_O", "attn.c_proj"),
        ],
        "feed-forward": [
            ("feed_forward.up", "W_1", "mlp.c_fc"),
            ("feed_forward.down", "W_2", "mlp.c_proj"),
        ],
        "output": [("stack.embedding", "logits = x Eᵀ", "lm_head")],
    },
    "llama": {
        "embedding": [("stack.embedding", "E", "embed_tokens")],
        "positions": [("attention.positions", "RoPE", "rotary_emb")],
        "norm": [
            ("attention_norm", "RMSNorm", "input_layernorm"),
            ("feed_forward_norm", "RMSNorm", "post_attention_layernorm"),
            ("stack.norm", "last RMSNorm", "norm"),
        ],
        "attention": [
            ("attention.q", "W_Q", "self_attn.q_proj"),
            ("attention.k", "W_K", "self_attn.k_proj"),
            ("attention.v", "W_V", "self_attn.v_proj"),
            ("attention.out", "W_O", "self_attn.o_proj"),
        ],
        "feed-forward": [
            ("feed_forward.gate", "W", "mlp.gate_proj"),
            ("feed_forward.up", "V", "mlp.up_proj"),
            ("feed_forward.down", "W_2", "mlp.down_proj"),
        ],
        "output": [("head", "output matrix", "lm_head")],
    },
    "bert": {
        "embedding": [("stack.embedding", "token embeddings", "embeddings.word_embeddings")],
        "positions": [
            (
                "stack.positions.embedding",
                "position embeddings",
                "embeddings.position_embeddings",
            ),
            ("stack.segments", "segment embeddings", "embeddings.token_type_embeddings"),
        ],
        "norm": [
            ("stack.embedding_norm", "layer norm", "embeddings.LayerNorm"),
            ("attention_norm", "layer norm", "attention.output.LayerNorm"),
            ("feed_forward_norm", "layer norm", "output.LayerNorm"),
        ],
        "attention": [
            ("attention.q", "W_Q", "attention.self.query"),
            ("attention.k", "W_K", "attention.self.key"),
            ("attention.v", "W_V", "attention.self.value"),
            ("attention.out", "W_O", "attention.output.dense"),
        ],
        "feed-forward": [
            ("feed_forward.up", "W_1", "intermediate.dense"),
            ("feed_forward.down", "W_2", "output.dense"),
        ],
        "words": [
            ("words.transform", "masked LM", "cls.predictions.transform.dense"),
            ("words.norm", "masked LM", "cls.predictions.transform.LayerNorm"),
            ("words.bias", "masked LM", "cls.predictions.bias"),
        ],
        "next": [
            ("pooler", "C, of [CLS]", "pooler.dense"),
            ("next_sentence", "NSP", "cls.seq_relationship"),
        ],
    },
}
# The same for what has no parameters.
ADD = ("Block.add", "residual connection", "hidden_states + residual")
CAUSAL = ("causal", "causal mask", "is_causal")
SETTINGS: dict[str, dict[str, list[tuple[str, str, str]]]] = {
    "gpt2": {"add": [ADD], "mask": [CAUSAL], "heads": [("n_heads", "h", "n_head")]},
    "llama": {
        "add": [ADD],
        "mask": [CAUSAL],
        "heads": [
            ("n_heads", "h", "num_attention_heads"),
            ("n_kv_heads", "groups", "num_key_value_heads"),
        ],
    },
    "bert": {
        "add": [ADD],
        "padding": [("padding_mask", "padding mask", "attention_mask")],
        "heads": [("n_heads", "A", "num_attention_heads")],
        "H": [("what it gives", "T, one a token", "last_hidden_state")],
    },
}


def look(config: TransformerConfig, shape: str) -> Look:
    """How a configuration is drawn.

    Raises:
        ValueError: if its parts are not those of the drawing.
    """
    last = config.final_norm in (None, config.norm == "pre")
    rotary = config.positions == "rotary"
    if (
        config.norm == "none"
        or config.positions == "alibi"
        or config.qk_norm
        or not (last and config.residual and config.d_ff)
    ):
        raise WidgetError(f"models must have the parts of the drawing and no other, not {config}")
    act = ACTIVATIONS[config.activation]
    added = "+ place" if config.positions in ("learned", "sinusoidal") else ""
    return Look(
        norm=config.norm,
        layers=config.n_layers,
        heads=config.n_heads,
        key_heads=config.n_kv_heads or config.n_heads,
        full=True,
        normalizer="LayerNorm" if config.normalizer == "layer" else "RMSNorm",
        network=f"{act}(gate) × up" if config.gated else act,
        gated=config.gated,
        places=added and added + ", A/B" * (config.n_segments > 0),
        start_norm=config.embedding_norm,
        rotary=rotary,
        bias=config.bias,
        tied=config.tied,
        pretrained=shape == "encoder",
    )


def changes(one: TransformerConfig, other: TransformerConfig) -> list[str]:
    """The names in `CHANGES` by which two configurations differ, or none if more differs."""
    differ = [name for name, (fields, _) in CHANGES.items() if _taken(one, other, fields) != one]
    rest = replace(_mixed(one, other, differ), **UNSEEN)
    return differ if rest == replace(other, **UNSEEN) else []


def _taken(
    one: TransformerConfig, other: TransformerConfig, fields: Sequence[str]
) -> TransformerConfig:
    return replace(one, **{field: getattr(other, field) for field in fields})


def _mixed(
    one: TransformerConfig, other: TransformerConfig, names: Sequence[str]
) -> TransformerConfig:
    return _taken(one, other, [field for name in names for field in CHANGES[name][0]])


def change(name: str, configs: Sequence[TransformerConfig]) -> dict[str, Any]:
    """What the page needs for an exchange: the drawing's parts, labels, and the part to open."""
    parts = CHANGES[name][1]
    opens = {"keys": "attention", "bias": ""}.get(name, parts[0])
    return {
        "name": name,
        "parts": [*parts],
        "opens": opens,
        "said": [_said(name, config) for config in configs],
    }


def _said(name: str, config: TransformerConfig) -> str:
    act = ACTIVATIONS[config.activation]
    gated = "SwiGLU" if act == "SiLU" else f"gated {act}"
    heads = config.n_kv_heads or config.n_heads
    return {
        "norm": "LayerNorm" if config.normalizer == "layer" else "RMSNorm",
        "network": gated if config.gated else act,
        "places": "RoPE" if config.positions == "rotary" else "added places",
        "keys": f"{heads} heads of keys",
        "bias": "biases" if config.bias else "no biases",
        "output": "embedding again" if config.tied else "own output matrix",
    }[name]


def ledgers(
    configs: Sequence[TransformerConfig], names: Sequence[str], sizes: Sequence[int], shape: str
) -> dict[str, list[int]]:
    """The counts of `rows` for each set of exchanges, by its names in order, or by "all"."""
    made = {}
    for count in range(len(names) + 1):
        for chosen in combinations(names, count):
            config = _mixed(configs[0], configs[-1], chosen)
            made[" ".join(chosen)] = _ledger(config, sizes[0], shape)
    if len(configs) > 1 and not names:
        made["all"] = _ledger(configs[1], sizes[1], shape)
    return made


def rows(config: TransformerConfig, vocab_size: int, shape: str) -> list[str]:
    """What a ledger counts, in order: each part's parameters, and a decoder's cache per token."""
    return [*parameters(config, vocab_size, shape=shape), *["cache"] * (shape == "decoder")]


def _ledger(config: TransformerConfig, vocab_size: int, shape: str) -> list[int]:
    counts = [*parameters(config, vocab_size, shape=shape).values()]
    if shape == "encoder":
        return counts
    wide, heads = config.n_heads * config.head_size, config.n_heads
    kept = step_cost(1, wide, config.n_layers, heads, config.n_kv_heads or heads, size=1)
    return [*counts, kept.cache]


def names_of(config: TransformerConfig, shape: str) -> Mapping[str, Any]:
    """The names of each part, in the model family that it comes from."""
    if shape == "encoder":
        return NAMES["bert"] | SETTINGS["bert"]
    rms = config.normalizer == "rms"
    modern = {
        "embedding": rms,
        "positions": config.positions == "rotary",
        "norm": rms,
        "attention": rms,
        "feed-forward": config.gated,
        "output": not config.tied,
    }
    found = {part: NAMES["llama" if is_ else "gpt2"][part] for part, is_ in modern.items()}
    fixed = {"positions": [("stack.positions", "PE", "(GPT-2 learns them)")]}
    found |= fixed if config.positions == "sinusoidal" else {}
    return found | SETTINGS["llama" if config.n_kv_heads else "gpt2"]
