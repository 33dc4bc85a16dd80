"""How a check calls a student's function and reports the result.

A check is a function with the decorator `check`. Its error is one sentence, without a traceback
into the check, since a line of the check is often the answer.
"""

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from functools import wraps
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import attnbook
from attnbook.teach.judging import AnswerError, kind
from attnbook.teach.wire import GoneError, Remote, simple

PACKAGE, CHECKS = str(Path(attnbook.__file__).parent), str(Path(__file__).parent)
TORCH = f"{Path(torch.__file__).parent}/"
# Files that run around an answer: `display`, magics and calls of functions it was given.
AROUND = {str(Path(CHECKS, f"{name}.py")) for name in ("asking", "sandbox", "submission", "wire")}
SHOWN = 2000  # characters of an answer's printed output
PARTS = 9  # the most parts taken from an iterator, more than any task asks for


def check(
    *cases: Mapping[str, Any], own: Sequence[str] = (), leaves: Mapping[int, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a function that tests an answer; its error is one sentence.

    Answers get copies of their arguments, so they may change them. The printed output of a wrong
    answer is shown. That of a right answer is dropped, since a notebook stores what its check
    prints.

    Args:
        cases: further arguments to test with, the seed increased by 1, 2, ...
        own: parts of the names of PyTorch's functions that an answer must not call.
        leaves: index -> name of arguments that an answer must not change.

    Raises:
        AnswerError: by the check, if the answer is wrong, unsolved or not a function, changes an
            argument of `leaves`, or calls a function of `own` or of this package. Calls by code
            that `torch.jit` compiled, in other threads, and where an answer has switched the
            detection off (`torch._C.DisableTorchFunction`), are not detected, nor in a backward
            pass those of PyTorch's functions written in C++.
        Exception: by the check, the answer's own error, with a traceback of its own lines only.
    """

    def made(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def judged(answer: Any, seed: int = 0, **more: Any) -> None:
            __tracebackhide__ = True  # for IPython and pytest
            asked = _Asked(answer, test.__name__, own, leaves or {})
            said, trouble = io.StringIO(), None
            try:
                with redirect_stdout(said):
                    test(asked, seed, **more)
                    for n, case in enumerate(cases, 1):
                        test(asked, seed + n, **case)
            except BaseException as error:  # an interrupt also has a traceback
                trouble = asked.trouble(error)
            if trouble is not None:
                sys.stdout.write(asked.printed.getvalue()[-SHOWN:])
                raise trouble
            sys.stdout.write(said.getvalue())

        return judged

    return made


class _Asked:
    """A student's function, here or in another process, as checks call it."""

    def __init__(self, answer: Any, name: str, own: Sequence[str], leaves: Mapping[int, str]):
        self.answer, self.name, self.own, self.leaves = answer, name, own, leaves
        self.printed = io.StringIO()
        self.raised: BaseException | None = None
        self.shapes = ""

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self.ask(args, more)

    def ask(self, args: tuple[Any, ...], more: dict[str, Any], arrives: Any = None) -> Any:
        """The answer's result, or where a gradient `arrives` there, what it passes on."""
        shapes = [str([*each.shape]) for each in args if isinstance(each, Tensor)]
        self.shapes = f"called with {', '.join(shapes)}" if shapes else ""
        try:
            with redirect_stdout(self.printed), redirect_stderr(self.printed):
                found, changed, called = self._watched(args, more, arrives)
        except BaseException as error:
            blank = getattr(error, "kind", type(error).__name__)
            words = str(error).partition("(line ")[0].strip(" :")  # the wire adds the line
            if blank == "NotImplementedError" and words in ("", blank):
                raise AnswerError(f"{self.name}: not solved yet") from None
            self.raised = error
            raise
        if called:
            raise AnswerError(
                f"{self.name} calls {called[0]}, which this task asks you to do without"
            )
        for place in self.leaves.keys() & set(changed):
            raise AnswerError(
                f"{self.name} changes its input `{self.leaves[place]}`, which must stay as it is:"
                " change a copy"
            )
        return found

    def _watched(self, args: tuple[Any, ...], more: dict[str, Any], arrives: Any) -> Any:
        if not isinstance(self.answer, Remote):
            if not callable(self.answer):
                raise AnswerError(f"{self.name} must be a function, got a {kind(self.answer)}")
            return watched(self.answer, args, more, self.own, arrives)
        found = self.answer.watched(args, more, self.own, arrives)
        match found:
            case (_, [*changed], [*called]) if all(isinstance(i, int) for i in changed):
                return found[0], changed, [*map(str, called)]
        raise GoneError("it sent what is no answer")

    def trouble(self, error: BaseException) -> BaseException:
        """The error to raise instead, without lines of the check."""
        if isinstance(error, AnswerError):
            told = error.unexplained and self.shapes
            return AnswerError(f"{error} ({self.shapes})" if told else str(error))
        if isinstance(error, Exception) and not (
            error is self.raised or isinstance(error, GoneError)
        ):
            return AnswerError(
                f"{self.name}: the check could not use your answer: {type(error).__name__}: {error}"
            )
        for each in _behind(error):
            kept = None
            for part in reversed([*_parts(each.__traceback__)]):
                if not part.tb_frame.f_code.co_filename.startswith(CHECKS):
                    kept = TracebackType(kept, part.tb_frame, part.tb_lasti, part.tb_lineno)
            each.__traceback__ = kept
        if isinstance(error, Exception) and self.shapes:
            error.add_note(f"{self.name} was {self.shapes}")
        return error


def gradient(answer: Callable[..., Any], arrives: Tensor, *args: Any) -> Tensor:
    """The gradient that an answer passes on to its first argument, wherever it runs.

    Args:
        answer: what `check` hands to a test.
        arrives: the gradient at its result, a tensor of that shape.
        args: its arguments, the first one a tensor.

    Raises:
        AnswerError: if no gradient comes through, or one of another shape.
    """
    if not isinstance(answer, _Asked):
        raise TypeError(f"answer must be what `check` hands to a test, got a {kind(answer)}")
    found = answer.ask(args, {}, arrives)
    if isinstance(found, Tensor) and found.shape == args[0].shape:
        return found
    why = f": {found[:200]}" if isinstance(found, str) and found else ""
    if "inplace" in why:
        why = ": a tensor that it needs was changed in place. Make a new one instead"
    raise AnswerError(
        f"{answer.name}: the numbers are right, but no gradient comes back to the first argument,"
        f" so that nothing can be trained{why}"
    )


def _behind(error: BaseException) -> list[BaseException]:
    """An error and the errors that caused it."""
    found = [error]
    for each in found:
        found += [e for e in (each.__cause__, each.__context__) if e and e not in found]
    return found


def _parts(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace:
        yield trace
        trace = trace.tb_next


class _Watch(TorchFunctionMode):
    """Records calls of PyTorch's functions, by name, and of this package's functions."""

    def __init__(self, own: Sequence[str]):
        super().__init__()
        self.own, self.called, self.on = own, list[str](), True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "").partition(".")[0]  # of "layer_norm.default"
        if self.on and self.named(name):
            self.called.append(name)
        return func(*args, **(kwargs or {}))

    def named(self, name: str) -> bool:
        """Whether a function of PyTorch has one of the names."""
        return any(part in name for part in self.own)

    def heard(self, frame: FrameType, event: str, _: Any) -> None:
        """The hook for `sys.setprofile`."""
        if not self.on or event != "call":
            return
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if file.startswith(PACKAGE) and file not in AROUND:
            self.called.append(f"attnbook's {Path(file).stem if name.startswith('<') else name}")
        elif file.startswith(TORCH) and name[0] != "_" and self.named(name):  # like flex_attention
            self.called.append(name)
        if self.called:  # the first one is told, and under a hook flex_attention takes minutes
            sys.setprofile(None)

    def handed(self, value: Any) -> Any:
        """A copy of a tensor or a list; the calls of a copied function are not recorded."""
        if isinstance(value, Tensor):
            return value.clone()
        if not callable(value):
            return [*value] if isinstance(value, list) else value

        def unheard(*args: Any, **more: Any) -> Any:
            self.on = False
            try:
                return value(*args, **more)
            finally:
                self.on = True

        return unheard


def watched(
    function: Callable[..., Any],
    args: Sequence[Any],
    more: Mapping[str, Any],
    own: Sequence[str],
    arrives: Tensor | None = None,
) -> tuple[Any, list[int], list[str]]:
    """Call a function with copies of its arguments, and record its calls.

    Args:
        function: a student's function.
        args, more: its arguments.
        own: parts of the names of PyTorch's functions whose calls are reported.
        arrives: a gradient at the result. In the result's place comes what passes on to the first
            argument, or where nothing does, words that say why.

    Returns:
        Its result, as `attnbook.teach.wire` would transmit it, an iterator as a tuple; the indices
        of the `args` that it changed; and the functions of `own` and of this package that it
        called.
    """
    watch, before = _Watch(own), sys.getprofile()
    handed = [watch.handed(each) for each in args]
    first: Any = None
    if arrives is not None:
        first = handed[0].requires_grad_()
        handed[0] = first.clone()  # which may be changed in place, as a leaf may not
    with watch if own else nullcontext():
        sys.setprofile(watch.heard)
        try:
            found = function(*handed, **more)
            if isinstance(found, Iterator):  # made now, while calls are recorded
                found = tuple(islice(found, PARTS))
            if arrives is not None:  # a backward pass, too, may call what it must not
                found = _passed_on(found, first, arrives)
        finally:
            sys.setprofile(before)
    changed = [i for i, each in enumerate(args) if not _equal(handed[i], each)]
    return _seen(found), changed, watch.called


def _passed_on(found: Any, first: Tensor, arrives: Tensor) -> Tensor | str:
    """The gradient at the first argument, or words that say why there is none."""
    if not isinstance(found, Tensor) or not found.requires_grad:
        return ""
    try:  # the gradient of a number: for that of a tensor, torch first imports sympy
        (back,) = torch.autograd.grad((found * arrives).sum(), first, allow_unused=True)
    except RuntimeError as error:
        return str(error)
    return "" if back is None else back


def _equal(now: Any, then: Any) -> bool:
    if isinstance(then, Tensor):
        return torch.equal(now, then)
    return now == then if isinstance(then, list) else True


def _seen(value: Any) -> Any:
    value = simple(value)
    if isinstance(value, list | tuple):
        return [*map(_seen, value)] if isinstance(value, list) else tuple(map(_seen, value))
    return value
