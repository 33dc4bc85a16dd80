"""Folders of weights as `transformers` writes them: code that the loaders of all families share."""

import json
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary

Model = TypeVar("Model", bound=nn.Module)
ACTIVATIONS = {  # names for `hidden_act`, and the names in this package
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
TIED = "an output matrix apart from the embedding"  # tied weights are one parameter


def read(folder: Path, *more: str) -> dict[str, Any]:
    """The `config.json` of a folder; the folder must also hold the files `more`."""
    for name in ("config.json", *more):
        if not (folder / name).is_file():
            raise ValueError(f"folder must hold {name}, got {folder}")
    return json.loads((folder / "config.json").read_text("utf-8"))


def check_values(hf_config: dict[str, Any], **required: tuple[Any, Any]) -> None:
    """Check values of a configuration: name = (required value, default if it is absent)."""
    for name, (value, default) in required.items():
        if (actual := hf_config.get(name, default)) != value:
            raise ValueError(f"config.json must have {name} = {value!r}, got {actual!r}")


def check_names(hf_config: dict[str, Any], *names: str) -> None:
    """Check that a configuration has these names."""
    for name in names:
        if name not in hf_config:
            raise ValueError(f"config.json must have {name}, got none")


def activation(hf_config: dict[str, Any], name: str, default: str | None = None) -> str:
    """The activation of a configuration, by its name in this package."""
    if (theirs := hf_config.get(name, default)) not in ACTIVATIONS:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, ACTIVATIONS))}, got {theirs!r}"
        )
    return ACTIVATIONS[theirs]


def vocabulary(folder: Path, size: int, hf_config: dict[str, Any]) -> Vocabulary:
    """Tokens of `vocab.json`, "<i>" for an id without one; special ones as configured."""
    tokens, path = [f"<{i}>" for i in range(size)], folder / "vocab.json"
    for token, i in json.loads(path.read_text("utf-8")).items() if path.is_file() else ():
        if i >= size:
            raise ValueError(f"vocab.json must number at most {size} tokens, got {token!r}: {i}")
        tokens[i] = token

    def special(name: str, default: str) -> str:
        i = hf_config.get(f"{name}_token_id")
        i = i[0] if isinstance(i, list) and i else i  # the first of several end tokens
        return tokens[i] if isinstance(i, int) and 0 <= i < size else default

    eos = special("eos", tokens[-1])
    return Vocabulary(tokens, pad=special("pad", eos), bos=special("bos", eos), eos=eos)


def by_columns(weight: Tensor) -> Tensor:
    """A float32 matrix in column-major order in memory; other tensors as they are.

    Generation multiplies a matrix by one vector at a time, which can then be 1.4 times as fast.
    """
    is_float_matrix = weight.ndim == 2 and weight.dtype == torch.float32
    return weight.mT.contiguous().mT if is_float_matrix else weight


def without_tied(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """Drop the output matrix if it equals the embedding."""
    embedding = ours.get("stack.embedding.weight")
    if TIED in ours and embedding is not None and ours[TIED].equal(embedding):
        del ours[TIED]
    return ours


class _Unstarted(TorchFunctionMode):
    """Skips the random initialisation of weights that will be overwritten."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        start = getattr(func, "__module__", None) == "torch.nn.init"
        return None if start else func(*args, **(kwargs or {}))


def bare_decoder(vocab: Vocabulary, config: TransformerConfig) -> TransformerDecoder:
    """A decoder on the device "meta": its parameters take no memory until `fill` sets them."""
    with torch.device("meta"), _Unstarted():
        return TransformerDecoder(vocab, config)


def fill(model: Model, weights: dict[str, Tensor], source: str = "model.safetensors") -> Model:
    """Load weights into a model; a model on the device "meta" uses them without a copy.

    Args:
        model: returned in evaluation mode.
        weights: by the names of this package.
        source: the file's name in error messages.

    Raises:
        ValueError: if a weight is missing, unknown or of another shape.
    """
    own = model.state_dict()
    for name, shape in ((name, list(weight.shape)) for name, weight in own.items()):
        given = list(weights[name].shape) if name in weights else "none"
        if given != shape:
            raise ValueError(f"{source} must hold {name} {shape}, got {given}")
    if more := [name for name in weights if name not in own]:
        kind = type(model).__name__
        raise ValueError(f"{source} must hold no more than a {kind}, got {more[0]}")
    model.load_state_dict(weights, assign=any(weight.is_meta for weight in own.values()))
    return model.eval()
