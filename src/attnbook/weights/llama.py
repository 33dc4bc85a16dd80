"""Models of the Llama family in the book's own decoder; chapter 10 runs one of them, SmolLM2.

SmolLM2 comes as a GGUF file, which needs the package `gguf` of the extra `attnbook[pretrained]`.
"""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from attnbook import assets
from attnbook.checks import check_choice, check_text
from attnbook.model.config import LLAMA_3, SMOLLM2, TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.weights.checkpoints import (
    TIED,
    activation,
    bare_decoder,
    by_columns,
    check_names,
    check_values,
    fill,
    read,
    vocabulary,
    without_tied,
)

FAMILY = ("llama", "qwen3")
SIZES = {
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "intermediate_size": "d_ff",
    "num_hidden_layers": "n_layers",
}
OPTIONS = {  # name in config.json: name here, default
    "num_key_value_heads": ("n_kv_heads", None),
    "head_dim": ("d_head", None),
    "max_position_embeddings": ("max_len", 2048),
    "rms_norm_eps": ("norm_eps", 1e-6),
    "attention_bias": ("bias", False),
    "tie_word_embeddings": ("tied", False),
}
NAMES = {  # parts of a parameter's name in these files, and their names here
    "embed_tokens": "stack.embedding",
    "layers.": "stack.blocks.",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "feed_forward_norm",
    "self_attn.": "attention.",
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "o_proj": "out",
    "mlp.": "feed_forward.",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
}
GGUF_NAMES = {  # the same for GGUF files, in this order
    "token_embd": "stack.embedding",
    "output_norm": "stack.norm",
    "blk.": "stack.blocks.",
    "attn_norm": "attention_norm",
    "attn_output": "attention.out",
    "attn_": "attention.",
    "ffn_norm": "feed_forward_norm",
    "ffn_": "feed_forward.",
}
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def load_llama(folder: str | Path, dtype: torch.dtype = torch.float32) -> TransformerDecoder:
    """A model of the Llama family, from the files that `transformers` writes.

        model, tokenizer = load_llama(folder), BytePair.load(folder, digits=True, lossy=True)
        prompt = torch.tensor([tokenizer.encode("We wash our")])
        print(tokenizer.decode(model.generate(prompt, max_len=9).tokens[0]))

    All models of the family have rotary positions, RMSNorm before each layer and after the last
    block, heads that share keys and values, and a gated feed-forward network: Llama, models built
    from the same layers (SmolLM2 and many others), and Qwen 3, which also normalises queries and
    keys.

    Args:
        folder: holds `config.json` and `model.safetensors`, or several such files and
            `model.safetensors.index.json`. The tokens are named by `vocab.json`, or "<0>", "<1>",
            ... without such a file. The tokenizer above is SmolLM2's.
        dtype: the weights' type; they are read one by one.

    Returns:
        The model, in evaluation mode. Rotary positions have no limit: the model also reads a text
        longer than `max_len`, its context in training, at positions that it never saw.

    Raises:
        ValueError: if a file is missing, the configuration is of another family or needs something
            that the decoder lacks (such as scaled angles, as in Llama 3.1), or a parameter is
            missing, unknown or of another shape.

    Source: Grattafiori et al. 2024, section 3.2.

    In other libraries: `LlamaForCausalLM.from_pretrained` of `transformers`.
    """
    folder = Path(folder)
    _check_dtype(dtype)
    hf_config = read(folder)
    config = _config(hf_config)
    weights = {}
    for path in _files(folder):
        with safe_open(path, "pt") as file:
            for theirs in file.keys():  # noqa: SIM118
                if not theirs.endswith("rotary_emb.inv_freq"):  # old files store the angles
                    weight = file.get_tensor(theirs).to(dtype)
                    weights[_ours(theirs, config)] = by_columns(weight)
    model = bare_decoder(vocabulary(folder, hf_config["vocab_size"], hf_config), config)
    return fill(model, without_tied(weights))


def _files(folder: Path) -> list[Path]:
    """The weight files: one, or those that an index lists."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(f"folder must hold {name}, got {folder}")
    return [folder / name for name in names]


def _config(hf_config: dict[str, Any]) -> TransformerConfig:
    """The `TransformerConfig` for a `config.json`."""
    check_choice(FAMILY, model_type=hf_config.get("model_type"))
    check_names(hf_config, *SIZES, "vocab_size")
    check_values(hf_config, use_sliding_window=(False, False))
    if hf_config["model_type"] == "llama":
        check_values(hf_config, mlp_bias=(hf_config.get("attention_bias", False), False))
    else:
        check_values(hf_config, attention_bias=(False, False))
    options = {ours: hf_config.get(theirs, value) for theirs, (ours, value) in OPTIONS.items()}
    options |= {ours: hf_config[theirs] for theirs, ours in SIZES.items()}
    rotary = hf_config.get("rope_parameters") or hf_config.get("rope_scaling") or {}
    kind = rotary.get("rope_type", rotary.get("type", "default"))
    check_choice(("default",), rope_type=kind)
    options["rotary_base"] = float(rotary.get("rope_theta", hf_config.get("rope_theta", 10000.0)))
    options["activation"] = activation(hf_config, "hidden_act", "silu")
    options["qk_norm"] = hf_config["model_type"] == "qwen3"
    return replace(LLAMA_3, **options)


def _ours(name: str, config: TransformerConfig) -> str:
    """A parameter's name in this package."""
    if name == "lm_head.weight":
        return TIED if config.tied else "head.weight"
    name = name.removeprefix("model.")
    for theirs, new in NAMES.items():
        name = name.replace(theirs, new)
    return f"stack.{name}" if name == "norm.weight" else name


