"""Models of the Llama family in the book's own decoder, and SmolLM2, the one that it runs.

SmolLM2 comes in a GGUF file, which needs the package `gguf` of the extra `attnbook[pretrained]`.
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
    check_said,
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
OPTIONS = {  # names in the configuration, and their values where a file has none
    "num_key_value_heads": ("n_kv_heads", None),
    "head_dim": ("d_head", None),
    "max_position_embeddings": ("max_len", 2048),
    "rms_norm_eps": ("norm_eps", 1e-6),
    "attention_bias": ("bias", False),
    "tie_word_embeddings": ("tied", False),
}
NAMES = {  # parts of a parameter's name in their files, and what they are here
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

    The family is what one code computes: rotary positions, RMSNorm before each layer and after the
    last block, heads that share keys and values, a gated feed-forward network. So are Llama, the
    models that took its layers over (SmolLM2 and many others), and Qwen 3, which also normalises
    queries and keys.

    Args:
        folder: holds `config.json` and `model.safetensors`, or several such files and
            `model.safetensors.index.json`; the tokens are called as in `vocab.json`, or where there
            is none "<0>", "<1>", ... The tokenizer above is SmolLM2's.
        dtype: of the weights, which are read one by one.

    Returns:
        The model, in evaluation mode. Rotary positions have no end: a text that is longer than
        `max_len`, the context that the model was trained with, is computed, too, at positions that
        the model never saw.

    Raises:
        ValueError: if a file is missing, the configuration is of another family or asks for what
            the decoder has not (such as angles that are scaled, as in Llama 3.1), or a parameter is
            missing, unknown or of another shape.

    Source: Grattafiori et al. 2024, section 3.2.

    In other libraries: `LlamaForCausalLM.from_pretrained` of `transformers`.
    """
    folder = Path(folder)
    _check_dtype(dtype)
    said = read(folder)
    config = _config(said)
    weights = {}
    for path in _files(folder):
        with safe_open(path, "pt") as file:
            for theirs in file.keys():  # noqa: SIM118
                if not theirs.endswith("rotary_emb.inv_freq"):  # the angles, in old files
                    weight = file.get_tensor(theirs).to(dtype)
                    weights[_ours(theirs, config)] = by_columns(weight)
    model = bare_decoder(vocabulary(folder, said["vocab_size"], said), config)
    return fill(model, without_tied(weights))


def _files(folder: Path) -> list[Path]:
    """Where the weights are: in one file or, as an index says, in several."""
    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    for name in names:
        if not (folder / name).is_file():
            raise ValueError(f"folder must hold {name}, got {folder}")
    return [folder / name for name in names]


def _config(said: dict[str, Any]) -> TransformerConfig:
    """Our configuration for what a `config.json` says."""
    check_choice(FAMILY, model_type=said.get("model_type"))
    check_names(said, *SIZES, "vocab_size")
    check_said(said, use_sliding_window=(False, False))
    if said["model_type"] == "llama":
        check_said(said, mlp_bias=(said.get("attention_bias", False), False))
    else:
        check_said(said, attention_bias=(False, False))
    options = {ours: said.get(theirs, value) for theirs, (ours, value) in OPTIONS.items()}
    options |= {ours: said[theirs] for theirs, ours in SIZES.items()}
    rotary = said.get("rope_parameters") or said.get("rope_scaling") or {}
    kind = rotary.get("rope_type", rotary.get("type", "default"))
    check_choice(("default",), rope_type=kind)
    options["rotary_base"] = float(rotary.get("rope_theta", said.get("rope_theta", 10000.0)))
    options["activation"] = activation(said, "hidden_act", "silu")
    options["qk_norm"] = said["model_type"] == "qwen3"
    return replace(LLAMA_3, **options)


def _ours(name: str, config: TransformerConfig) -> str:
    """A parameter's name here."""
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

    It read two trillion tokens, and was then taught to follow instructions: `chat` writes these as
    it was taught them. The asset stores its matrices in 4 bits a number, the embedding in 8; here
    they are what these bits stand for.

    Args:
        dtype: of the weights, which are unpacked one by one: float32 takes 538 MB, bfloat16 half.

    Returns:
        The model, in evaluation mode, and the tokenizer. Its context is 8192 tokens: `load_llama`
        says what becomes of longer texts.

    Raises:
        ImportError: if `gguf` is missing.
        AssetError: if the weights are not in the cache and cannot be fetched.
        ValueError: if the dtype is not of floating point.

    Source: Allal et al. 2025.

    In other libraries: `AutoModelForCausalLM.from_pretrained(folder, gguf_file=...)` of
    `transformers`; its tokenizer for this file does not put digits apart, as SmolLM2's does, which
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
        own = numbers if numbers.flags.writeable else numbers.copy()  # else a part of the file
        weight = torch.from_numpy(own).to(dtype)
        if name.endswith((".q.weight", ".k.weight")):
            weight = _halves(weight, config.head_size)
        weights[name] = by_columns(weight)
    return fill(bare_decoder(tokenizer.vocab, config), weights, path.name), tokenizer


def _halves(weight: Tensor, d_head: int) -> Tensor:
    """Rows of each head from GGUF's order, where rotary pairs are neighbours, to `Rotary`'s."""
    return weight.unflatten(0, (-1, d_head // 2, 2)).transpose(1, 2).flatten(0, 2)


def _tokenizer(fields: dict[str, Any]) -> BytePair:
    """The tokenizer that a GGUF file of SmolLM2 tells of."""

    def said(name: str) -> Any:
        return fields[f"tokenizer.ggml.{name}"].contents()

    tokens = said("tokens")
    special = [token for token, kind in zip(tokens, said("token_type"), strict=True) if kind != 1]
    pairs = (pair.split(" ") for pair in said("merges"))
    return BytePair(
        ((a, b) for a, b in pairs),
        special,
        tokens=tokens,
        pad=tokens[said("padding_token_id")],
        bos=tokens[said("bos_token_id")],
        eos=tokens[said("eos_token_id")],
        digits=True,
        lossy=True,
    )


def chat(*turns: tuple[str, str], system: str = SYSTEM) -> str:
    """A conversation as SmolLM2 was taught it, up to where its answer begins.

        text = chat(("user", "Who wrote The Origin of Species?"))
        prompt = torch.tensor([tokenizer.encode(text, special=True)])

    Args:
        turns: who speaks, "user" or "assistant", and what they say; the last turn is the user's.
        system: what the model is told before.

    Raises:
        ValueError: if there is no turn, the last one is not the user's, another speaks, or a turn
            or the system's text is no string.
    """
    check_text(system=system)
    for who, what in turns:
        check_choice(("user", "assistant"), turns=who)
        check_text(turns=what)
    if not turns or turns[-1][0] != "user":
        raise ValueError(f"turns must end with one of the user, got {turns[-1:]}")
    lines = [("system", system), *turns]
    said = "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in lines)
    return f"{said}<|im_start|>assistant\n"


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
