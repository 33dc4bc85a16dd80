"""A model in one small file: matrices in 8 bits, with the tokenizer and with what made it.

A page of the book reads the same file (`attnbook/widgets/engine`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int8
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from attnbook.bert import Bert
from attnbook.checks import check_shapes
from attnbook.config import TransformerConfig
from attnbook.tokenizers import WordPiece

LEVELS = 127
SCALE = ".scale"  # what the scales of a matrix are called, after its own name
GIVEN = ("config", "tokens", "lowercase")  # what a model and its tokenizer say themselves


def quantize(
    X: Float[Tensor, "row column"],
) -> tuple[Int8[Tensor, "row column"], Float[Tensor, " row"]]:
    """A matrix as whole numbers, and a scale for each row.

        s_i = max_j |X_ij| / 127,   Q_ij = round(X_ij / s_i)

    with X, Q `[row column]` and s `[row]`. Q_ij s_i differs from X_ij by at most s_i / 2. A row of
    zeros has the scale 0.

    Raises:
        ValueError: if X is no matrix, or holds a number that is not finite.

    Source: Dettmers et al. 2022, section 2.1 (absmax quantization), a row at a time.

    In other libraries: `torch.ao.quantization.PerChannelMinMaxObserver`, symmetric.
    """
    check_shapes(X=(X, "row column"))
    if not X.isfinite().all():
        raise ValueError(f"X must be finite, got {X[~X.isfinite()][0].item()}")
    scale = X.abs().amax(1) / LEVELS
    return (X / scale.where(scale > 0, 1)[:, None]).round().to(torch.int8), scale


def save_int8(
    path: str | Path, model: Bert, tokenizer: WordPiece, said: Mapping[str, Any] | None = None
) -> None:
    """Write a model in 8 bits: matrices as `quantize` gives them, vectors in 32 bits.

    Args:
        path: of the file, in the format safetensors. The matrix X and its scales are called "X" and
            "X.scale".
        model: stays as it is; what was rounded is what `load_int8` gives.
        tokenizer: of the model.
        said: more for the file to say of itself; values that JSON can hold.

    Raises:
        ValueError: if a weight is not finite, or `said` has one of `GIVEN`.
    """
    if own := sorted(set(said or {}) & set(GIVEN)):
        raise ValueError(f"said must not have {own[0]}, which the model says, got {own}")
    tensors: dict[str, Tensor] = {}
    for name, weight in model.state_dict().items():
        if weight.ndim == 2:
            tensors[name], tensors[name + SCALE] = quantize(weight)
        else:
            tensors[name] = weight
    own = (asdict(model.stack.config), tokenizer.vocab.tokens, tokenizer.lowercase)
    told = {**dict(zip(GIVEN, own, strict=True)), **(said or {})}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        for name, value in told.items()
    }
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, texts)


def load_int8(path: str | Path) -> tuple[Bert, WordPiece]:
    """Read what `save_int8` wrote.

    Returns:
        The model, in evaluation mode, its weights float32 again, and the tokenizer.

    Raises:
        ValueError: if there is no such file, or its weights are not those of a `Bert`.
    """
    given = said(path)
    if missing := [name for name in GIVEN if name not in given]:
        raise ValueError(f"{path} must say its {missing[0]}, got {sorted(given)}")
    tokenizer = WordPiece(given["tokens"], lowercase=given["lowercase"])
    model = Bert(tokenizer.vocab, TransformerConfig(**given["config"]))
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
        raise ValueError(f"{path} must hold the weights of a Bert: {error}") from None
    return model.eval(), tokenizer


def said(path: str | Path) -> dict[str, Any]:
    """What the file of a model says of itself: sizes, tokens, and what made it.

    Raises:
        ValueError: if there is no such file.
    """
    try:
        with safe_open(path, "pt") as file:
            return {name: json.loads(value) for name, value in (file.metadata() or {}).items()}
    except (OSError, SafetensorError) as error:
        raise ValueError(f"path must be a safetensors file, got {path}: {error}") from None
