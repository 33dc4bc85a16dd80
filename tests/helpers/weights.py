"""Changes weights in a folder of a pretrained model."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def changed(folder: Path, **weights: torch.Tensor | None) -> None:
    """Replace or (None) remove parameters in a folder."""
    path = folder / "model.safetensors"
    all_ = {name: weight.clone() for name, weight in load_file(path).items()}
    for name, weight in weights.items():
        all_.pop(name, None)
        if weight is not None:
            all_[name] = weight
    save_file(all_, path)
