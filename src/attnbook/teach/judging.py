"""Checks of an answer that explain what is wrong with it."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor


def numbers(seed: int) -> Callable[..., Tensor]:
    """A seeded generator of normal random tensors: call it with the sizes."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *sizes: torch.randn(*sizes, generator=generator)


class AnswerError(AssertionError):
    """An answer is wrong; the message says why, unless it is `unexplained`."""

    unexplained = False

    def _render_traceback_(self) -> list[str]:
        """The traceback that IPython shows: the message only."""
        return [f"{type(self).__name__}: {self}"]


def same(
    got: Any,
    want: Tensor,
    name: str,
    mistakes: Mapping[str, Tensor | Callable[[], Tensor]] | None = None,
    *,
    otherwise: Callable[[Tensor], str] | None = None,
    axes: str = "",
    atol: float = 1e-4,
) -> Tensor:
    """Check that an answer is the expected tensor.

    Args:
        got: the answer, of any type.
        want: the expected tensor.
        name: its name in the task, for messages.
        mistakes: message -> the result of a common mistake.
        otherwise: message for other wrong answers of the right shape; "" for none.
        axes: names of the axes, for messages: "batch query key".
        atol: largest allowed difference.

    Returns:
        The answer as a tensor.

    Raises:
        AnswerError: if it differs.
    """
    if not isinstance(got, Tensor):
        raise AnswerError(f"{name} must be a tensor, got {_one(got)}")
    causes = _causes(got, mistakes or {}, atol)
    if not causes and otherwise and got.shape == want.shape and (words := otherwise(got)):
        causes = f": {words}"
    if got.shape != want.shape:
        shape = f"[{axes}] = {list(want.shape)}" if axes else f"{list(want.shape)}"
        turned = got.ndim > 1 and got.mT.shape == want.shape
        hint = causes or (": are the last two axes exchanged?" if turned else "")
        raise _wrong(f"{name} must have the shape {shape}, got {list(got.shape)}", hint)
    if got.is_floating_point() != want.is_floating_point() or (want.dtype == torch.bool) != (
        got.dtype == torch.bool
    ):
        raise AnswerError(f"{name} must be of type {want.dtype}, got {got.dtype}{causes}")
    strange = got.isnan() & ~want.isnan() if got.is_floating_point() else got != got
    if strange.any():
        where = _place(strange, axes)
        raise _wrong(f"{name} must hold numbers, got NaN at {where}", causes)
    wide = torch.promote_types(want.dtype, torch.float64)
    far = ~torch.isclose(got.to(wide), want.to(wide), rtol=atol, atol=atol, equal_nan=True)
    if far.any():
        place = tuple(far.nonzero()[0].tolist())
        share = f"{int(far.sum())} of {far.numel()} numbers are wrong, the first "
        raise _wrong(
            f"{name}: {share}at {_place(far, axes)}: {_short(got[place])}, where"
            f" {_short(want[place])} is right",
            causes,
        )
    return got


def _wrong(words: str, why: str) -> AnswerError:
    """An error with its cause, or "" where that is not known."""
    error = AnswerError(words + why)
    error.unexplained = not why
    return error


def _causes(got: Tensor, mistakes: Mapping[str, Tensor | Callable[[], Tensor]], atol: float) -> str:
    """The message of the first known mistake that gives this answer."""
    for words, made in mistakes.items():
        wrong = made if isinstance(made, Tensor) else made()
        if got.shape == wrong.shape and torch.allclose(
            got.double(), wrong.double(), rtol=atol, atol=atol, equal_nan=True
        ):
            return f": {words}"
    return ""


def _place(where: Tensor, axes: str) -> str:
    place = where.nonzero()[0].tolist()
    names = axes.split()
    if len(names) != len(place):
        return str(place)
    return ", ".join(f"{name} {i}" for name, i in zip(names, place, strict=True))


def _short(number: Tensor) -> str:
    return f"{number.item():.4g}" if number.is_floating_point() else str(number.item())


def kind(value: Any) -> str:
    """The name of a value's type, here or in the student's process."""
    return getattr(value, "kind", type(value).__name__)


def parts(got: Any, n: int, words: str) -> Any:
    """Check that an answer has n parts.

    Raises:
        AnswerError: with these words and a description of the answer, if it does not.
    """
    if not isinstance(got, tuple | list):
        raise AnswerError(f"{words}, got {_one(got)}")
    if len(got) != n:
        raise AnswerError(f"{words}, got {len(got)}")
    return got


def _one(value: Any) -> str:
    return "None: does the function return it?" if value is None else f"a {kind(value)}"


def constant(seed: int, first: Any, *others: Any) -> Any:
    """A constant that an answer must not hard-code: `first` at seed 0, else one of the others."""
    return others[seed % len(others)] if seed else first


def holds(condition: bool, words: str) -> None:
    """Check that a condition holds.

    Raises:
        AnswerError: with these words, if it does not.
    """
    if not condition:
        raise AnswerError(words)


def number(got: Any, want: float, name: str, mistakes: Mapping[str, float] | None = None) -> float:
    """Check that an answer is the expected number, to three decimals.

    Raises:
        AnswerError: if it differs or is not a number.
    """
    if isinstance(got, Tensor) and got.numel() == 1:
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, int | float):
        raise AnswerError(f"{name} must be a number, got {_one(got)}")
    if not abs(got - want) <= 5e-4 * max(1, abs(want)):
        near = [w for w, wrong in (mistakes or {}).items() if abs(got - wrong) <= 5e-4]
        raise AnswerError(
            f"{name} is {got:.4g}, {want:.4g} is right" + (f": {near[0]}" if near else "")
        )
    return float(got)


def right(name: str, numbers: Tensor | float, seed: int, *place: int | slice) -> None:
    """Print that an answer is right, with a few numbers rounded to be the same on every machine.

    Hidden tests use seeds other than 0 and print nothing: a notebook stores what its checks print.

    Args:
        name: its name in the task.
        numbers: the answer, or numbers derived from it.
        seed: the check's seed.
        place: the index of the numbers to print; all by default.
    """
    if seed == 0:
        shown = (torch.as_tensor(numbers)[place].reshape(-1) + 0.0).tolist()  # no minus zero
        print(f"{name}: right.", *(f"{number:.2f}" for number in shown))
