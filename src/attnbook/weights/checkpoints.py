"""Folders of weights as `transformers` writes them: what loading every family needs."""

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
ACTIVATIONS = {  # what `hidden_act` may be, and what it is called here
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
TIED = "an output matrix apart from the embedding"  # the same numbers: no parameter of its own


def read(folder: Path, *more: str) -> dict[str, Any]:
    """The configuration in a folder that must hold more files, too."""
    for name in ("config.json", *more):
        if not (folder / name).is_file():
            raise ValueError(f"folder must hold {name}, got {folder}")
    return json.loads((folder / "config.json").read_text("utf-8"))


def check_said(said: dict[str, Any], **wanted: tuple[Any, Any]) -> None:
    """What a configuration must have, with what counts where it says nothing."""
    for name, (value, default) in wanted.items():
        if (came := said.get(name, default)) != value:
            raise ValueError(f"config.json must have {name} = {value!r}, got {came!r}")


def check_names(said: dict[str, Any], *names: str) -> None:
    """What a configuration must say."""
    for name in names:
        if name not in said:
            raise ValueError(f"config.json must have {name}, got none")


def activation(said: dict[str, Any], name: str, default: str | None = None) -> str:
    """The activation that a configuration names, as it is called here."""
    if (came := said.get(name, default)) not in ACTIVATIONS:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, ACTIVATIONS))}, got {came!r}")
    return ACTIVATIONS[came]


def vocabulary(folder: Path, size: int, said: dict[str, Any]) -> Vocabulary:
    """Tokens as `vocab.json` calls them, or "<0>", "<1>", ..; the special ones by their ids."""
    tokens, path = [f"<{i}>" for i in range(size)], folder / "vocab.json"
    for token, i in json.loads(path.read_text("utf-8")).items() if path.is_file() else ():
        if i >= size:
            raise ValueError(f"vocab.json must number at most {size} tokens, got {token!r}: {i}")
        tokens[i] = token

    def special(name: str, default: str) -> str:
        i = said.get(f"{name}_token_id")
        i = i[0] if isinstance(i, list) and i else i  # of several ends the first
        return tokens[i] if isinstance(i, int) and 0 <= i < size else default

    eos = special("eos", tokens[-1])
    return Vocabulary(tokens, pad=special("pad", eos), bos=special("bos", eos), eos=eos)


def by_columns(weight: Tensor) -> Tensor:
    """The numbers of a matrix in float32 with its columns, not its rows, side by side in memory.

    Generation multiplies it by one vector at a time, which may read it 1.4 times as fast so.
    """
    wanted = weight.ndim == 2 and weight.dtype == torch.float32
    return weight.mT.contiguous().mT if wanted else weight


def without_tied(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """The output matrix is left out where it is the embedding."""
    embedding = ours.get("stack.embedding.weight")
    if TIED in ours and embedding is not None and ours[TIED].equal(embedding):
        del ours[TIED]
    return ours


class _Unstarted(TorchFunctionMode):
    """Numbers that are overwritten anyway are not drawn."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        start = getattr(func, "__module__", None) == "torch.nn.init"
        return None if start else func(*args, **(kwargs or {}))


def bare_decoder(vocab: Vocabulary, config: TransformerConfig) -> TransformerDecoder:
    """A decoder without numbers: its parameters take no memory until `fill` gives them."""
    with torch.device("meta"), _Unstarted():
        return TransformerDecoder(vocab, config)


def fill(model: Model, weights: dict[str, Tensor], source: str = "model.safetensors") -> Model:
    """Load weights, or say what does not fit. A model on the device "meta" takes them as its own.

    Args:
        model: returned in evaluation mode.
        weights: by our names.
        source: what errors call it.
    """
    wanted = model.state_dict()
    for name, shape in ((name, list(weight.shape)) for name, weight in wanted.items()):
        came = list(weights[name].shape) if name in weights else "none"
        if came != shape:
            raise ValueError(f"{source} must hold {name} {shape}, got {came}")
    if more := [name for name in weights if name not in wanted]:
        kind = type(model).__name__
        raise ValueError(f"{source} must hold no more than a {kind}, got {more[0]}")
    model.load_state_dict(weights, assign=any(weight.is_meta for weight in wanted.values()))
    return model.eval()
