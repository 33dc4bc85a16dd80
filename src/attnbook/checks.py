"""Checks of arguments: a ValueError names the argument, what it must be, and what it is."""

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
    """Check the shapes of tensors, also against each other.

        check_shapes(q=(q, "batch query d"), k=(k, "batch key d"), d=8)

    Args:
        named: a tensor and the words for its dimensions, or the known size of a word. The same word
            means the same size everywhere; `#word` may also be 1; a first `...` stands for any
            dimensions, a later `#...` for dimensions that broadcast to them.

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
            sizes_before = {word: before[word] for word, _ in words if word in before}
            if first == "#...":
                sizes_before = {"...": list(front), **sizes_before}
            sized = ", ".join(f"{word} = {size}" for word, size in sizes_before.items())
            raise ValueError(
                f"{name} must be [{wanted}]{sized and f' with {sized}'}, got {list(tensor.shape)}"
            )
    return sizes


@cache
def _words(wanted: str) -> tuple[str, tuple[tuple[str, bool], ...]]:
    """The leading `...` or `#...`, or "", and each word with whether its size may be 1."""
    first, *words = wanted.split()
    if not first.endswith("..."):
        first, words = "", [first, *words]
    return first, tuple((word.strip("#"), word.startswith("#")) for word in words)


def check_mask(mask: Tensor, /, **named: int | tuple[Tensor, str]) -> None:
    """Check a mask as `check_shapes` does; it must also be boolean."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = mask.dtype if isinstance(mask, Tensor) else _short(mask)
        raise ValueError(f"mask must be boolean, True = may attend, got {came}")
    check_shapes(**named)


def numbers(*tensors: Tensor) -> list[Any] | None:
    """The values of small tensors as Python numbers; None where code must not branch on values.

    Code must not branch on values while it is compiled, exported or traced, inside
    `torch.func.vmap`, and on the device `meta`.

    Args:
        tensors: reading one from a device other than the CPU waits for that device.
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
    """Whether a `torch.func` transform such as `vmap` runs: fused kernels have no rules for it."""
    if torch.compiler.is_compiling():
        return False
    return torch._C._functorch.maybe_current_level() is not None  # pyright: ignore


def refuse(wrong: Tensor, message: str) -> None:
    """Raise an error if `wrong`, a tensor of one boolean, is true.

    Raises:
        ValueError: with the message; a compiled or exported graph raises a RuntimeError when it
            runs. Under `torch.func.vmap` and `torch.jit.trace` nothing is checked.
    """
    if torch.compiler.is_compiling():
        torch._assert_async(~wrong, message)  # pyright: ignore
    elif (found := numbers(wrong)) and found[0]:
        raise ValueError(message)


def check_whole(least: int, **values: Any) -> None:
    """Check that arguments are whole numbers of at least `least`."""
    for name, value in values.items():
        whole = isinstance(value, (Integral, torch.SymInt)) and not isinstance(value, bool)
        if isinstance(value, Tensor) and torch.jit.is_tracing():  # pyright: ignore
            continue  # when tracing, sizes are tensors
        if not whole or value < least:
            raise ValueError(
                f"{name} must be a whole number of at least {least}, got {_short(value)}"
            )


def check_range(least: float | int, most: float | int, **values: Any) -> None:
    """Check that arguments are numbers in least .. most, neither NaN nor infinite."""
    for name, value in values.items():
        if not _is_number(value) or not least <= value <= most or value == inf:
            wanted = f"lie in {least}..{most}" if most < inf else f"be finite, at least {least}"
            raise ValueError(f"{name} must {wanted}, got {_short(value)}")


def check_positive(**values: Any) -> None:
    """Check that arguments are numbers above 0, neither NaN nor infinite."""
    for name, value in values.items():
        if not _is_number(value) or not 0 < value < inf:
            raise ValueError(f"{name} must be above 0 and finite, got {_short(value)}")


def check_flags(**values: Any) -> None:
    """Check that arguments are True or False: a string such as "no" would count as True."""
    for name, value in values.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {_short(value)}")


def check_kind(kind: type, **values: Any) -> None:
    """Check that arguments are instances of a class."""
    for name, value in values.items():
        if not isinstance(value, kind):
            raise ValueError(f"{name} must be a {kind.__name__}, got {_short(value)}")


def check_texts(**values: Any) -> None:
    """Check that arguments are iterables but not a string, which would be read letter by letter."""
    for name, value in values.items():
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise ValueError(
                f"{name} must hold several strings, as [text] does with one, got {_short(value)}"
            )


def check_text(**values: Any) -> None:
    """Check that arguments are strings."""
    for name, value in values.items():
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a string, got {_short(value)}")


def part(text: str) -> slice:
    """The slice that "K/N" means: the K-th of every N items, the share of a job in an array.

    Raises:
        ValueError: unless K is a whole number in 1 .. N.
    """
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise ValueError(f"part must be K/N with K in 1..N, as 2/4, got {text!r}")
    return slice(int(k) - 1, None, int(n))


def _is_number(value: Any) -> bool:
    kinds = (Real, torch.SymInt, torch.SymFloat)
    return isinstance(value, kinds) and not isinstance(value, bool)


def _short(value: Any) -> str:
    """A value as error messages show it: its repr, or its type if the repr is long."""
    written = "" if isinstance(value, (Tensor, np.ndarray)) else repr(value)
    return written if 0 < len(written) <= 60 else f"a {type(value).__name__}"


def check_choice(choices: Collection[object], **values: object) -> None:
    """Check that arguments are among the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}"
            )


def check_ids(
    name: str, ids: Tensor, vocab_size: int | None = None, wanted: str = "batch token"
) -> None:
    """Check that token ids are whole numbers below `vocab_size`, in a tensor of that shape."""
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
    """Refuse to train on a device that computes wrong results, as some devices silently do.

    A small model (embedding, GRU, masked attention, layer norm, Adam) trains for three steps on
    the device and on the CPU.

    Raises:
        RuntimeError: if the losses differ by more than rounding; it says how to train on the CPU.
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
    """Three losses of a small model with fixed initial weights that learns to copy its input."""
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
    torch.set_rng_state(state)  # so that the check does not change what is trained afterwards
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) / 2)
            if weight.ndim == 2 and not name.startswith("gru"):  # cuDNN refuses such a GRU
                weight.data = weight.data.mT.contiguous().mT
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
