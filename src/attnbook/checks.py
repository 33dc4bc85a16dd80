"""Bad input gets a ValueError that names the argument, what was expected, and what came."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import islice
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def check_shapes(**named: int | tuple[Tensor, str]) -> dict[str, int]:
    """Compare tensors with the shapes that they must have, and with each other.

        check_shapes(q=(q, "batch query d"), k=(k, "batch key d"), d=8)

    Args:
        named: a tensor with the words of its dimensions, or the known size of a word. The same word
            means the same size everywhere; `#word` may also be 1; a first `...` stands for any
            dimensions, a later `#...` for what broadcasts to them.

    Returns:
        The size of each word.
    """
    sizes = {name: value for name, value in named.items() if not isinstance(value, tuple)}
    front: Sequence[int] = ()
    for name, value in named.items():
        if not isinstance(value, tuple):
            continue
        tensor, wanted = value
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name} must be a tensor [{wanted}], got {_short(tensor)}")
        first, words = _words(wanted)
        shape, known = tensor.shape, len(sizes)
        n = len(shape) - len(words)
        fits = n >= 0 if first else n == 0
        if fits and first:
            if first == "...":
                front = shape[:n]
            else:
                pairs = zip(shape[:n], front[len(front) - n :], strict=False)
                fits = n <= len(front) and all(size in (1, most) for size, most in pairs)
            shape = shape[n:]
        for (word, any_one), size in zip(words, shape, strict=False):
            if not (any_one and size == 1) and sizes.setdefault(word, size) != size:
                fits = False
        if not fits:
            before = dict(islice(sizes.items(), known))
            said = {word: before[word] for word, _ in words if word in before}
            if first == "#...":
                said = {"...": list(front), **said}
            sized = ", ".join(f"{word} = {size}" for word, size in said.items())
            raise ValueError(
                f"{name} must be [{wanted}]{sized and f' with {sized}'}, got {list(tensor.shape)}"
            )
    return sizes


@cache
def _words(wanted: str) -> tuple[str, tuple[tuple[str, bool], ...]]:
    """What stands for any dimensions in front, and each word with whether its size may be 1."""
    first, *words = wanted.split()
    if not first.endswith("..."):
        first, words = "", [first, *words]
    return first, tuple((word.strip("#"), word.startswith("#")) for word in words)


def check_mask(mask: Tensor, /, **named: int | tuple[Tensor, str]) -> None:
    """As `check_shapes`, for a mask, which must also be boolean."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = mask.dtype if isinstance(mask, Tensor) else _short(mask)
        raise ValueError(f"mask must be boolean, True = may attend, got {came}")
    check_shapes(**named)


def numbers(*tensors: Tensor) -> list[Any] | None:
    """What small tensors hold; None where code may not branch on numbers.

    That is in a graph that is compiled, exported or traced, inside `torch.func.vmap`, and on the
    device `meta`.

    Args:
        tensors: where they are on another device than the processor, reading waits for it.
    """
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or tensors[0].is_meta:  # pyright: ignore
        return None
    try:
        return [tensor.tolist() for tensor in tensors]
    except RuntimeError:
        if not transformed():
            raise
        return None


def transformed() -> bool:
    """Whether `vmap`, `grad` or another of `torch.func` runs the code: fused kernels lack rules."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.maybe_current_level() is not None  # pyright: ignore


def refuse(wrong: Tensor, message: str) -> None:
    """Stop where a tensor of one boolean is true.

    Raises:
        ValueError: with the message; in a graph that is compiled or exported a RuntimeError when it
            runs. What `torch.func.vmap` or `torch.jit.trace` runs is not asked.
    """
    if torch.compiler.is_compiling():
        torch._assert_async(~wrong, message)  # pyright: ignore
    elif (found := numbers(wrong)) and found[0]:
        raise ValueError(message)


def check_whole(least: int, **values: Any) -> None:
    """Arguments that must be whole numbers, and not below `least`."""
    for name, value in values.items():
        whole = isinstance(value, (Integral, torch.SymInt)) and not isinstance(value, bool)
        if isinstance(value, Tensor) and torch.jit.is_tracing():  # pyright: ignore
            continue  # there sizes are tensors
        if not whole or value < least:
            raise ValueError(
                f"{name} must be a whole number of at least {least}, got {_short(value)}"
            )


def check_range(least: float | int, most: float | int, **values: Any) -> None:
    """Arguments that must be numbers in least .. most: no NaN, and not infinite."""
    for name, value in values.items():
        if not _is_number(value) or not least <= value <= most or value == inf:
            wanted = f"lie in {least}..{most}" if most < inf else f"be finite, at least {least}"
            raise ValueError(f"{name} must {wanted}, got {_short(value)}")


def check_positive(**values: Any) -> None:
    """Arguments that must be numbers above 0: no NaN, and not infinite."""
    for name, value in values.items():
        if not _is_number(value) or not 0 < value < inf:
            raise ValueError(f"{name} must be above 0 and finite, got {_short(value)}")


def check_flags(**values: Any) -> None:
    """Arguments that must be True or False, and not a word such as "no", which counts as True."""
    for name, value in values.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {_short(value)}")


def check_kind(kind: type, **values: Any) -> None:
    """Arguments that must be of a class."""
    for name, value in values.items():
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be a {kind.__name__}, got {_short(value)}")


def check_texts(**values: Any) -> None:
    """Arguments that must hold several strings: one string would be taken letter by letter."""
    for name, value in values.items():
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise ValueError(
                f"{name} must hold several strings, as [text] does with one, got {_short(value)}"
            )


def check_text(**values: Any) -> None:
    """Arguments that must be a string."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a string, got {_short(value)}")


