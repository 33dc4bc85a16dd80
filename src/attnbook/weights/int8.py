"""A model in one small file: matrices in 8 bits, the tokenizer, and how it was trained.

The pages of the book read the same file (`attnbook/web/engine`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, overload

import torch
from jaxtyping import Float, Int8
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from attnbook.checks import check_shapes
from attnbook.model.bert import Bert
from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair, WordPiece

Module = TypeVar("Module", bound=nn.Module)
LEVELS = 127
SCALE = ".scale"  # suffix of the name of a matrix's scales
BERT_METADATA = ("config", "tokens", "lowercase")  # metadata of each model with a WordPiece
GPT_METADATA = ("config", "merges", "special")


def quantize(
    X: Float[Tensor, "row column"],
) -> tuple[Int8[Tensor, "row column"], Float[Tensor, " row"]]:
    """A matrix as 8-bit integers, with a scale for each row.

        s_i = max_j |X_ij| / 127,   Q_ij = round(X_ij / s_i)

    with X, Q `[row column]` and s `[row]`. Q_ij s_i differs from X_ij by at most s_i / 2. A row of
    zeros has the scale 0.

    Raises:
        ValueError: if X is not a matrix, or not finite.

    Source: Dettmers et al. 2022, section 2.1 (absmax quantization), row by row.

    In other libraries: `torch.ao.quantization.PerChannelMinMaxObserver`, symmetric.
    """
    check_shapes(X=(X, "row column"))
    if not X.isfinite().all():
        raise ValueError(f"X must be finite, got {X[~X.isfinite()][0].item()}")
    scale = X.abs().amax(1) / LEVELS
    return (X / scale.where(scale > 0, 1)[:, None]).round().to(torch.int8), scale


def save_int8(
    path: str | Path,
    model: Bert | TransformerDecoder,
    tokenizer: WordPiece | BytePair,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write a model in 8 bits: matrices as `quantize` gives them, vectors in 32 bits.

    Args:
        path: a safetensors file. The matrix X and its scales are called "X" and
            "X.scale". The metadata hold "config" and the tokenizer: "tokens" and "lowercase", or
            "merges" and "special".
        model: is not changed; `load_int8` gives the rounded model.
        tokenizer: the model's: a `WordPiece` for a `Bert`, a `BytePair` for a decoder.
        more: further metadata, of values that JSON can hold.

    Raises:
        ValueError: if a weight is not finite, the tokenizer does not belong to the model, splits
            digits or has its tokens in another order, or `more` has a name of the file's own
            metadata.
    """
    if isinstance(tokenizer, WordPiece) != isinstance(model, Bert):
        kinds = type(model).__name__, type(tokenizer).__name__
        raise ValueError(f"tokenizer must be one for a {kinds[0]}, got a {kinds[1]}")
    own: dict[str, Any] = {"config": asdict(model.stack.config)}
    if isinstance(tokenizer, WordPiece):
        own |= {"tokens": tokenizer.vocab.tokens, "lowercase": tokenizer.lowercase}
    elif tokenizer.digits:  # the page's tokenizer cannot split them
        raise ValueError("tokenizer must not put digits apart to be stored, got digits=True")
    else:
        own["merges"] = [f"{a} {b}" for a, b in tokenizer.merges]
        own["special"] = [tokenizer.vocab.tokens[i] for i in tokenizer.special]
    if _tokenizer(own).vocab != model.vocab:
        raise ValueError("tokenizer must have the model's tokens, in their usual order")
    if taken := sorted(set(more or {}) & set(own)):
        raise ValueError(f"more must not have {taken[0]}, which the model says, got {taken}")
    write_int8(path, model, {**own, **(more or {})})


def write_int8(path: str | Path, model: nn.Module, facts: Mapping[str, Any]) -> None:
    """Write a model's matrices in 8 bits and its vectors in 32, with `facts` about it.

    Raises:
        ValueError: if a weight is not finite.
    """
    tensors: dict[str, Tensor] = {}
    for name, weight in model.state_dict().items():
        if weight.ndim == 2:
            tensors[name], tensors[name + SCALE] = quantize(weight)
        else:
            tensors[name] = weight
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        for name, value in facts.items()
    }
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, texts)


@overload
def load_int8(path: str | Path, kind: type[Bert]) -> tuple[Bert, WordPiece]: ...
@overload
def load_int8(
    path: str | Path, kind: type[TransformerDecoder]
) -> tuple[TransformerDecoder, BytePair]: ...
@overload
def load_int8(path: str | Path) -> tuple[Any, Any]: ...
def load_int8(path: str | Path, kind: type[nn.Module] = nn.Module) -> tuple[Any, Any]:
    """Read a model that `save_int8` wrote.

    Args:
        path: the file.
        kind: the required class, `Bert` or `TransformerDecoder`.

    Returns:
        The model, in evaluation mode and in float32, and its tokenizer.

    Raises:
        ValueError: if there is no such file, its metadata are incomplete, its weights do not fit
            the model, or the model is of another class.
    """
    stored = metadata(path)
    tokenizer = _tokenizer(stored, path)
    try:
        config = TransformerConfig(**stored["config"])
    except TypeError as error:
        raise ValueError(f"{path} must say a config that is known here: {error}") from None
    made = Bert if isinstance(tokenizer, WordPiece) else TransformerDecoder
    if not issubclass(made, kind):
        raise ValueError(f"{path} must hold a {kind.__name__}, got a {made.__name__}")
    return fill_int8(path, made(tokenizer.vocab, config)), tokenizer


def fill_int8(path: str | Path, model: Module) -> Module:
    """Load the weights that `write_int8` wrote into a model; returns it in evaluation mode.

    Raises:
        ValueError: if the weights do not fit the model.
    """
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    weights = {
        name: tensor * tensors[name + SCALE][:, None] if name + SCALE in tensors else tensor
        for name, tensor in tensors.items()
        if not name.endswith(SCALE)
    }
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        kind = type(model).__name__
        raise ValueError(f"{path} must hold the weights of a {kind}: {error}") from None
    return model.eval()


def _tokenizer(stored: Mapping[str, Any], path: str | Path = "model") -> WordPiece | BytePair:
    """The tokenizer that a file's metadata describe."""
    names = GPT_METADATA if "merges" in stored else BERT_METADATA
    if missing := [name for name in names if name not in stored]:
        raise ValueError(f"{path} must say its {missing[0]}, got {sorted(stored)}")
    if names is BERT_METADATA:
        return WordPiece(stored["tokens"], lowercase=stored["lowercase"])
    pairs = (pair.split(" ") for pair in stored["merges"])
    return BytePair(((a, b) for a, b in pairs), stored["special"])


def metadata(path: str | Path) -> dict[str, Any]:
    """The metadata of a model's file: its configuration, its tokenizer, and how it was trained.

    Raises:
        ValueError: if there is no such file.
    """
    try:
        with safe_open(path, "pt") as file:
            return {name: json.loads(value) for name, value in (file.metadata() or {}).items()}
    except (OSError, SafetensorError) as error:
        raise ValueError(f"path must be a safetensors file, got {path}: {error}") from None
