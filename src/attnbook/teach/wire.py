"""Values and calls between the grader and a student's process.

Plain data and tensors are sent by value, other objects as a number that refers to its owner's
object. Nothing that arrives is executed: no pickle, no code. A message is a line of JSON and the
bytes of its tensors.
"""

import json
import linecache
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

HEAD = struct.Struct(">II")  # bytes of the JSON, bytes of all tensors
TEXT, MOST = 1 << 22, 1 << 26  # the most bytes of each
GROWS = 20  # parsed JSON takes this many times its size in memory
ALL, OBJECTS = 1 << 28, 10**5  # most bytes of one question's messages, most objects of a student
LATE = "it took too long: a loop without an end?"
ENDED = "it ended by itself: did it exit, or use too much memory or too many processes?"
PLAIN = (bool, int, float, str, type(None))
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.complex128,
        torch.complex64,
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.bool,
    )
}


class GoneError(Exception):
    """The other side has ended, violates the protocol, or does not answer in time."""


class RaisedError(Exception):
    """The other side raised an error of a `kind` such as "ValueError", with its message."""

    def __init__(self, kind: str, said: str):
        super().__init__(f"{kind}: {said}" if said else kind)
        self.kind = kind


def simple(value: Any) -> Any:
    """A NumPy number or a fraction as a Python number, a sparse tensor as a dense one."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor) and value.layout != torch.strided:
        return value.to_dense()
    return float(value) if isinstance(value, Fraction) else value


class Remote:
    """An object of the other side, known by its number; it can be called and has no attributes.

    It is neither a tensor nor a number, whatever its owner claims: comparing, adding and converting
    behave as for an unknown object, so that no check relies on it.
    """

    def __init__(self, peer: "Peer", number: int, kind: str):
        self._peer, self._number, self.kind = peer, number, kind

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self._peer.ask("call", self, list(args), more)

    def watched(
        self, args: Sequence[Any], more: Mapping[str, Any], own: Sequence[str], arrives: Any = None
    ) -> Any:
        """Call it on the other side, by `attnbook.teach.asking.watched` there."""
        return self._peer.ask("watch", self, list(args), more, list(own), arrives)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a {self.kind} of the student has no {name} here")

    def __bool__(self) -> bool:
        raise TypeError(f"a {self.kind} is neither true nor false")


def _line(error: BaseException) -> str:
    """The line of a cell in which an error occurred, in the process that ran the cell."""
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if name in linecache.cache and name.startswith("<"):
            found = f" (line {number}: {linecache.getline(name, number).strip()[:200]})"
    return found


class Peer:
    """One end of a connection: it asks the other end, and answers its questions meanwhile.

    Args:
        line: a connected socket.
        commands: name -> function that the other side may call.
    """

    def __init__(self, line: socket.socket, commands: Mapping[str, Callable[..., Any]]):
        self.line, self.commands = line, commands
        self.objects: list[Any] = []
        self.begin(None)

    def begin(self, until: float | None) -> None:
        """Begin a new question.

        Its answer and all messages before it must arrive before `until`, by `time.monotonic`, and
        take at most `ALL` bytes, since a check may keep them."""
        self.until, self.left = until, ALL

    def ask(self, command: str, *args: Any) -> Any:
        """Call a command of the other side.

        Raises:
            RaisedError: if it raised an error.
            GoneError: if it has ended, does not answer in time, or answers nonsense.
        """
        self._send(["ask", command, list(args)])
        while (message := self._receive())[0] == "ask":
            self._answer(message)
        if message[0] == "raised":
            raise RaisedError(str(message[1])[:100], str(message[2])[:2000])
        return message[1]

    def serve(self) -> None:
        """Answer until the other side ends."""
        while True:
            self._answer(self._receive())

    def _answer(self, message: list[Any]) -> None:
        try:
            _, command, args = message
            answer = ["answer", self.commands[command](*args)]
        except GoneError:
            raise
        except BaseException as error:  # even sys.exit is only an answer
            said = f"{error}{_line(error)}".strip()
            answer = ["raised", getattr(error, "kind", type(error).__name__), said]
        self._send(answer)

    def _send(self, message: list[Any]) -> None:
        parts: list[bytes] = []

        def plain(value: Any) -> Any:
            value = simple(value)
            if isinstance(value, PLAIN):
                return value
            if isinstance(value, Tensor):
                whole = value.detach().resolve_conj().cpu().contiguous().reshape(-1)
                parts.append(whole.view(torch.uint8).numpy().tobytes() if len(whole) else b"")
                return ["tensor", str(value.dtype).removeprefix("torch."), list(value.shape)]
            if isinstance(value, list | tuple):
                return ["list" if isinstance(value, list) else "tuple", *map(plain, value)]
            if isinstance(value, Mapping):
                return ["dict", *([plain(key), plain(each)] for key, each in value.items())]
            if isinstance(value, Remote):
                return ["yours", value._number]
            if len(self.objects) == OBJECTS:
                raise GoneError(f"it asked for more than {OBJECTS} objects")
            self.objects.append(value)
            return ["mine", len(self.objects) - 1, type(value).__name__]

        text = json.dumps(plain(message)).encode()
        head = HEAD.pack(len(text), sum(map(len, parts)))
        with self._waiting():
            self.line.sendall(head + text + b"".join(parts))

    def _receive(self) -> list[Any]:
        length, size = HEAD.unpack(self._exactly(HEAD.size))
        if length > TEXT or size > MOST:
            raise GoneError(f"it sent what is no answer, or one of more than {MOST >> 20} MB")
        if self.until is not None:  # a student's own process has its limits already
            self.left -= GROWS * length + size
            if self.left < 0:
                raise GoneError(f"it sent more than {ALL >> 20} MB for one question")
        text, parts = self._exactly(length), memoryview(bytearray(self._exactly(size)))

        def value(said: Any) -> Any:
            nonlocal parts
            if isinstance(said, PLAIN):
                return said
            kind, *rest = said
            if kind == "tensor":
                dtype, shape = DTYPES[rest[0]], torch.Size(rest[1])
                n = shape.numel()
                mine, parts = parts[: n * dtype.itemsize], parts[n * dtype.itemsize :]
                flat = torch.frombuffer(mine, dtype=dtype) if n else torch.empty(0, dtype=dtype)
                return flat.view(shape)
            if kind == "dict":
                return {value(key): value(each) for key, each in rest}
            if kind == "yours":
                return self.objects[rest[0]]
            if kind == "mine":
                return Remote(self, int(rest[0]), str(rest[1])[:100])
            return {"list": list, "tuple": tuple}[kind](map(value, rest))

        try:
            message = value(json.loads(text))
            if len(message) < {"ask": 3, "answer": 2, "raised": 3}[message[0]]:
                raise ValueError("it is too short")
        except Exception as error:  # whatever error malformed bytes cause
            raise GoneError(f"it sent what is no answer ({str(error)[:100]})") from None
        return message

    def _exactly(self, n: int) -> bytes:
        found = bytearray()
        while len(found) < n:
            with self._waiting():
                part = self.line.recv(min(n - len(found), 1 << 20))
            if not part:
                raise GoneError(ENDED)
            found += part
        return bytes(found)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Enforce the deadline, however many messages the other side sends."""
        left = None if self.until is None else self.until - time.monotonic()
        if left is not None and left <= 0:
            raise GoneError(LATE)
        try:
            self.line.settimeout(left)
            yield
        except TimeoutError:
            raise GoneError(LATE) from None
        except OSError:
            raise GoneError(ENDED) from None