def _is_number(value: Any) -> bool:
    kinds = (Real, torch.SymInt, torch.SymFloat)
    return isinstance(value, kinds) and not isinstance(value, bool)


def _short(value: Any) -> str:
    """How a message shows a value: as Python writes it; of what is long, what it is."""
    written = "" if isinstance(value, (Tensor, np.ndarray)) else repr(value)
    return written if 0 < len(written) <= 60 else f"a {type(value).__name__}"


def check_choice(choices: Collection[object], **values: object) -> None:
    """Arguments that must be one of some values."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
            )


def check_ids(
    name: str, ids: Tensor, vocab_size: int | None = None, wanted: str = "batch token"
) -> None:
    """Token ids must be whole numbers, in a tensor of the wanted shape, and below `vocab_size`."""
    check_shapes(**{name: (ids, wanted)})
    if ids.is_floating_point() or ids.dtype == torch.bool:
        raise ValueError(f"{name} must be token ids, whole numbers, got {ids.dtype}")
    if not ids.numel():
        raise ValueError(f"{name} must hold at least one token, got {list(ids.shape)}")
    if vocab_size is None or (edges := numbers(*ids.aminmax())) is None:
        return
    low, high = edges
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"{name} must be token ids in 0..{vocab_size - 1}, got {low if low < 0 else high}"
        )


@cache
def check_device(device: torch.device) -> None:
    """Stop before a model is trained on a device that computes wrongly, which some do in silence.

    A small model (embedding, GRU, masked attention, layer norm, Adam) learns three steps there and
    on the processor.

    Raises:
        RuntimeError: if the losses differ by more than rounding; says how to train elsewhere.
    """
    if device.type == "cpu":
        return
    here, there = _three_steps(torch.device("cpu")), _three_steps(device)
    if not (here - there).abs().max() < 2e-3:
        raise RuntimeError(
            f"device {device} must compute as the processor does: three losses of a small model "
            f"are {there.tolist()}, not {here.tolist()}. Train on the processor: set the "
            "environment variable ACCELERATE_USE_CPU=true before the first import"
        )


def _three_steps(device: torch.device) -> Tensor:
    """Losses of a small model that begins the same everywhere and copies its input."""
    generator = torch.Generator().manual_seed(0)
    state = torch.get_rng_state()
    model = nn.ModuleDict(
        {
            "embedding": nn.Embedding(11, 12),
            "gru": nn.GRU(12, 6, bidirectional=True, batch_first=True),
            "block": nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, batch_first=True),
            "out": nn.Linear(12, 11),
        }
    )
    torch.set_rng_state(state)  # what is trained begins as it would have without this check
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) / 2)
            weight.data = weight.data.mT.contiguous().mT if weight.ndim == 2 else weight.data
    tokens = torch.randint(11, (5, 7), generator=generator).to(device)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1).to(device)
    model.to(device)
    optimizer, losses = torch.optim.Adam(model.parameters(), 0.03), []
    for _ in range(3):
        states = model["gru"](model["embedding"](tokens))[0]
        scores = model["out"](model["block"](states, src_mask=future))
        loss = nn.functional.cross_entropy(scores.mT, tokens)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)