def load_smollm2(dtype: torch.dtype = torch.float32) -> tuple[TransformerDecoder, BytePair]:
    """SmolLM2 with 135 million parameters in the book's own decoder, and its tokenizer.

        model, tokenizer = load_smollm2()
        prompt = torch.tensor([tokenizer.encode("The capital of France is")])
        print(tokenizer.decode(model.generate(prompt, max_len=9).tokens[0]))

    It was pretrained on two trillion tokens and then fine-tuned to follow instructions, in the
    format that `chat` writes. The asset stores matrices in 4 bits per number and the embedding in
    8; they are unpacked to `dtype`.

    Args:
        dtype: the weights' type; they are unpacked one by one: 538 MB in float32, half in bfloat16.

    Returns:
        The model, in evaluation mode, and the tokenizer. Its context is 8192 tokens; for
        longer texts see `load_llama`.

    Raises:
        ImportError: if `gguf` is missing.
        AssetError: if the weights are not in the cache and cannot be fetched.
        ValueError: if the dtype is not a floating-point type.

    Source: Allal et al. 2025.

    In other libraries: `AutoModelForCausalLM.from_pretrained(folder, gguf_file=...)` of
    `transformers`; its tokenizer for this file does not split digits as SmolLM2's does, which
    changes the spaces before a number.
    """
    _check_dtype(dtype)
    gguf = _gguf()
    (path,) = assets.fetch("smollm2").iterdir()
    reader, weights = gguf.GGUFReader(path), {}
    tokenizer = _tokenizer(reader.fields)
    reader.fields.clear()  # 150,000 strings, each an array of its own
    config = replace(SMOLLM2, max_len=8192)
    for tensor in reader.tensors:
        name = tensor.name
        for theirs, new in GGUF_NAMES.items():
            name = name.replace(theirs, new)
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        own = numbers if numbers.flags.writeable else numbers.copy()  # otherwise a view of the file
        weight = torch.from_numpy(own).to(dtype)
        if name.endswith((".q.weight", ".k.weight")):
            weight = _halves(weight, config.head_size)
        weights[name] = by_columns(weight)
    return fill(bare_decoder(tokenizer.vocab, config), weights, path.name), tokenizer


def _halves(weight: Tensor, d_head: int) -> Tensor:
    """Reorder the rows of each head: GGUF has rotary pairs side by side, `Rotary` in halves."""
    return weight.unflatten(0, (-1, d_head // 2, 2)).transpose(1, 2).flatten(0, 2)


def _tokenizer(fields: dict[str, Any]) -> BytePair:
    """The tokenizer that SmolLM2's GGUF file describes."""

    def field(name: str) -> Any:
        return fields[f"tokenizer.ggml.{name}"].contents()

    tokens = field("tokens")
    special = [token for token, kind in zip(tokens, field("token_type"), strict=True) if kind != 1]
    pairs = (pair.split(" ") for pair in field("merges"))
    return BytePair(
        ((a, b) for a, b in pairs),
        special,
        tokens=tokens,
        pad=tokens[field("padding_token_id")],
        bos=tokens[field("bos_token_id")],
        eos=tokens[field("eos_token_id")],
        digits=True,
        lossy=True,
    )


def chat(*turns: tuple[str, str], system: str = SYSTEM) -> str:
    """A conversation in the format that SmolLM2 was fine-tuned on, up to where its answer begins.

        text = chat(("user", "Who wrote The Origin of Species?"))
        prompt = torch.tensor([tokenizer.encode(text, special=True)])

    Args:
        turns: who speaks, "user" or "assistant", and what they say; the last turn is the user's.
        system: instructions that come before the conversation.

    Raises:
        ValueError: if there is no turn, the last one is not the user's, a speaker is unknown, or a
            text is not a string.
    """
    check_text(system=system)
    for who, what in turns:
        check_choice(("user", "assistant"), turns=who)
        check_text(turns=what)
    if not turns or turns[-1][0] != "user":
        raise ValueError(f"turns must end with one of the user, got {turns[-1:]}")
    lines = [("system", system), *turns]
    text = "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in lines)
    return f"{text}<|im_start|>assistant\n"


def _check_dtype(dtype: torch.dtype) -> None:
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype must be of floating point, got {dtype!r}")


def _gguf() -> ModuleType:
    try:
        import gguf
    except ImportError as error:
        raise ImportError(
            "a model in a GGUF file needs the package gguf:"
            ' python -m pip install "attnbook[pretrained]"'
        ) from error
    return gguf
