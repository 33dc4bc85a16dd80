"""How a check asks a student's function, and how it tells what came of it.

A check is a function with the decorator `check`. What it raises is one sentence: no line of a
check stands in a notebook, since that line often is the answer.
"""

import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from functools import wraps
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
# What stands around an answer: `display`, magics and calls of what it was handed.
AROUND = {str(Path(CHECKS, f"{name}.py")) for name in ("asking", "sandbox", "submission", "wire")}
SHOWN = 2000  # letters of what an answer prints


def check(
    *cases: Mapping[str, Any], own: Sequence[str] = (), leaves: Mapping[int, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: the function tries an answer, and says one sentence if it is not right.

    Answers get copies of what they are handed, so they may change it. What they print is shown
    where they are wrong; where they are right it is dropped, since a notebook stores what its
    check prints.

    Args:
        cases: further arguments to try, with seeds 1, 2, ... larger.
        own: names of PyTorch's functions that an answer must not call.
        leaves: the arguments that an answer must leave as they are: their names by their places.

    Raises:
        AnswerError: by the check, if the answer is not right, not solved yet, no function, changes
            what it must leave, or calls a function of `own` or of this package while it runs. Not
            seen is what code compiled by `torch.jit` calls, and what another thread does.
        Exception: by the check, what the answer raises, with the answer's own lines as traceback.
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
            except BaseException as error:  # an interrupt, too, has a traceback
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

    def __call__(self, *args: Any, **more: Any) -> Any:
        try:
            with redirect_stdout(self.printed), redirect_stderr(self.printed):
                found, changed, called = self._watched(args, more)
        except BaseException as error:
            blank = getattr(error, "kind", type(error).__name__)
            words = str(error).partition("(line ")[0].strip(" :")  # the line comes by the wire
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

    def _watched(self, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if not isinstance(self.answer, Remote):
            if not callable(self.answer):
                raise AnswerError(f"{self.name} must be a function, got a {kind(self.answer)}")
            return watched(self.answer, args, more, self.own)
        found = self.answer.watched(args, more, self.own)
        match found:
            case (_, [*changed], [*called]) if all(isinstance(i, int) for i in changed):
                return found[0], changed, [*map(str, called)]
        raise GoneError("it sent what is no answer")

    def trouble(self, error: BaseException) -> BaseException:
        """What to raise in place of an error, so that no line of a check is shown."""
        if isinstance(error, AnswerError):
            return AnswerError(str(error))
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
        return error


def _behind(error: BaseException) -> list[BaseException]:
    """An error, and those from which it came."""
    found = [error]
    for each in found:
        found += [e for e in (each.__cause__, each.__context__) if e and e not in found]
    return found


def _parts(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace:
        yield trace
        trace = trace.tb_next


class _Watch(TorchFunctionMode):
    """Hears which functions of PyTorch, by their names, and of this package run meanwhile."""

    def __init__(self, own: Sequence[str]):
        super().__init__()
        self.own, self.called, self.on = own, list[str](), True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.on and (name := getattr(func, "__name__", "")) in self.own:
            self.called.append(name)
        return func(*args, **(kwargs or {}))

    def heard(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls."""
        code = frame.f_code
        file = code.co_filename
        if self.on and event == "call" and file.startswith(PACKAGE) and file not in AROUND:
            name = Path(file).stem if code.co_name.startswith("<") else code.co_name
            self.called.append(f"attnbook's {name}")

    def handed(self, value: Any) -> Any:
        """A copy of a tensor or a list; of a function one during which nothing is heard."""
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
) -> tuple[Any, list[int], list[str]]:
    """Call a function with copies, and watch it.

    Args:
        function: a student's.
        args, more: what it is called with.
        own: names of PyTorch's functions that are told if it calls them.

    Returns:
        What it returns, as `attnbook.teach.wire` would bring it; the places of those of `args` that
        it has changed; and which functions it called, of `own` and of this package.
    """
    watch, before = _Watch(own), sys.getprofile()
    handed = [watch.handed(each) for each in args]
    with watch if own else nullcontext():
        sys.setprofile(watch.heard)
        try:
            found = function(*handed, **more)
        finally:
            sys.setprofile(before)
    changed = [i for i, each in enumerate(args) if not _equal(handed[i], each)]
    return _seen(found), changed, watch.called


def _equal(now: Any, then: Any) -> bool:
    if isinstance(then, Tensor):
        return torch.equal(now, then)
    return now == then if isinstance(then, list) else True


def _seen(value: Any) -> Any:
    value = simple(value)
    if isinstance(value, list | tuple):
        return [*map(_seen, value)] if isinstance(value, list) else tuple(map(_seen, value))
    return value
